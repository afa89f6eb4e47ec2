"""The sections that reports of one side, of two and of several have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tracekit.model.comparison import Side
from tracekit.model.run import Run
from tracekit.report.charts import cause_chart, family_charts, phase_chart
from tracekit.report.document import (
    DETAILS,
    TABLES,
    Beside,
    Commands,
    Definitions,
    Part,
    Section,
    Table,
    Timelines,
    both,
    page_only,
    section,
    standing_section,
    twin_only,
)
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
    make: Callable[[Side, str, int], Table | None], sides: Sides, rows: Rows, rank: int = DETAILS
) -> list[Part]:
    """A table of each side, with these many rows."""
    parts = []
    for letter, side in sides:
        page, twin = (make(side, letter, limit) if limit else None for limit in rows)
        parts.append(Part(page, twin, rank))
    return parts


def timeline_section(drawn: Timelines | None) -> Section | None:
    return section("timelines", "Moment by moment", page_only(drawn))


def kernel_section(sides: Sides, *parts: Part) -> Section | None:
    """Kernel families, and the `parts` of the report's own."""
    charts = family_charts(sides)
    return section(
        "kernels",
        "Kernels",
        page_only(
            "What ran on the GPU, by family. triton is what Inductor generated, mostly several operations fused into"
            " one."
        ),
        page_only(Beside(charts) if charts else None),
        both(family_table(sides), TABLES),
        *parts,
    )


def idle_section(sides: Sides, rows: Rows) -> Section | None:
    return section(
        "idle",
        "Idle time",
        page_only("When the GPU had nothing to run, and what the host was doing meanwhile."),
        page_only(cause_chart(sides)),
        both(cause_table(sides), TABLES),
        both(queue_table(sides)),
        *of_each(gap_table, sides, rows),
        *of_each(sync_table, sides, rows),
    )


def compilation_section(sides: Sides) -> Section | None:
    return section(
        "compilation",
        "Compilation",
        page_only("What torch.compile made, where it could not, and what running its code costs the host."),
        page_only(phase_chart(sides)),
        *map(both, compilation_tables(sides)),
    )


def operator_section(sides: Sides, rows: Rows, rank: int = DETAILS) -> Section | None:
    on_cpu = all(side.analysis.gpu is None for _, side in sides)
    return section(
        "operators", "Operators", page_only(ON_CPU if on_cpu else None), *of_each(operator_table, sides, rows, rank)
    )


def memory_section(sides: Sides, *outputs: Part) -> Section | None:
    """GPU memory, after what was found of `outputs`."""
    return section("outputs", "Outputs and memory" if outputs else "Memory", *outputs, both(memory_table(sides)))


def ending(
    sides: Sides, run: Run | None, command: str | None, method: tuple[Definitions, Definitions], *timing: Table | None
) -> Iterator[Section | None]:
    """The recordings, the machine, how all was measured, by the page and by its twin, and the command."""
    one = len(sides) == 1
    settings, environment = settings_table(sides), environment_table(sides)
    compared = tuple(table for table in (settings, environment) if table)
    bare = (
        "This is a bare trace file: what was run, and with which software, is not recorded in it."
        if one
        else "These are bare trace files: what was run, and with which software, is not recorded in them."
    )
    yield standing_section(
        "recordings",
        "Recording" if one else "Recordings",
        page_only(
            f"What was noticed about {'the trace' if one else 'the traces'}, and how far recording slowed what it "
            "recorded."
        ),
        both(health_table(sides)),
        both(recording_table(sides)),
    )
    yield standing_section(
        "setting",
        "Machine and settings",
        both(component_table(run) if run else None),
        page_only(Beside(compared) if compared else None),
        *map(twin_only, compared),
        both(gpu_state_table(sides)),
        page_only(None if compared else bare),
    )
    yield standing_section("method", "How it was measured", Part(*method), *map(both, timing))
    many = command is not None and "\n" in command
    yield section(
        "command",
        "The commands that measured it and make this page" if many else "The command that makes this page",
        both(Commands(command) if command else None),
        short="Command",
    )
