"""A sequence cut into units: all that one operator call launched."""

from collections.abc import Iterator
from functools import cache
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.matching.operators import (
    KIND_OF_FAMILY,
    Kind,
    is_helper,
    kernel_epilogue,
    kind_of_operator,
    operator_epilogue,
    operators_of_kernel,
    size_of,
    sizes_in,
    triton_operators,
    without_number,
)
from tracekit.model.sequence import Activity, Sequence
from tracekit.names import plain_name


class Signature(Struct, frozen=True, eq=False):
    """Names of kernels, and the operators that launched them with their inputs' shapes."""

    names: tuple[str, ...]
    operators: tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]


#: One object for equal ones, which makes comparing them quick.
signature_of = cache(Signature)


class Unit(Struct, frozen=True):
    """Positions that follow one another, and what they do.

    A library call has a `kind`, and a `size` where shapes are known. `words` are the names of the operators around it,
    and `fused` the operators that a Triton kernel's name lists. `sizes` are the numbers of elements of all inputs.
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

    @property
    def epilogue(self) -> frozenset[str]:
        """What a library call may do beside its product."""
        asked = (operator_epilogue(name) for name, _ in self.signature.operators)
        return frozenset().union(*asked, *map(kernel_epilogue, self.signature.names))


def cut_into_units(sequence: Sequence, *, by_kernel: bool = False) -> tuple[Unit, ...]:
    """Every position in exactly one unit, in order.

    With `by_kernel` calls and shapes count for nothing, as on a side that knows neither: the other is cut as it is.
    """
    if by_kernel:
        bare = tuple(replace(each, operator=None, call=None) for each in sequence.activities)
        sequence = replace(sequence, activities=bare)
    activities = sequence.activities
    units: list[Unit] = []
    # By call of the outermost operator; where none is known, by kernel with its helpers.
    calls: list[list[int]] = []
    for call, group in groupby(range(len(activities)), key=lambda at: activities[at].call):
        positions = list(group)
        calls += _by_kernel(positions, activities) if call is None else [positions]
    like = first_alike(activities)
    kinds, own = ({at: told(activities[at]) for at in set(like)} for told in (_kind_of, _is_own_work))
    known: dict[tuple[int, ...], Unit] = {}
    for positions in calls:
        # A library operator's element-wise kernels (a bias that is added) are units of their own.
        in_library = any(kinds[like[at]] for at in positions)
        for _, group in groupby(positions, key=lambda at: in_library and own[like[at]]):
            some = tuple(group)
            if (unit := known.get(key := tuple(like[at] for at in some))) is None:
                unit = known[key] = _unit(key, activities)
            units.append(replace(unit, positions=some, call=activities[some[0]].call))
    return tuple(units)


def first_alike(activities: tuple[Activity, ...]) -> list[int]:
    """For each activity the position of the first that is like it in all but its time and its call: of a million most
    are alike, and what is asked of one need not be asked of the others."""
    firsts: dict[tuple[str, str, int, int], int] = {}
    told = ((each.name, each.family, id(each.operator), id(each.within)) for each in activities)
    return [firsts.setdefault(key, at) for at, key in enumerate(told)]


def _by_kernel(positions: list[int], activities: tuple[Activity, ...]) -> Iterator[list[int]]:
    """A library kernel with the helpers before and behind it; every other kernel alone."""
    held: list[int] = []
    for at in positions:
        family, helps = activities[at].family, is_helper(activities[at].name)
        has_library = any(
            activities[each].family in KIND_OF_FAMILY and not is_helper(activities[each].name) for each in held
        )
        # What sums parts up or lays them out stands behind the library kernel, what clears memory before it.
        belongs = not (has_library and family == "memset") if helps else not has_library and family in KIND_OF_FAMILY
        if held and not belongs:
            yield held
            held = []
        held.append(at)
        if not helps and family not in KIND_OF_FAMILY:
            yield held
            held = []
    if held:
        yield held


def _is_own_work(activity: Activity) -> bool:
    """Element-wise work that a library operator does with a kernel of its own, and a fused kernel could do instead."""
    operator = activity.operator
    return activity.family == "pointwise" and operator is not None and kind_of_operator(operator.name) is None


def _kind_of(activity: Activity) -> Kind | None:
    """The library work the activity was asked for; by its kernel's name where no operator is known."""
    if activity.operator is None:
        return KIND_OF_FAMILY.get(activity.family)
    return next((kind for kind in map(kind_of_operator, activity.within) if kind), None)


def _unit(positions: tuple[int, ...], sequence: tuple[Activity, ...]) -> Unit:
    activities = [sequence[at] for at in positions]
    operators = tuple(dict.fromkeys(each.operator for each in activities if each.operator))
    own = all(map(_is_own_work, activities)) and any(map(_kind_of, activities))
    kinds = [kind for each in activities if (kind := _kind_of(each)) and not own]
    names = tuple(without_number(each.name) for each in activities)
    asked = {each.within for each in activities}
    named = (plain_name(name) for within in asked for name in within if not name.startswith("triton_"))
    return Unit(
        positions=positions,
        kind=kinds[0] if kinds else None,
        size=next(filter(None, map(size_of, operators)), None) if kinds else None,
        words=frozenset(named).union(*(operators_of_kernel(each.name) for each in activities if not each.within)),
        fused=next(filter(None, (triton_operators(each.name) for each in activities)), None),
        sizes=frozenset().union(*map(sizes_in, operators)),
        signature=signature_of(names, tuple((without_number(each.name), each.dims) for each in operators)),
        call=activities[0].call,
        own=own,
    )
