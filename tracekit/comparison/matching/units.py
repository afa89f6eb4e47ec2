"""A sequence cut into units: all that one operator call launched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby

from tracekit.comparison.matching.library import KIND_OF_FAMILY, is_helper
from tracekit.comparison.matching.operators import (
    Kind,
    done_by_kernel,
    kind_of_operator,
    short_name,
    size_of,
    sizes_in,
    triton_operators,
    without_number,
)
from tracekit.model.sequence import Activity, Sequence

#: Element-wise work that a library operator does with a kernel of its own, and a fused kernel could do instead.
OWN_WORK = ("pointwise",)


@dataclass(frozen=True, slots=True)
class Unit:
    """Positions that follow one another, and what they do.

    An anchor has a `kind`, and a `size` where shapes are known. `words` are the names of the operators around it, and
    `fused` the operators that a Triton kernel's name lists. `sizes` are the numbers of elements of all inputs.
    `signature` is the same for units that do the same with the same kernels. `own` units are element-wise work that a
    library operator does beside its library kernel, in the same `call`.
    """

    positions: tuple[int, ...]
    kind: Kind | None
    size: tuple[int, ...] | None
    words: frozenset[str]
    fused: str | None
    sizes: frozenset[int]
    signature: Signature
    call: int | None = None
    own: bool = False

    @property
    def copies(self) -> bool:
        """Whether the driver's copies or sets are among it, which no other kernel does."""
        return any(name.startswith(("Memcpy", "Memset")) for name in self.signature.names)


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """Names of kernels, and the operators that launched them with their inputs' shapes. There is one of each."""

    names: tuple[str, ...]
    operators: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]


def cut_into_units(sequence: Sequence, *, by_kernel: bool = False) -> tuple[Unit, ...]:
    """Every position in exactly one unit, in order.

    With `by_kernel` calls and shapes count for nothing, as on a side that knows neither: the other is cut as it is.
    """
    if by_kernel:
        bare = tuple(replace(each, operator=None, call=None) for each in sequence.activities)
        sequence = replace(sequence, activities=bare)
    return tuple(
        _unit(tuple(positions), sequence)
        for call in _calls(sequence.activities)
        for positions in _without_own_work(call, sequence.activities)
    )


def _calls(activities: tuple[Activity, ...]) -> Iterator[list[int]]:
    """Positions by call of the outermost operator; where none is known, by kernel with its helpers."""
    for call, some in groupby(range(len(activities)), key=lambda at: activities[at].call):
        positions = list(some)
        if call is not None:
            yield positions
        else:
            yield from _by_kernel(positions, activities)


def _by_kernel(positions: list[int], activities: tuple[Activity, ...]) -> Iterator[list[int]]:
    """A library kernel with the helpers before and behind it; every other kernel alone."""
    held: list[int] = []
    for at in positions:
        library = any(_is_main(activities[each]) for each in held)
        if is_helper(activities[at].name):
            # What sums parts up or lays them out stands behind the library kernel, what clears memory before it.
            if library and activities[at].family == "memset":
                yield held
                held = []
            held.append(at)
        elif held and not library and activities[at].family in KIND_OF_FAMILY:
            held.append(at)
        else:
            if held:
                yield held
            held = [at]
            if activities[at].family not in KIND_OF_FAMILY:
                yield held
                held = []
    if held:
        yield held


def _is_main(activity: Activity) -> bool:
    return activity.family in KIND_OF_FAMILY and not is_helper(activity.name)


def _without_own_work(call: list[int], activities: tuple[Activity, ...]) -> Iterator[list[int]]:
    """A library operator's element-wise kernels (a bias that is added) apart from the rest of it."""
    if not any(_kind_of(activities[at]) for at in call):
        yield call
        return
    for _, some in groupby(call, key=lambda at: _is_own_work(activities[at])):
        yield list(some)


def _is_own_work(activity: Activity) -> bool:
    operator = activity.operator
    return activity.family in OWN_WORK and operator is not None and kind_of_operator(operator.name) is None


def _kind_of(activity: Activity) -> Kind | None:
    """The library work the activity was asked for; by its kernel's name where no operator is known."""
    if activity.operator is None:
        return KIND_OF_FAMILY.get(activity.family)
    return next((kind for kind in map(kind_of_operator, activity.within) if kind), None)


def _unit(positions: tuple[int, ...], sequence: Sequence) -> Unit:
    activities = [sequence.activities[at] for at in positions]
    operators = tuple(dict.fromkeys(each.operator for each in activities if each.operator))
    own = all(map(_is_own_work, activities)) and any(map(_kind_of, activities))
    kinds = [] if own else [kind for kind in map(_kind_of, activities) if kind]
    names = tuple(without_number(each.name) for each in activities)
    return Unit(
        positions=positions,
        kind=kinds[0] if kinds else None,
        size=next(filter(None, map(size_of, operators)), None) if kinds else None,
        words=frozenset().union(*map(_words_of, activities)),
        fused=next(filter(None, (triton_operators(each.name) for each in activities)), None),
        sizes=frozenset().union(*map(sizes_in, operators)),
        signature=_signature(names, tuple((without_number(each.name), each.dims) for each in operators)),
        call=activities[0].call,
        own=own,
    )


def _words_of(activity: Activity) -> frozenset[str]:
    return _words(activity.within) if activity.within else done_by_kernel(activity.name)


@cache
def _words(within: tuple[str, ...]) -> frozenset[str]:
    return frozenset(short_name(each) for each in within if not each.startswith("triton_"))


@cache
def _signature(names: tuple[str, ...], operators: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]) -> Signature:
    """One object for equal ones, which makes comparing them quick."""
    return Signature(names, operators)
