"""The sections that reports of one side, of two and of several have in common."""

from collections.abc import Callable, Iterator

from tracekit.model.comparison import Side
from tracekit.model.run import Run
from tracekit.report import document as doc
from tracekit.report.charts import cause_chart, family_charts, phase_chart
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.idle import cause_table, gap_table, queue_table, sync_table
from tracekit.report.sections.kernels import family_table, operator_table
from tracekit.report.sections.outputs import memory_table
from tracekit.report.sections.setting import component_table, environment_table, gpu_state_table, settings_table
from tracekit.report.sections.timing import health_table, recording_table
from tracekit.report.sides import Sides

#: Rows of a list of each side in the page and in its twin; 0 leaves the list out.
Rows = tuple[int, int]

ON_CPU = (
    "A CPU run shows which operators ran and how long, what Inductor fused into C++ kernels, and unprofiled wall times."
    " It shows no GPU kernels, no launches and no idle time, and does not predict how a GPU would fare: there, launch "
    "cost, memory bandwidth and library kernels weigh differently."
)


def of_each(
    make: Callable[[Side, str, int], doc.Table | None], sides: Sides, rows: Rows, rank: int = doc.DETAILS
) -> list[doc.Part]:
    """A table of each side, with these many rows."""
    parts = []
    for letter, side in sides:
        page, twin = (make(side, letter, limit) if limit else None for limit in rows)
        parts.append(doc.Part(page, twin, rank))
    return parts


def kernel_section(sides: Sides, *parts: doc.Part | doc.Block | None) -> doc.Section | None:
    """Kernel families, and the `parts` of the report's own."""
    charts = family_charts(sides)
    return doc.section(
        "kernels",
        "Kernels",
        "What ran on the GPU, by family. triton is what Inductor generated, mostly several operations fused into one.",
        doc.Beside(charts) if charts else None,
        doc.both(family_table(sides), doc.TABLES),
        *parts,
    )


def idle_section(sides: Sides, rows: Rows) -> doc.Section | None:
    return doc.section(
        "idle",
        "Idle time",
        "When the GPU had nothing to run, and what the host was doing meanwhile.",
        cause_chart(sides),
        doc.both(cause_table(sides), doc.TABLES),
        queue_table(sides),
        *of_each(gap_table, sides, rows),
        *of_each(sync_table, sides, rows),
    )


def compilation_section(sides: Sides) -> doc.Section | None:
    what = "What torch.compile made, where it could not, and what running its code costs the host."
    return doc.section("compilation", "Compilation", what, phase_chart(sides), *compilation_tables(sides))


def operator_section(sides: Sides, rows: Rows, rank: int = doc.DETAILS) -> doc.Section | None:
    on_cpu = all(side.analysis.gpu is None for _, side in sides)
    tables = of_each(operator_table, sides, rows, rank)
    return doc.section("operators", "Operators", ON_CPU if on_cpu else None, *tables)


def memory_section(sides: Sides, *outputs: doc.Block | None) -> doc.Section | None:
    """GPU memory, after what was found of `outputs`."""
    return doc.section("outputs", "Outputs and memory" if outputs else "Memory", *outputs, memory_table(sides))


def ending(
    sides: Sides, run: Run | None, command: str | None, method: doc.Part, *timing: doc.Table | None
) -> Iterator[doc.Section | None]:
    """The recordings, the machine, how all was measured, and the command."""
    one = len(sides) == 1
    compared = tuple(table for table in (settings_table(sides), environment_table(sides)) if table)
    these, it, traces = "This is a bare trace file", "it", "the trace"
    if not one:
        these, it, traces = "These are bare trace files", "them", "the traces"
    yield doc.standing_section(
        "recordings",
        "Recording" if one else "Recordings",
        f"What was noticed about {traces}, and how far recording slowed what it recorded.",
        health_table(sides),
        recording_table(sides),
    )
    yield doc.standing_section(
        "setting",
        "Machine and settings",
        component_table(run) if run else None,
        doc.Beside(compared) if compared else None,
        *(doc.Part(None, table) for table in compared),
        gpu_state_table(sides),
        None if compared else f"{these}: what was run, and with which software, is not recorded in {it}.",
    )
    yield doc.standing_section("method", "How it was measured", method, *timing)
    many = command is not None and "\n" in command
    yield doc.section(
        "command",
        "The commands that measured it and make this page" if many else "The command that makes this page",
        doc.Commands(command) if command else None,
        short="Command",
    )
