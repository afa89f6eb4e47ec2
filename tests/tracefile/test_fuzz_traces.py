"""A small trace, damaged in keys and values: whatever comes of it is a result that adds up, or one line."""

import contextlib
import json
import re
import resource
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import polars.selectors as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import fuzzed
from tests.traces import Json, make_call, make_copy, make_event, make_kernel, make_op, make_span

from tracekit.analysis.listing import list_activities, list_idle
from tracekit.analysis.sequence import list_work
from tracekit.errors import TracekitError
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.trace import Trace
from tracekit.tracefile import cache
from tracekit.tracefile.events import Detail
from tracekit.tracefile.read import read_trace

from .test_damage import adding_up

#: What one example may take; most take a hundredth of it.
MOST_SECONDS = 5
MOST_GROWTH_MIB = 400


COLLECTIVE: Json = {
    "Collective name": "allreduce",
    "In msg nelems": 64,
    "Out msg nelems": 64,
    "dtype": "BFloat16",
    "Group size": 2,
    "Process Group Name": "0",
    "Process Group Ranks": "[0, 1]",
    "In split size": "[]",
    "External id": 9,
}


def pair(start_us: float, end_us: float, *, name: str, thread: int) -> list[Json]:
    begun: Json = {"ph": "B", "cat": "cpu_op", "name": name, "pid": 100, "tid": thread, "ts": start_us}
    return [begun, {"ph": "E", "name": name, "pid": 100, "tid": thread, "ts": end_us}]


def step(number: int, start_us: float) -> list[Json]:
    first = 10 * number + 1
    return [
        make_span(start_us, start_us + 90, name=f"tracekit.step#{number}"),
        make_op(
            start_us + 1,
            start_us + 9,
            name="aten::conv2d",
            **{"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"], "Concrete Inputs": ["", "1"]},
        ),
        make_call(start_us + 2, start_us + 4, correlation=first),
        make_kernel(start_us + 5, start_us + 25, name="void gemm<float>(int)", correlation=first),
        make_call(start_us + 10, start_us + 12, name="cudaMemcpyAsync", correlation=first + 1),
        make_copy(start_us + 30, start_us + 34, correlation=first + 1),
        *pair(start_us + 13, start_us + 20, name="aten::add", thread=2),
        make_call(start_us + 14, start_us + 16, name="cudaGraphLaunch", correlation=first + 2, thread=2),
        make_kernel(start_us + 40, start_us + 50, name="triton_poi_fused_0", stream=8, correlation=first + 2),
        make_kernel(start_us + 45, start_us + 55, device=1, correlation=first + 2),
        make_call(start_us + 35, start_us + 60, name="cudaDeviceSynchronize", correlation=first + 3),
        make_event("python_function", start_us + 1, start_us + 80, name="model.py(12): forward"),
        {**make_op(start_us + 60, start_us + 64, name="record_param_comms"), "args": COLLECTIVE},
        make_call(start_us + 61, start_us + 62, correlation=first + 4),
        talk(make_kernel(start_us + 65, start_us + 80, name="ncclDevKernel_AllReduce", correlation=first + 4)),
    ]


def talk(kernel: Json) -> Json:
    return {**kernel, "args": {**kernel["args"], **COLLECTIVE, "Seq": 4, "grid": [24, 1, 1]}}


MEMORY: Json = {
    "ph": "i",
    "cat": "cpu_instant_event",
    "name": "[memory]",
    "pid": 100,
    "tid": 1,
    "ts": 5,
    "args": {"Device Type": 1, "Total Allocated": 1024},
}
SOUND = json.dumps(
    {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "NVIDIA H200"}],
        "tracekit": {"form": "eager", "device": "cuda", "notes": ["a", 1.5, None]},
        "record_shapes": 1,
        "with_stack": 0,
        "traceEvents": [*step(0, 0), MEMORY, *step(1, 100), {"ph": "M", "name": "process_name", "pid": 0, "args": {}}],
        "distributedInfo": {"rank": 0, "world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]},
        "baseTimeNanoseconds": 1700000000,
        "host_name": "a",
    }
)
#: Every key and every value that is no list or object, as they stand in the text.
TOKENS = [each.span() for each in re.finditer(r'"(?:[^"\\]|\\.)*"|-?\d[\d.]*|true|false|null', SOUND)]

HOSTILE = [
    *("null", "true", "{}", "[]", "-1", "0", "0.5", "1e308", "1e999", "-1e999", "NaN", "-Infinity"),
    *(str(number) for number in (2**31, 2**62, -(2**62), 2**63, 2**64, 10**400)),
    *("9" * 5000, "1." + "3" * 5000, '"' + "9" * 5000 + '"', '"' + "1 " * 5000 + '"'),
    *('"' + "x" * 100_000 + '"', '"' + "<" * 5000 + '"'),
    *('""', '"NaN"', '"inf"', '"-1"', '"1_0"', '"1e400"', '" 7 "', '"\\u0663"'),
    *('"\\ud800"', '"\\udc00\\ud800 7"', '"\\ud83d\\ude00"', '"\\u0000"', '"\x01"', '"\x7f\x9b"', '"a\\"b\\\\"'),
    *('"tracekit.step#99999999999999999999"', '"ProfilerStep#5"', '"cudaStreamBeginCapture"', '"gpu_memset"'),
    *('"B"', '"E"', '"i"', '"ts"', '"args"', '"traceEvents"', '"deviceProperties"'),
    *('[["\\ud800"], {"\\ud800": 1}]', '{"name": "\\udfff", "id": [1]}'),
    *("[" * 60 + "]" * 60, "[" * 3000 + "]" * 3000, '{"a":' * 900 + "1" + "}" * 900),
    # A key twice, whichever key it stands for.
    *('1, "ts": 7', '"x", "args": {"correlation": 11, "correlation": "\\ud800"}', '"x", "traceEvents": [{"ph": "X"}]'),
]


def damaged(damages: list[tuple[int, str | int]]) -> str:
    """The trace with other texts in the places of tokens; a number stands for the text of another token."""
    text = SOUND
    # From the end on, so that the places before stay where they are.
    for at, replacement in sorted(dict(damages).items(), reverse=True):
        begin, end = TOKENS[at]
        new = SOUND[slice(*TOKENS[replacement])] if isinstance(replacement, int) else replacement
        text = text[:begin] + new + text[end:]
    return text


numbers = st.one_of(st.integers(), st.floats(), st.integers(-(2**64), 2**64), st.floats(-200, 200)).map(json.dumps)
texts = st.text(max_size=20).map(json.dumps)
replacements = st.one_of(st.sampled_from(HOSTILE), st.integers(0, len(TOKENS) - 1), numbers, texts)
damages = st.lists(st.tuples(st.integers(0, len(TOKENS) - 1), replacements), min_size=1, max_size=6)


def analyzed(trace: Trace, window: str) -> None:
    adding_up(trace, window=window)


def listed(trace: Trace, window: str) -> None:
    rows = list_activities(trace, window=window)
    assert rows.height <= trace.activities.height
    assert rows.write_csv().count("\n") > rows.height


def gaps_listed(trace: Trace, window: str) -> None:
    rows = list_idle(trace, window=window)
    causes = rows.select(cs.by_name(*(f"{cause}_us" for cause in IDLE_CAUSES))).sum_horizontal()
    assert causes.to_list() == pytest.approx(rows["duration_us"].to_list(), abs=1e-3)
    assert rows.write_csv().count("\n") > rows.height


def worked(trace: Trace, window: str) -> None:
    if trace.activities.height:
        assert len(list_work(trace, window).activities) <= trace.activities.height


def detail_of(trace: Trace) -> Detail:
    columns = trace.host.columns
    return "shapes" if "dims" in columns else "collectives" if "signature" in columns else "plain"


def cached(trace: Trace, window: str) -> None:
    with TemporaryDirectory() as folder:
        entry = Path(folder) / "entry"
        cache.save(trace, entry)
        again = cache.load(entry, trace.path, detail_of(trace))
        assert again is not None
        assert again.activities.equals(trace.activities)


def is_in_order(trace: Trace, window: str) -> None:
    for table in (trace.activities, trace.calls, trace.host):
        starts, ends = table["start_ns"], table["end_ns"]
        assert starts.is_sorted() and (starts >= 0).all() and (ends >= starts).all()


def ask_damaged(path: Path, damages: list[tuple[int, str | int]], detail: Detail, ask: Callable[[Trace], None]) -> None:
    """Asks of the trace with these damages, within the time and memory that any example may take."""
    path.write_bytes(damaged(damages).encode("utf-8", errors="surrogatepass"))
    seconds, kib = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Its line may say that there is nothing to analyse; any other error is a bug.
    with contextlib.suppress(TracekitError):
        ask(read_trace(path, shapes=detail == "shapes", collectives=detail == "collectives"))
    assert time.process_time() - seconds < MOST_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - kib < MOST_GROWTH_MIB << 10


#: What commands ask of a trace; each example asks one, which is most of its time.
QUESTIONS = (analyzed, listed, gaps_listed, worked, cached, is_in_order, is_in_order)
DETAILS: tuple[Detail, ...] = ("plain", "shapes", "collectives")


@fuzzed(50)
@given(damages, st.sampled_from(DETAILS), st.sampled_from(("auto", "whole")), st.sampled_from(QUESTIONS))
def test_damaged_keys_and_values_give_a_result_or_one_line(
    tmp_path_factory: pytest.TempPathFactory,
    damages: list[tuple[int, str | int]],
    detail: Detail,
    window: str,
    ask: Callable[[Trace, str], None],
) -> None:
    ask_damaged(tmp_path_factory.getbasetemp() / "fuzzed.json", damages, detail, lambda trace: ask(trace, window))


@pytest.mark.parametrize("ask", QUESTIONS[:-1])
def test_the_trace_that_is_damaged_is_whole_before(tmp_path: Path, ask: Callable[[Trace, str], None]) -> None:
    path = tmp_path / "sound.json"
    path.write_text(SOUND)
    trace = read_trace(path, shapes=True)
    assert (trace.skipped, trace.truncated, trace.activities.height, trace.host.height) == ({}, False, 10, 10)
    assert len(trace.signatures) == 0
    assert (len(trace.metadata), trace.peak_allocated_bytes, len(trace.devices)) == (3, 1024, 2)
    ask(trace, "auto")
