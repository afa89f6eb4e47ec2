"""What is to be known of the recordings of ranks."""

from collections.abc import Sequence

from tracekit.numbers import counted, duration
from tracekit.ranks.job_figures import RankNote, Unmatched
from tracekit.ranks.statements.words import WHY_UNMATCHED, Said, ranges


class LeftOut(RankNote):
    """A recording that is no part of the job's, for what `fault` says."""

    usual_severity = "error"


class OtherJob(LeftOut):
    code = "other_job"
    fault = "foreign"
    says = "{subject} is of a job of {size:,} ranks, the others of {usual_size:,}: left out."
    subject: str
    rank: int | None
    size: int
    usual_size: int


class OtherTime(LeftOut):
    code = "other_time"
    fault = "foreign"
    subject: str
    rank: int | None
    apart_us: float

    def long(self) -> str:
        when = "before" if self.apart_us < 0 else "after"
        apart = f"{abs(self.apart_us) / 60e6:,.0f} min {when}"
        return f"{self.subject} was recorded {apart} the others of its host: left out."


class Foreign(LeftOut):
    code = "foreign"
    fault = "foreign"
    says = (
        "{subject} shares no collective with its group at one moment: another job, another part of this one,"
        " or a clock that jumped. Left out."
    )
    subject: str
    rank: int


class Unreadable(LeftOut):
    code = "unreadable"
    fault = "unreadable"
    says = "Left out: {reason}."
    reason: str


class RankUnknown(LeftOut):
    code = "rank_unknown"
    fault = "of no known rank"
    says = "{subject} does not say its rank, and its name does not: left out."
    subject: str


class RankTwice(LeftOut):
    code = "rank_twice"
    fault = "duplicate"
    says = "{subject} is rank {rank} too: left out, {kept} counts."
    subject: str
    rank: int
    kept: str


class RanksNumbered(RankNote):
    code = "ranks_numbered"
    says = "No recording says its rank: ranks are numbered in the order of the files."
    count: int


class RankDamaged(RankNote):
    code = "rank_damaged"
    subject: str
    rank: int
    truncated: bool
    skipped: int

    def long(self) -> str:
        damaged = "cut off" if self.truncated else "damaged"
        skipped = f"; {counted(self.skipped, 'event')} left out" if self.skipped else ""
        return f"Rank {self.rank}'s recording is {damaged} ({self.subject}{skipped})."


class WithOperators(RankNote):
    code = "with_operators"
    usual_severity = "info"
    says = (
        "Read are the recordings with operators, which slow the host more; `tracekit compare` takes waiting"
        " from those without."
    )


class StepsDiffer(Said, RankNote):
    code = "steps_differ"
    says = "Ranks recorded unequally many steps: {usual} usually, not ranks {ranks:ranges}."
    usual: int
    ranks: Sequence[int]


class RanksMissing(RankNote):
    code = "ranks_missing"
    missing: int
    size: int
    ranks: Sequence[int]

    def long(self) -> str:
        are = "is" if self.missing == 1 else "are"
        return (
            f"{self.missing:,} of {self.size:,} ranks {are} missing ({ranges(self.ranks)}): lateness is relative to the"
            " recorded ranks."
        )


class OneRank(RankNote):
    code = "one_rank"
    says = "One rank alone cannot tell transfer from waiting for other ranks: name the recordings of all ranks."
    rank: int
    size: int | None


class NotTested(Said, RankNote):
    code = "not_tested"
    usual_severity = "info"
    says = (
        "{steps:counted step}: whether a rank, host or link is slow beyond chance is not tested, which takes {least}"
        " steps."
    )
    steps: int
    least: int


class NoCollectives(RankNote):
    """It is the answer where there is no other."""

    code = "no_collectives"
    says = "No communication kernels: nothing is known of waiting."


class ClocksUnknown(RankNote):
    code = "clocks_unknown"
    says = "Clocks of the ranks could not be aligned: waiting is a lower bound, nobody is called late."
    hosts: int


class StartSkew(Said, RankNote):
    code = "start_skew"
    usual_severity = "info"
    says = "Rank {rank} waited {most_us:duration} for others to start recording; that is in no figure."
    rank: int
    most_us: float


class PartsMissing(Said, RankNote):
    code = "parts_missing"
    says = (
        "{count} of {of:counted collective} lack a recorded rank's part: lateness there is relative to the other ranks."
    )
    count: int
    of: int


class UnmatchedCollectives(RankNote):
    code = "unmatched_collectives"
    count: int
    total_us: float
    reason: Unmatched  #: Of most of them.
    of: int

    def long(self) -> str:
        which = f"{counted(self.count, 'collective')} ({duration(self.total_us)})"
        # Recordings that share few are hardly of one job.
        doubt = " Are all recordings of one job and the same steps?" if self.count > self.of / 2 else ""
        return f"{which} matched with no other rank: {WHY_UNMATCHED[self.reason]}.{doubt}"
