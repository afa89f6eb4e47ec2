"""JSON documents damaged at random: values in the place of others, keys gone, lists emptied and doubled."""

from __future__ import annotations

import copy
import functools
import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

#: `make fuzz` tries so many times as many examples, and other ones each time; CI tries the same each time.
FACTOR = int(os.environ.get("TRACEKIT_FUZZ", "1"))


def fuzzed(examples: int) -> settings:
    """So many examples in CI."""
    return settings(
        max_examples=examples * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


Path = tuple[str | int, ...]

#: What stands where something else is expected. Large texts and nesting have tests of their own.
ODD = (
    *(None, True, False, -1, 0, 1, 2, 3.5, 0.5, -0.5, 1e-9, 1e9, 100, -0.0, 1e308, -1e308, 5e-324, 1e-3, 1e13),
    *(2**31, 2**53, 2**53 + 1, -(2**63), 2**64),
    *("", "a", "zzz", "nan", "../x", "/etc/passwd", "\0", "\x1b]0;x\x07\x1b[2J\u202e", "<script>alert(1)</script>"),
    *("]]>-->\"'&lt;{{ 7*7 }}{% x %}", "[/bold]", "1e999", "eager", "compiled", "steady", "\u2028é漢\U0001f600"),
    *("2026-01-02T03:04:05+00:00", "9999-12-31T23:59:59-23:59"),
    *([], {}, [None], [[]], {"": None}),
)

DELETE, DOUBLE, EMPTY = object(), object(), object()


def paths_in(document: Any, at: Path = ()) -> list[Path]:
    """Where values stand in a document, in its order."""
    items = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path for key, value in items for path in ((*at, key), *paths_in(value, (*at, key)))]


def damaged(document: Any, most: int = 3) -> st.SearchStrategy[Any]:
    """Copies of the document with one to `most` damages. Most damages keep the type of what was there, for a reader
    that checks types would refuse the others at once."""
    by_shape: dict[Path, list[Path]] = {}
    alike: dict[type, list[Any]] = {}
    #: Keys of one name hold values of one kind.
    namesakes: dict[tuple[type, str | int], list[_Borrowed]] = {}
    for path in paths_in(document):
        value = _at(document, path)
        # Of a hundred equal rows a few tell all: those with the same keys but for numbers count as one.
        by_shape.setdefault(tuple("#" if isinstance(key, int) else key for key in path), []).append(path)
        alike.setdefault(type(value), [each for each in ODD if type(each) is type(value)])
        namesakes.setdefault((type(value), path[-1]), []).append(_Borrowed(path))
    shapes = sorted(by_shape, key=str)
    anything = st.sampled_from([DELETE, DOUBLE, EMPTY, *ODD])

    @functools.cache
    def damage(path: Path) -> st.SearchStrategy[tuple[Path, Any]]:
        value = _at(document, path)
        structural = [DELETE, EMPTY, *([DOUBLE] if isinstance(value, list) else [])]
        kept = st.sampled_from([*alike[type(value)], *namesakes[type(value), path[-1]], *structural])
        # One in eight is anything at all.
        return st.tuples(st.just(path), st.integers(0, 7).flatmap(lambda number: kept if number else anything))

    place = st.sampled_from(shapes).flatmap(lambda shape: st.sampled_from(by_shape[shape][:4]))
    return st.lists(place.flatmap(damage), min_size=1, max_size=most).map(lambda some: _with(document, some))


class _Borrowed:
    """The value at another place of the document."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"the value at {self.path}"


def _with(document: Any, damages: list[tuple[Path, Any]]) -> Any:
    made = copy.deepcopy(document)
    for path, value in damages:
        try:
            holder = _at(made, path[:-1])
            before = holder[path[-1]]
        except (KeyError, IndexError, TypeError):
            # An earlier damage took the place away.
            continue
        if isinstance(holder, str):
            # Or put a text there, which has places too.
            continue
        if value is DELETE:
            del holder[path[-1]]
        elif value is DOUBLE:
            holder[path[-1]] = [*before, *before] if isinstance(before, list) else [before, before]
        elif value is EMPTY:
            holder[path[-1]] = type(before)() if before is not None else None
        else:
            holder[path[-1]] = copy.deepcopy(_at(document, value.path)) if isinstance(value, _Borrowed) else value
    return made


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document
