"""A sweep: many settings of a workload, each measured in a process of its own. What a sweep's folder holds."""

import shlex
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from tracekit.model.bounded import Amount, Count, FileName, Many, Seconds, Text, Whole, refuse_no_moment
from tracekit.model.cell import CellRun
from tracekit.model.option import MOST_PROCESSES
from tracekit.model.run import FormName
from tracekit.model.workload import Request

#: Of processes that time a form, how many or which.
Processes = Annotated[int, Meta(ge=1, le=MOST_PROCESSES)]
#: Which process of a cell, from 1; 0 for one more that measured the best of a work again.
ProcessNumber = Annotated[int, Meta(ge=0, le=MOST_PROCESSES)]


class Published(Struct, frozen=True):
    """Mean milliseconds of one call without and with torch.compile, at one batch size."""

    workload: str
    checkpoint: str | None  #: None where it is not known which.
    batch_size: int
    eager_ms: float
    compiled_ms: float


class Suite(Struct, frozen=True):
    """A matrix of settings that belong together. `published` are other people's figures, `source` what is known of how
    those were measured."""

    name: str
    workloads: tuple[str, ...]
    modes: tuple[str, ...]
    batch_sizes: tuple[int, ...]
    iterations: int | None
    size: str = "auto"
    published: tuple[Published, ...] = ()
    source: str = ""


#: The number of the process that measures the best of a work again; no other figure is made of it.
CONFIRMING = 0
#: What became of a cell. Everything but `done` has a failure that says more.
CellOutcome = Literal["done", "out_of_memory", "timed_out", "killed", "failed"]


class Cell(Struct, frozen=True):
    """One set of settings."""

    key: FileName  #: Names it among others.
    work: Text  #: What its eager form does: cells that differ only in how they compile share it.
    form: FormName  #: `compiled`: the eager form is timed too, in alternation. `eager`: that form alone.
    request: Request


class CheckJob(Struct, frozen=True):
    """What a process is asked to look at before any cell is run: a request of each eager work, with a scope of it.
    `compiled` is whether anything will be compiled, `gpus` what every cell with times was measured on; empty
    where some had none."""

    requests: tuple[Request, ...]
    compiled: bool
    gpus: tuple[str, ...] = ()


class CheckAnswer(Struct, frozen=True):
    """What keeps a cell from being measured, as an error says it; None where nothing does. `traceback` is that of the
    user's own code."""

    error: str | None = None
    below: tuple[str, ...] = ()
    traceback: str | None = None


class CellFailure(Struct, frozen=True):
    """Why there are no times."""

    kind: CellOutcome
    message: Text  #: One line.
    during: Text = ""  #: What was being done.
    last_lines: Many[Text] = ()  #: The end of what the process printed or of its traceback.


class CellAnswer(Struct, frozen=True):
    """What a cell's process says of itself. `run` is None where it failed before anything was built."""

    run: CellRun | None
    failure: CellFailure | None


class CellResult(Struct, frozen=True):
    """A cell's file: what came of it in one process. Each process of a cell (`--repeat-process`) has its own."""

    schema: Literal["tracekit.sweep-cell/1"]
    tracekit: Text
    cell: Cell
    outcome: CellOutcome
    started: Text
    seconds: Seconds  #: How long its process took, from start to end.
    run: CellRun | None
    failure: CellFailure | None
    host_load: Amount | None = None  #: Processes that wanted to run in the minute before, on average.
    host: Text | None = None  #: The name of the machine; None where nobody noted it.
    process: ProcessNumber = 1  #: Which of the cell's processes it was, from 1; 0: it measured the best again.

    def __post_init__(self) -> None:
        refuse_no_moment(self.started)


class AskedCall(Struct, frozen=True):
    """One `tracekit sweep` that worked on the folder, and what rule it timed by."""

    command: Text
    started: Text
    seed: Whole
    iterations: Count | None
    target_percent: Amount | None
    budget_seconds: Seconds | None
    cell_timeout_seconds: Seconds | None
    rank_timeout_seconds: Seconds | None = None
    engine: Text = "local"  #: What ran the cells.
    processes: Processes | None = None  #: Of each cell (`--repeat-process`); None: as many as before, one at least.

    def __post_init__(self) -> None:
        # Raises ValueError where it is no command of a shell: its words are looked at.
        shlex.split(self.command)


class Asked(Struct, frozen=True):
    """`sweep.json`: all cells that were ever asked for in this folder, in the order of the table, and by which calls.
    `suite` is the suite they are of, None for a matrix of the user's own. `anew_since` says of cells that `--again`
    asked for anew since when: what is older does not count, whoever goes on with it. `processes` says of cells that
    `--repeat-process` asked for in how many."""

    schema: Literal["tracekit.sweep-asked/1"]
    name: Text
    suite: Text | None
    cells: Many[Cell]
    calls: Many[AskedCall]
    anew_since: dict[FileName, Text] = field(default_factory=dict)
    processes: dict[FileName, Processes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for moment in self.anew_since.values():
            refuse_no_moment(moment)
