"""What a GPU did in one step, activity by activity, and which operator asked for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tracekit.model.rates import NotedCall


@dataclass(frozen=True, slots=True)
class Operator:
    """One call of an operator: its name (`aten::addmm`), and the sizes and types of its inputs as recorded.

    `dims[i]` is the shape of input i, empty for what is no tensor; `dtypes[i]` its type as the profiler writes it
    (`c10::BFloat16`). The tensors of a list stand one by one, each of the type `TensorList`. Both are empty where
    shapes were not recorded. `values[i]` is input i as the profiler writes it where it is no tensor (`[2, 2]`, `True`),
    known of convolutions and attention alone: empty for other operators. It is not compared: two calls may differ in a
    seed. `strides[i]` is how many elements apart neighbours of each dimension of input i lie, known of the same
    operators; it is not compared either: work laid out otherwise is the same work.
    """

    name: str
    dims: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    values: tuple[str, ...] = field(default=(), compare=False)
    strides: tuple[tuple[int, ...], ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class Activity:
    """A kernel, copy or set, in the order in which they were launched (inside a CUDA graph: started).

    `duration_us` is the mean over the steps that ran the same sequence. `operator` is the innermost operator around the
    launch; None where the recording holds none (CUDA activity only, replays of CUDA graphs). `within` are the names of
    the operators around the launch, the outermost first, `operator`'s the last. Activities that follow one another with
    the same `call` were launched by one call of the outermost one, and those with the same `operator_call` by one call
    of `operator`; both are None where no operator is known. `noted` is what torch itself said of the call, where it was
    asked.
    """

    name: str
    family: str
    duration_us: float
    operator: Operator | None
    within: tuple[str, ...] = ()
    call: int | None = None
    operator_call: int | None = None
    noted: NotedCall | None = None


#: Where the operators come from: the recording itself, the rich recording of the same form, another trace of the same
#: model that was given for it, or nowhere.
OperatorSource = Literal["own", "rich", "lent", "none"]


@dataclass(frozen=True, slots=True)
class Sequence:
    """All activities of one side, in order.

    When every step ran the same sequence, `activities` is that of one step and `per_step` is 1; else those of all steps
    follow one another and `per_step` is one over their number. A figure per step is `per_step` times the sum. `starts`
    are then the positions at which steps begin; empty where it is one step, or they are not known.
    """

    activities: tuple[Activity, ...]
    per_step: float
    operators: OperatorSource
    starts: tuple[int, ...] = ()
