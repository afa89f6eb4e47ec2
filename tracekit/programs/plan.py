"""What one `tracekit run` is to do."""

from msgspec import Struct

from tracekit.model.bounded import Amount, Percent


class ProgramPlan(Struct, frozen=True):
    """As the command hands it to the process that becomes the program."""

    program: str  #: A file, or a module's name.
    arguments: tuple[str, ...]
    is_module: bool
    out: str  #: The run's folder, absolute.
    command: str
    force: bool = False
    step: str | None = None
    eager: bool = True
    stop: bool = False
    budget_seconds: Amount | None = None
    target_percent: Percent | None = None
    report: tuple[str, ...] = ()  #: Options of the command that reports.
    seed: int = 0
