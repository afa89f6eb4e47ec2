"""What a group of kernels is known by, what shows that a library kernel was exchanged, and time by modules."""

from typing import Any, ClassVar, Generic, Literal, TypeVar

from msgspec import Struct

from tracekit.model.statement import Statement

#: Work that libraries do, and the families that are told by names alone.
WorkKind = Literal["product", "attention", "convolution"]
NamedFamily = Literal[
    "gemm", "attention", "convolution", "communication", "memcpy", "memset", "element_wise"
]  # fmt: skip


class KernelCounts(Struct, frozen=True):
    """How many kernels of one side do the work once, or of a CPU operators: `count` in all, `generated` of them
    Inductor's (Triton, on a CPU C++), and how many of each kind of library kernel, in order of their names."""

    count: int
    generated: int
    libraries: tuple[tuple[WorkKind, int], ...]
    on_cpu: bool = False


class GroupLabel(Struct, frozen=True):
    """A changed group: `report/words/groups.py` writes it.

    `kind` is what became of it. `before` and `after` are A's and B's kernels of one repeat, None where a side has none.
    `operators` are what asked for them, `more_operators` whether there are more than are named. `family` is that of
    groups that were told by names alone, of which nothing else is known.
    """

    kind: str
    repeats: float = 1
    before: KernelCounts | None = None
    after: KernelCounts | None = None
    operators: tuple[str, ...] = ()
    more_operators: bool = False
    family: NamedFamily | None = None


#: An unchanged group is known by its kernel's name. Parts of a waterfall that are no group have a code.
Label = GroupLabel | str


def label_order(label: Label) -> tuple[str, ...]:
    """By which labels are sorted where nothing else tells them apart."""
    return ("", label) if isinstance(label, str) else (label.kind, label.family or "", repr(label))


EvidenceKind = Literal[
    "attention_lost",
    "single_precision",
    "epilogue_lost",
    "other_operator",
    "inputs_prepared",
    "split_along_k",
    "other_kernel",
    "channels_moved_last",
    "attention_asked_otherwise",
    "same_kernel_other_time",
]

T_co = TypeVar("T_co", covariant=True)


class Change(Struct, Generic[T_co], frozen=True):
    """What differs between the two sides."""

    before: T_co
    after: T_co


class WrittenEvidence(Struct, frozen=True):
    """One thing that differs between the two sides of a group, as JSON holds it."""

    kind: EvidenceKind
    facts: dict[str, Any]  #: Figures and names, with units in their keys.


class Evidence(Statement):
    """One thing that differs between the two sides of a group."""

    code: ClassVar[EvidenceKind]
    as_written = WrittenEvidence

    def written(self) -> WrittenEvidence:
        return WrittenEvidence(self.code, self.facts)


class ModuleTime(Struct, frozen=True):
    """A module of the model with all that it holds. Figures are per step, those of `children` included.

    Work that spans modules is the work of the module that holds them all, work of no known module that of the root.
    """

    path: str  #: Dotted, `*` for the numbers of blocks that repeat; empty for the root.
    a_us: float
    b_us: float
    delta_us: float
    a_kernels: float
    b_kernels: float
    groups: tuple[int, ...]  #: Positions in the comparison's `groups` of its own work, the largest change first.
    children: "tuple[ModuleTime, ...]"  #: The largest change first.
