"""The sections that reports of one side, of two and of several have in common."""

import datetime
from collections.abc import Iterable

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.run import Run
from tracekit.report import document as doc
from tracekit.report.charts import cause_chart, family_charts, phase_chart
from tracekit.report.method import how_measured
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.idle import cause_table, gap_table, queue_table, sync_table
from tracekit.report.sections.kernels import family_table, operator_table
from tracekit.report.sections.outputs import memory_table
from tracekit.report.sections.setting import component_table, environment_table, gpu_state_table, settings_table
from tracekit.report.sections.timing import health_table, recording_table, timing_table
from tracekit.report.words.common import Sides

NOTES = "Notes"
METHOD = "How this was measured"
ON_CPU = (
    "A CPU run shows which operators ran and how long, and unprofiled wall times."
    " It shows no GPU kernels, no launches and no idle time, and does not predict GPU results: launch cost, memory "
    "bandwidth and library kernels differ there."
)


#: What a section is made of, where it has nothing else.
Parts = Iterable[doc.Part | doc.Block | None]


def every_section(
    sides: Sides,
    *,
    first: Iterable[doc.Section | None],
    drawn: doc.Timelines | None,
    figures: Parts,
    notes: tuple[str, ...],
    findings: Iterable[Finding],
    falls: Parts = (),
    kernels: Parts = (),
    outputs: tuple[doc.Block | None, ...] = (),
    timing: Parts = (),
    comparison: Comparison | None = None,
    run: Run | None = None,
    command: str | None = None,
) -> tuple[doc.Section, ...]:
    """Those that any number of sides have, in the order of every report. The report's own stand `first`, or within."""
    # GPU memory, after what was found of outputs.
    memory, of_memory = ("Outputs and memory", "errors, tolerance, peaks") if outputs else ("Memory", "peaks")
    measured = how_measured(sides, findings, run, comparison, drawn=drawn is not None)
    how = doc.Definitions(METHOD, tuple(measured))
    tables = (timing_table(sides), health_table(sides), recording_table(sides))
    compiling = (phase_chart(sides), *compilation_tables(sides))
    sections = (
        *first,
        doc.section("timelines", "Timeline", drawn),
        folded("time", "Waterfall", "every part of the change", *falls),
        folded("figures", "Figures", "times, counts, memory", *figures),
        family_section(sides, *kernels),
        idle_section(sides),
        folded("compilation", "Compilation", "graphs, graph breaks, recompiles, phases", *compiling),
        operator_section(sides),
        folded("outputs", memory, of_memory, *outputs, memory_table(sides), short=memory.partition(" ")[0]),
        setup_section(sides, run),
        folded("method", "How it was measured", "timing, intervals, recordings", *timing, *tables, how, short="Method"),
        notes_section(notes, run),
        command_section(command),
    )
    return tuple(filter(None, sections))


def family_section(sides: Sides, *parts: doc.Part | doc.Block | None) -> doc.Section | None:
    """Kernel families, and the `parts` of the report's own."""
    charts = family_charts(sides)
    return folded(
        "families",
        "Kernel families",
        "GPU time and count by family, largest kernels",
        doc.Beside(charts) if charts else None,
        doc.Part(family_table(sides), doc.TABLES),
        *parts,
        short="Families",
    )


def folded(id_: str, title: str, hint: str, *parts: doc.Part | doc.Block | None, short: str = "") -> doc.Section | None:
    """A section that is opened by who wants it; `hint` says what is in it."""
    return doc.section(id_, title, *parts, short=short, hint=hint)


def idle_section(sides: Sides) -> doc.Section | None:
    rows = 8 if len(sides) <= 2 else 3
    return folded(
        "idle",
        "GPU idle",
        "causes, queue depth, longest gaps, synchronisations",
        cause_chart(sides),
        doc.Part(cause_table(sides), doc.TABLES),
        queue_table(sides),
        *(gap_table(side, letter, rows) for letter, side in sides),
        *(sync_table(side, letter, rows) for letter, side in sides),
    )


def operator_section(sides: Sides) -> doc.Section | None:
    on_cpu = all(side.analysis.gpu is None for _, side in sides)
    tables = (doc.Part(operator_table(side, letter), doc.TABLES) for letter, side in sides)
    hint = "host operators with the most self time"
    return folded("operators", "Operators", hint, ON_CPU if on_cpu else None, *tables)


def setup_section(sides: Sides, run: Run | None) -> doc.Section | None:
    """The machine and the settings."""
    compared = tuple(table for table in (settings_table(sides), environment_table(sides)) if table)
    these, it = ("This is a bare trace file", "it") if len(sides) == 1 else ("These are bare trace files", "them")
    unknown = f"{these}: what was run, and with which software, is not recorded in {it}."
    started = datetime.datetime.fromisoformat(run.started).astimezone(datetime.UTC) if run else None
    return doc.standing_section(
        "setting",
        "Setup",
        component_table(run) if run else None,
        doc.Beside(compared) if compared else None,
        gpu_state_table(sides),
        None if compared else unknown,
        f"Recorded {started:%Y-%m-%d %H:%M} UTC with tracekit {run.tracekit}." if run and started else None,
        hint="machine, software, options",
    )


def notes_section(notes: tuple[str, ...], run: Run | None = None) -> doc.Section | None:
    """What must be known to rely on the figures, the gravest first."""
    if run:
        notes = (*notes, *run.notes, *(noted.long() for noted in run.noted))
        notes += () if run.settings.is_of_program else (f"Size chosen: {run.size_reason}.",)
    return folded("notes", NOTES, f"{len(notes)}", doc.Bullets(NOTES, notes)) if notes else None


def command_section(command: str | None) -> doc.Section | None:
    return folded("command", "Reproduce", "commands", doc.Commands(command) if command else None)
