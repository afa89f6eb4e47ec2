"""Several comparisons side by side. Field names are those of the JSON contract `tracekit.comparisons/1`."""

from msgspec import Struct

from tracekit.model.comparison import Comparison, Side
from tracekit.model.note import Note, note_sentences


class Comparisons(Struct, frozen=True):
    """Several ways to compile the same work, each compared with the eager form of its own process. `told_apart_by` is
    at least what eager code differed by from process to process."""

    comparisons: tuple[Comparison, ...]  #: Of one run each; compiled sides' labels tell them apart.
    paths: tuple[str, ...]  #: Of the runs.
    alike: bool  #: The runs differ in how they compile alone: one eager form then stands for all.
    notes: tuple[Note, ...]  #: What a reader must know before setting one run beside another.
    fastest: tuple[int, ...]  #: The largest certain speed-up, and all that cannot be told from it.
    told_apart_by: float | None = None  #: The share that must lie between two intervals (0.1 = 10 %).

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(each.b.label for each in self.comparisons)

    @property
    def warnings(self) -> tuple[str, ...]:
        return note_sentences(self.notes)

    @property
    def leader(self) -> int | None:
        """The place of the largest speed-up that is certain; None where none is faster than eager."""
        faster = [at for at in self.fastest if self.comparisons[at].verdict.result == "faster"]
        return max(faster, key=lambda at: self.comparisons[at].verdict.speedup or 0.0, default=None)

    @property
    def not_judged(self) -> tuple[int, ...]:
        """The places of those of which nobody can say how fast they are: something was compiled inside their timed
        calls, or there are too few."""
        every = enumerate(self.comparisons)
        return tuple(at for at, each in every if each.compiled_while_timed or each.verdict.ci95 is None)

    @property
    def sides(self) -> tuple[Side, ...]:
        """The columns of a report: one eager form where the runs are alike, else each run's own beside its compiled
        one."""
        if self.alike:
            return (self.comparisons[0].a, *(each.b for each in self.comparisons))
        return tuple(side for each in self.comparisons for side in (each.a, each.b))

    def of(self, side: Side) -> Comparison | None:
        """The comparison of a compiled side with the eager form of its process; None for an eager one."""
        return next((each for each in self.comparisons if each.b is side), None)
