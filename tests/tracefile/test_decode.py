"""Pieces of any size give the same events; damage costs itself alone."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import fuzzed

from tracekit.errors import TracekitError
from tracekit.tracefile import decode
from tracekit.tracefile.decode import Decoding, decode_events
from tracekit.tracefile.events import Event

names = st.text(max_size=12) | st.sampled_from(['},{"ph": "X"', "}, {", '"', "\\", "[]", "é🎉", "a\nb", "x" * 300])
events = st.fixed_dictionaries(
    {
        "ph": st.just("X"),
        "cat": st.just("kernel"),
        "name": names,
        "ts": st.integers(0, 10**15),
        "dur": st.integers(0, 99),
    },
    optional={
        "args": st.fixed_dictionaries(
            {"correlation": st.integers(1, 9)},
            optional={"other": st.lists(st.fixed_dictionaries({"name": names, "ph": st.just("X")}), max_size=3)},
        )
    },
)
layouts = st.sampled_from([{"indent": 2}, {"indent": None}, {"separators": (",", ":")}, {"ensure_ascii": False}])


def pieces_of(text: bytes, size: int) -> Iterator[bytes]:
    return (text[i : i + size] for i in range(0, len(text), size))


def decoded(text: bytes, size: int) -> tuple[list[Event], Decoding]:
    decoding = Decoding("it")
    found = [event for some in decode_events(pieces_of(text, size), decoding) for event in some]
    return found, decoding


def facts(found: list[Event]) -> list[tuple[Any, ...]]:
    return [(each.name, each.ts, each.dur, each.args.correlation if each.args else None) for each in found]


def expected(some: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["name"], each["ts"], each["dur"], each.get("args", {}).get("correlation")) for each in some]


@fuzzed(50)
@given(st.lists(events, max_size=8), st.integers(1, 400), layouts, st.booleans())
def test_pieces_of_any_size_give_the_same_events(
    some: list[dict[str, Any]], size: int, layout: dict[str, Any], in_object: bool
) -> None:
    document = {"schemaVersion": 1, "with_stack": 1, "traceEvents": some, "tracekit": {"a": [1]}} if in_object else some
    found, decoding = decoded(json.dumps(document, **layout).encode("utf-8", errors="surrogatepass"), size)
    assert facts(found) == expected(some)
    assert (dict(decoding.skipped), decoding.truncated) == ({}, False)
    assert bool(decoding.header.with_stack) is in_object
    assert decoding.header.tracekit == ({"a": [1]} if in_object else {})


@fuzzed(40)
@given(st.lists(events, min_size=2, max_size=8), st.data(), st.integers(1, 400), layouts)
def test_a_file_cut_off_anywhere_keeps_the_events_before(
    some: list[dict[str, Any]], data: st.DataObject, size: int, layout: dict[str, Any]
) -> None:
    text = json.dumps({"traceEvents": some}, **layout).encode("utf-8", errors="surrogatepass")
    at = data.draw(st.integers(text.index(b"[") + 1, len(text) - 1))
    found, decoding = decoded(text[:at], size)
    assert facts(found) == expected(some)[: len(found)]
    assert decoding.truncated or len(found) == len(some)
    assert dict(decoding.skipped) == {}


@fuzzed(40)
@given(st.lists(events, min_size=3, max_size=30), st.data(), st.integers(1, 4000))
def test_a_broken_event_costs_itself_alone(some: list[dict[str, Any]], data: st.DataObject, size: int) -> None:
    broken = data.draw(st.integers(0, len(some) - 1))
    parts = [json.dumps(each) for each in some]
    parts[broken] = data.draw(
        st.sampled_from(
            [
                '{"ph": "X", "cat": "kernel", "name": "\\q"}',
                '{"ph": "X" "cat": 1}',
                # What lies within it is no event of its own.
                '{"ph": "X", "dur": oops, "args": {"name": "inner", "ph": "X", "ts": 1, "dur": 1}}',
            ]
        )
    )
    text = ('{"traceEvents": [' + ", ".join(parts) + "]}").encode("utf-8", errors="surrogatepass")
    found, decoding = decoded(text, size)
    rest = expected(some)
    assert facts(found) == rest[:broken] + rest[broken + 1 :]
    # The last event of a file may be the one where it was cut off.
    assert dict(decoding.skipped) == {"invalid JSON": 1} or (broken == len(some) - 1 and decoding.truncated)


def test_events_that_end_before_the_file_does_are_all_there() -> None:
    sound = {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}
    frames = {str(i): {"name": "f", "category": "python"} for i in range(500)}
    text = json.dumps({"traceEvents": [sound] * 50, "stackFrames": frames, "tracekit": {"form": "eager"}}).encode()
    for size in (100, 1000, 100_000):
        found, decoding = decoded(text, size)
        assert (len(found), dict(decoding.skipped), decoding.truncated) == (50, {}, False)
        assert decoding.header.tracekit == {"form": "eager"}


def test_an_event_too_long_for_any_memory_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "LONGEST_BYTES", 10_000)
    sound = b'{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}'
    endless = b'{"ph": "X", "name": "' + b"x" * 100_000
    found, decoding = decoded(b'{"traceEvents": [' + sound + b"," + endless, 1000)
    assert (len(found), decoding.truncated) == (1, True)
    assert sum(decoding.skipped.values()) == 1


def test_junk_that_never_becomes_a_trace_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "LONGEST_BEGINNING", 10_000)
    taken = []

    def endless() -> Iterator[bytes]:
        while True:
            taken.append(1)
            yield b'{"a": "' + b"x" * 1000

    with pytest.raises(TracekitError, match="is not a trace"):
        list(decode_events(endless(), Decoding("it")))
    assert len(taken) < 20


def test_a_long_name_full_of_what_looks_like_events_is_not_read_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    real = decode._salvage
    monkeypatch.setattr(
        decode, "_salvage", lambda chunk, *rest, **more: read.append(len(chunk)) or real(chunk, *rest, **more)
    )
    name = '},{\\"ph\\": ' * 150_000
    sound = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}'
    text = f'{{"traceEvents": [{sound}, {{"ph": "X", "cat": "kernel", "name": "{name}", "ts": 1, "dur": 1}}, {sound}]}}'
    found, decoding = decoded(text.encode(), 1 << 16)
    assert (len(found), dict(decoding.skipped), decoding.truncated) == (3, {}, False)
    assert sum(read) < 8 * len(text)
