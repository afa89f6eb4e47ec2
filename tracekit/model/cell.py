"""A cell: one set of settings timed in a process of its own, without recordings. What it is asked and what it did."""

from msgspec import Struct

from tracekit.model.bounded import Many, Seconds, Text
from tracekit.model.child import ChildForm
from tracekit.model.run import Environment, FormName, Settings
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import Request


class CellJob(Struct, frozen=True):
    """What a cell's process is asked to do. None leaves the timing's rule to the workload and the machine."""

    request: Request
    forms: tuple[FormName, ...]
    target_percent: float | None
    budget_seconds: float | None
    order_seed: int


class Source(Struct, frozen=True):
    """A file that a model is made of and that its owner may change."""

    name: Text  #: Its place from where the command was typed, or in its repository.
    sha256: Text


class CellRun(Struct, frozen=True):
    """What a cell's process did."""

    settings: Settings
    size_reason: Text
    environment: Environment
    load_seconds: Seconds  #: Importing, also where it was forked from, and building the model.
    rule: StoppingRule
    forms: Many[ChildForm]  #: After a failure those that were warm until then, without times.
    sources: Many[Source] = ()  #: The user's files that the model was made of.
    gpu_uuid: Text | None = None  #: Which GPU of the host; None without one.

    def form(self, name: FormName) -> ChildForm | None:
        return next((form for form in self.forms if form.name == name), None)
