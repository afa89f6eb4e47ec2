"""The sections of a report on one side, on two and on several, in their order."""

from collections.abc import Iterable

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.comparisons import Comparisons
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun
from tracekit.numbers import counted
from tracekit.report import document as doc
from tracekit.report.charts import module_chart, waterfall_chart
from tracekit.report.composition import shared
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.composition.overview_several import comparisons_overview
from tracekit.report.composition.overview_side import side_overview
from tracekit.report.method import TIMELINES, TIMELINES_BY_NAME, how_measured, how_one_was_measured
from tracekit.report.sections import several, single_run
from tracekit.report.sections.figures import comparison_figures
from tracekit.report.sections.findings import finding_texts, listed
from tracekit.report.sections.groups import every_group, evidence_table, group_table, origin_table
from tracekit.report.sections.headline import waterfall_table
from tracekit.report.sections.kernels import every_kernel, top_kernels_table
from tracekit.report.sections.modules import module_table, module_tree
from tracekit.report.sections.outputs import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.timing import certainty_table, process_table, startup_table, timing_table
from tracekit.report.sections.traffic import matmul_table
from tracekit.report.sides import both_sides, with_letters
from tracekit.report.timelines import timelines, timelines_by_name
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled as why
from tracekit.report.words.notes import grave_sentences, note_sentences, other_sentences
from tracekit.wings import load, over_ranks

NOTES = "Notes"
METHOD = "How this was measured"


def side_report(single: SingleRun, run: Run | None = None, command: str | None = None) -> doc.Report:
    """One run or trace by itself; `command` is the one that makes the report anew."""
    side, sides = single.side, with_letters(single.side)
    kernels, top = every_kernel(side), top_kernels_table(side, "", limit=25)
    notes, nothing = (*grave_sentences(single.notes), *single_run.warnings(single)), single.nothing_compiled
    title = single_run.headline(side)
    if nothing is not None:
        title, notes = f"{why.HEADLINE}. {title}", (f"{why.because(nothing.reasons)}.", *notes)
    sections = (
        single_run.nothing_section(nothing) if nothing is not None else None,
        _findings(single.findings, words.scope(side), side.wall_us),
        doc.section("kernels", "Kernels", doc.Part(kernels or top, top, doc.TABLES)),
        doc.section("timelines", "Timeline", timelines_by_name(sides)),
        shared.folded(
            "figures", "Figures", "times, counts, memory", doc.both(single_run.side_figures(side), doc.TABLES)
        ),
        shared.family_section(sides),
        shared.idle_section(sides, (8, 8)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 15), doc.TABLES),
        shared.memory_section(sides),
        shared.setup_section(sides, run),
        shared.method_section(
            sides, doc.both(doc.Definitions(METHOD, tuple(how_one_was_measured(single, run)))), timing_table(sides)
        ),
        notes_section(run, notes),
        shared.command_section(command),
    )
    return doc.Report(title, side_overview(single), tuple(filter(None, sections)))


def comparison_report(
    comparison: Comparison, run: Run | None = None, command: str | None = None, repeat: str = ""
) -> doc.Report:
    """Two sides; `command` is the one that reproduces the report, `repeat` measures both again."""
    sides, drawn, groups = both_sides(comparison), timelines(comparison), every_group(comparison)
    numerics, pictures = numerics_table(comparison), picture_sources(comparison)
    what = accuracy_sentence(comparison) or "Outputs of the sides and of the reference."
    told = doc.Bullets("Outputs", (what,))
    outputs = (told, doc.Pictures(pictures) if pictures else None, numerics) if numerics else ()
    sections = (
        doc.section(
            "module-tree",
            "Modules",
            doc.Part(module_tree(comparison), module_table(comparison), doc.TABLES),
            doc.Part(_icicle(comparison), None),
        ),
        _findings(comparison.findings, words.shared_scope(comparison), comparison.b.wall_us),
        _ranks(comparison),
        doc.section(
            "groups",
            "Kernel groups",
            doc.Part(groups, group_table(comparison), doc.TABLES),
            doc.Part(None, evidence_table(comparison)),
            doc.Part(None, origin_table(comparison)),
        ),
        doc.section("timelines", "Timeline", drawn),
        _waterfall(comparison),
        shared.folded(
            "side-by-side",
            "Figures",
            "times, counts, memory and start-up, side by side",
            doc.both(comparison_figures(comparison), doc.TABLES),
            doc.both(startup_table(comparison), doc.TABLES),
        ),
        shared.family_section(sides, matmul_table(comparison), *shared.of_each(top_kernels_table, sides, (15, 10))),
        shared.idle_section(sides, (8, 5)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 10)),
        shared.memory_section(sides, *outputs),
        shared.setup_section(sides, run),
        shared.method_section(
            sides,
            _method(how_measured(comparison, run), TIMELINES if drawn else None),
            certainty_table(comparison),
            timing_table(sides),
            process_table(comparison),
        ),
        notes_section(run, (*grave_sentences(comparison.notes), *other_sentences(comparison.notes))),
        shared.command_section(command),
    )
    title = words.verdict_sentence(comparison)
    return doc.Report(title, comparison_overview(comparison, repeat), tuple(filter(None, sections)))


def comparisons_report(compared: Comparisons, command: str | None = None) -> doc.Report:
    """Several ways to compile, a column a form."""
    sides, on_runs = with_letters(*compared.sides), several.notes_of_runs(compared)
    drawn = timelines_by_name(sides)
    falls: list[doc.Part | doc.Block | None] = []
    findings: list[doc.Part | doc.Block | None] = []
    for at, each in enumerate(compared.comparisons):
        # The forms' own names, for the eager one is not the column's.
        name, ends = each.b.label, (each.a.label, each.b.label)
        table = waterfall_table(each, ends)
        if table is None:
            falls.append(f"{name}: no waterfall: its sides have no common scale.")
        else:
            chart = waterfall_chart(each, f"waterfall-{at}", ends)
            falls.append(doc.Part(chart, None))
            falls.append(doc.Part(doc.Fold(f"{name}: the same as a table", (table,)), table, doc.TABLES))
        texts = finding_texts(listed(each.findings), words.shared_scope(each), 3, each.b.wall_us, f"{at}-")
        if texts.findings:
            folded = doc.Fold(f"{name}: {counted(len(texts.findings), 'finding')}", (texts,))
            findings.append(doc.Part(folded, folded, unfolded=True))
    figures = several.comparisons_figures(compared)
    sections = (
        doc.section("findings", "Findings", *findings),
        shared.folded("time", "Waterfalls", "from eager to each, part by part", *falls),
        doc.section("timelines", "Timeline", drawn),
        shared.folded(
            "side-by-side",
            "Figures",
            "times, counts and memory, a column each",
            doc.Part(doc.Beside((figures,), "columns"), figures, doc.TABLES),
            doc.both(several.run_table(compared), doc.TABLES),
        ),
        shared.family_section(sides, *shared.of_each(top_kernels_table, sides, (8, 5))),
        shared.idle_section(sides, (3, 0)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 5)),
        shared.memory_section(sides),
        shared.setup_section(sides, None),
        shared.method_section(
            sides,
            _method(how_measured(compared.comparisons[0], None), TIMELINES_BY_NAME if drawn else None),
            timing_table(sides),
        ),
        notes_section(None, (*several.notes_of_runs(compared, grave=True), *note_sentences(compared.notes), *on_runs)),
        shared.command_section(command),
    )
    title = several.headline(compared)
    return doc.Report(title, comparisons_overview(compared), tuple(filter(None, sections)))


def _waterfall(comparison: Comparison) -> doc.Section | None:
    chart = waterfall_chart(comparison)
    return shared.folded(
        "time",
        "Waterfall",
        "every part of the change",
        doc.Part(chart, chart, doc.FIRST, unfolded=True),
        doc.both(waterfall_table(comparison), doc.TABLES),
    )


def _ranks(comparison: Comparison) -> doc.Section | None:
    """All ranks of a run of several."""
    known = over_ranks()
    if comparison.job is None or known is None:
        return None
    section: doc.Section | None = load(known.section)(comparison)
    return section


def _icicle(comparison: Comparison) -> doc.Fold | None:
    chart = module_chart(comparison)
    return doc.Fold("As an icicle", (chart,)) if chart else None


def _findings(findings: tuple[Finding, ...], scope: str, call_us: float | None) -> doc.Section | None:
    found = finding_texts(listed(findings), scope, call_us=call_us)
    return doc.section("findings", "Findings", doc.both(found if found.findings else None, unfolded=True))


def notes_section(run: Run | None, notes: tuple[str, ...]) -> doc.Section | None:
    """What must be known to rely on the figures, the gravest first."""
    if run:
        notes = (*notes, *run.notes, *(noted.long() for noted in run.noted), f"Size chosen: {run.size_reason}.")
    bullets = doc.Bullets(NOTES, notes)
    return shared.folded("notes", NOTES, f"{len(notes)}", doc.Part(bullets, bullets, doc.WARNINGS)) if notes else None


def _method(measured: Iterable[tuple[str, str]], drawn: str | None) -> doc.Part:
    """How all came about; how timelines did is for the page, which alone draws them."""
    terms = tuple(measured)
    moments = (("Timeline", drawn),) if drawn else ()
    return doc.Part(doc.Definitions(METHOD, (*terms, *moments)), doc.Definitions(METHOD, terms))
