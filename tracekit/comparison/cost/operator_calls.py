"""Which activities did one operator call launch, and how much did the call move and compute?

By estimate from the sizes of inputs, unless the run's tagging pass noted the call: that saw the tensors themselves, so
that lists of tensors, results and the operations by torch's own formula are exact.
"""

from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from tracekit.comparison.cost.flops import flops_of, is_counted
from tracekit.comparison.cost.traffic import bytes_of
from tracekit.comparison.matching.common_subsequence import places_in_table
from tracekit.comparison.matching.operators import Dims, is_library
from tracekit.model.comparison import Side
from tracekit.model.dtypes import ELEMENT_BYTES
from tracekit.model.provenance import EagerOp, EagerOps
from tracekit.model.sequence import Activity, NotedCall, Operator
from tracekit.names import plain_name

#: Operators that touch some rows of a tensor: the bytes of all of it say nothing.
PICKING = ("embedding", "gather", "index", "scatter", "take", "put")
#: Operators that overwrite what they are given, unread.
OVERWRITING = ("copy", "fill", "zero", "normal", "uniform", "random", "bernoulli", "exponential")
#: Numbers of calls that no recording has numbered start here, and meet none that it has.
UNNUMBERED = -(1 << 62)


class Call(Struct, frozen=True):
    """One operator call and what it launched; an activity of no known call is one by itself."""

    activities: tuple[Activity, ...]

    @property
    def operator(self) -> Operator | None:
        return self.activities[0].operator

    @property
    def noted(self) -> NotedCall | None:
        return self.activities[0].noted

    @property
    def duration_us(self) -> float:
        return sum(each.duration_us for each in self.activities)

    @property
    def bytes(self) -> int | None:
        """Memory traffic as torch noted it, else as the recorded sizes say; None where neither does."""
        if self.noted and self.noted.bytes is not None:
            return self.noted.bytes
        output = self.noted.output if self.noted else None
        return _worked_out(bytes_of, self.operator, self.operator.strides, output) if self.operator else None

    @property
    def flops(self) -> int | None:
        """Operations as torch noted them, else as the recorded sizes say; None where neither does."""
        if self.noted and self.noted.flops is not None:
            return self.noted.flops
        output = self.noted.output if self.noted else None
        return _worked_out(flops_of, self.operator, self.operator.values, output) if self.operator else None


@cache
def _worked_out(
    of: Callable[[Operator, Dims | None], int | None], operator: Operator, unequal: object, output: Dims | None
) -> int | None:
    """Once for all calls that are alike, also in what operators are equal without."""
    return of(operator, output)


def find_calls(activities: Sequence[Activity]) -> dict[int, Call]:
    """Each operator call once, however many kernels it launched, by the position of its main one: the library kernel,
    else the longest. In the order of their first activities."""
    found: list[list[int]] = []
    open_: dict[int, list[int]] = {}
    for at, activity in enumerate(activities):
        own = open_.get(activity.operator_call) if activity.operator_call is not None else None
        # A step that was repeated begins with the very same activity again.
        if own is None or activities[own[0]] is activity:
            own = []
            found.append(own)
        own.append(at)
        if activity.operator_call is not None:
            open_[activity.operator_call] = own
    calls: dict[int, Call] = {}
    for some in found:
        one = len(some) == 1
        main = some[0] if one else max(some, key=lambda at: (is_library(activities[at]), activities[at].duration_us))
        calls[main] = Call(tuple(activities[at] for at in some))
    return calls


def note_calls(side: Side) -> Side:
    """The side with `noted` at every activity whose operator call the run's tagging pass knows."""
    if side.sequence is None or not isinstance(side.provenance, EagerOps):
        return side
    activities = list(side.sequence.activities)
    eager, steps = side.provenance, max(round(1 / side.sequence.per_step), 1)
    # Each operator of each step, with the positions of what it launched.
    launched: dict[tuple[int, int], list[int]] = {}
    step, before = 0, -1
    places = places_in_table([each.name for each in activities], [each.name for each in eager.activities], steps)
    for at, place in enumerate(places):
        if place is not None:
            step, before = step + (place < before), place
            if (asked := eager.activities[place].op) is not None:
                launched.setdefault((step, asked), []).append(at)
    for number, ((_, asked), positions) in enumerate(launched.items()):
        op = eager.ops[asked]
        # What the recording has no operator for is one call of the operator, by a number of its own.
        calls: dict[int, list[int]] = {}
        for at in positions:
            call = activities[at].operator_call
            calls.setdefault(UNNUMBERED + number if call is None else call, []).append(at)
        # The call that the operator is there for: the only one, or the only product, attention or convolution of them.
        first = {call: activities[some[0]].operator for call, some in calls.items()}
        likely = [call for call, each in first.items() if len(calls) == 1 or (each and is_counted(each.name))]
        main = likely[0] if len(likely) == 1 else None
        sizes = op.outputs[0].sizes if op.outputs else (None,)
        output = tuple(size for size in sizes if size is not None) if None not in sizes else None
        for call, some in calls.items():
            # What an operator moves that runs several others is more than its own inputs and results.
            moved = bytes_of_noted(op) if len(calls) == 1 else None
            noted = NotedCall(moved, op.flops, output) if call == main else None
            for at in some:
                activities[at] = replace(activities[at], operator_call=call, noted=noted)
    return replace(side, sequence=replace(side.sequence, activities=tuple(activities)))


def bytes_of_noted(op: EagerOp) -> int | None:
    """Bytes that the operator read and wrote; None where those of its tensors do not say: it picks rows, or says
    nothing of what it writes."""
    name = plain_name(op.name)
    sizes = [(each.numel(), ELEMENT_BYTES.get(each.dtype)) for each in op.outputs]
    known = [count * width for count, width in sizes if count is not None and width is not None]
    if len(known) < len(sizes) or not sum(known) or any(word in name for word in PICKING):
        return None
    # What is only written stands among the arguments too.
    overwrites = name in OVERWRITING and op.name.split(".")[1].endswith("_")
    return op.bytes - sum(known) if overwrites or op.name.endswith("out") else op.bytes
