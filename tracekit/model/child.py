"""What a fresh process is asked to do for a run, and what it found. Both go through files as JSON."""

from msgspec import Struct

from tracekit.model.bounded import Many, Microseconds, Some
from tracekit.model.gpu import FormMemory, GpuState
from tracekit.model.run import CompileFacts, FormName
from tracekit.model.timing import ProcessTimes, StoppingRule
from tracekit.model.workload import Request


class ChildJob(Struct, frozen=True):
    """Build this workload, warm these forms up and, if there is a rule, time them by it in an order that `order_seed`
    draws."""

    request: Request
    size: str
    device: str
    forms: tuple[FormName, ...]
    rule: StoppingRule | None
    order_seed: int


class ChildForm(Struct, frozen=True):
    """One form in a fresh process."""

    name: FormName
    warmup_us: Some[Microseconds]  #: Its calls until it was quiet.
    compilation: CompileFacts | None
    times: ProcessTimes | None  #: Its timed calls, where there were any.
    memory: FormMemory | None = None  #: In cells of a sweep alone.
    gpu_state: GpuState | None = None  #: In cells of a sweep alone.


class ChildResult(Struct, frozen=True):
    """What the process found. `load_seconds` is importing torch and the model's libraries and building the model."""

    load_seconds: float
    forms: Many[ChildForm]


#: Beside a job of several ranks: what a rank says at its end, a RankFailure or null, and where one stood that was told
#: to end.
END_OF_RANK, STANDS_OF_RANK = "end-rank{}.json", "stands-rank{}.txt"


class LaunchedJob(Struct, frozen=True):
    """What the launcher must know of a job."""

    nproc: int


class RankFailure(Struct, frozen=True):
    """What became of one rank of a job that failed."""

    rank: int
    message: str | None = None  #: Its error in one line; None where it raised none.
    traceback: str = ""
    below: tuple[str, ...] = ()
    at: float = 0.0  #: When it failed, seconds since 1970.
    exit_code: int | None = None  #: Negative: a signal; None: it ran on until the launcher stopped it.
    out_of_memory: bool = False
    timed_out: bool = False  #: It had waited for other ranks in vain.
    waited_for: tuple[int, ...] = ()  #: For these, where that is known.
    lost_another: bool = False  #: Its connection to another rank was lost.
    stands: str = ""  #: Where it stood when it was told to end, as `faulthandler` writes it.
    seconds: float = 0.0  #: How long the job had run.
