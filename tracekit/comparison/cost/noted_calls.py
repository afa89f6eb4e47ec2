"""What torch noted of the eager form's operator calls, beside the activities that they launched.

The tagging pass saw the tensors themselves, where a recording holds the sizes of inputs alone: lists of tensors,
results and the operations by torch's own formula are exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tracekit.comparison.cost.flops import is_counted
from tracekit.comparison.matching.named_launches import align
from tracekit.comparison.matching.plain_names import plain_name
from tracekit.model.comparison import Side
from tracekit.model.dtypes import ELEMENT_BYTES
from tracekit.model.provenance import EagerOp, EagerOps, TensorShape
from tracekit.model.rates import NotedCall
from tracekit.model.sequence import Activity

#: Operators that touch some rows of a tensor: the bytes of all of it say nothing.
PICKING = ("embedding", "gather", "index", "scatter", "take", "put")
#: Operators that overwrite what they are given, unread.
OVERWRITING = frozenset("copy fill zero normal uniform random bernoulli exponential".split())

#: Numbers of calls that no recording has numbered, apart from those it has.
UNNUMBERED = -(1 << 62)

#: An eager operator (a position in `EagerOps.ops`) in one of the steps that follow one another.
Asked = tuple[int, int]


def note_calls(side: Side) -> Side:
    """The side with `noted` at every activity whose operator call the run's tagging pass knows."""
    if side.sequence is None or not isinstance(side.provenance, EagerOps):
        return side
    ops, activities = side.provenance.ops, list(side.sequence.activities)
    steps = max(round(1 / side.sequence.per_step), 1)
    for number, (asked, positions) in enumerate(_launched(activities, side.provenance, steps).items()):
        op = ops[asked[1]]
        inner = _inner_calls(activities, positions, UNNUMBERED + number)
        for call, some in inner.items():
            noted = _noted(op, _is_main(activities[some[0]], inner, activities), alone=len(inner) == 1)
            for at in some:
                activities[at] = replace(activities[at], operator_call=call, noted=noted)
    return replace(side, sequence=replace(side.sequence, activities=tuple(activities)))


def _launched(activities: Sequence[Activity], eager: EagerOps, steps: int) -> dict[Asked, list[int]]:
    """The positions of what each operator launched."""
    found: dict[Asked, list[int]] = {}
    step, before = 0, -1
    places = align([each.name for each in activities], [each.name for each in eager.activities], steps)
    for at, place in enumerate(places):
        if place is None:
            continue
        step, before = step + (place < before), place
        op = eager.activities[place].op
        if op is not None:
            found.setdefault((step, op), []).append(at)
    return found


def _inner_calls(activities: Sequence[Activity], positions: Iterable[int], number: int) -> dict[int, list[int]]:
    """What was launched by each call that the recording tells apart inside of the operator; what it has no operator for
    is one call, by this number."""
    found: dict[int, list[int]] = {}
    for at in positions:
        call = activities[at].operator_call
        found.setdefault(number if call is None else call, []).append(at)
    return found


def _is_main(activity: Activity, inner: Mapping[int, list[int]], activities: Sequence[Activity]) -> bool:
    """Whether the call is the one that the operator is there for: the only one, or the only product, attention or
    convolution among them."""
    counted = [some for some in inner.values() if _counts(activities[some[0]])]
    return len(inner) == 1 or (len(counted) == 1 and _counts(activity))


def _counts(activity: Activity) -> bool:
    return activity.operator is not None and is_counted(activity.operator.name)


def _noted(op: EagerOp, main: bool, *, alone: bool) -> NotedCall | None:
    """What an operator moves that runs several others is more than its own inputs and results."""
    if not main:
        return None
    sizes = op.outputs[0].sizes if op.outputs else ()
    whole = tuple(size for size in sizes if size is not None)
    output = whole if op.outputs and len(whole) == len(sizes) else None
    return NotedCall(bytes_of_noted(op) if alone else None, op.flops, output)


def bytes_of_noted(op: EagerOp) -> int | None:
    """Bytes that the operator read and wrote; None where those of its tensors do not say: it picks rows, or says
    nothing of what it writes."""
    name = plain_name(op.name)
    written = _bytes(op.outputs)
    if not written or any(word in name for word in PICKING):
        return None
    # What is only written stands among the arguments too.
    overwrites = name in OVERWRITING and op.name.split(".")[1].endswith("_")
    return op.bytes - written if overwrites or op.name.endswith("out") else op.bytes


def _bytes(tensors: Sequence[TensorShape]) -> int | None:
    sizes = [(each.numel(), ELEMENT_BYTES.get(each.dtype)) for each in tensors]
    known = [count * width for count, width in sizes if count is not None and width is not None]
    return sum(known) if len(known) == len(sizes) else None
