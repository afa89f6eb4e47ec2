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
