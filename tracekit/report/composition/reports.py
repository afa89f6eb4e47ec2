"""The sections of a report on one side, on two and on several, in their order."""

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.comparisons import Comparisons
from tracekit.model.note import grave_sentences, note_sentences, other_sentences
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun
from tracekit.numbers import counted
from tracekit.report import document as doc
from tracekit.report.charts import module_chart, waterfall_chart
from tracekit.report.composition import one_side, several_sides, shared
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.sections.figures import comparison_figures
from tracekit.report.sections.findings import finding_texts, listed
from tracekit.report.sections.groups import every_group, groups_name, matmul_table
from tracekit.report.sections.headline import LETTERS, waterfall_table
from tracekit.report.sections.kernels import every_kernel, top_kernels_table
from tracekit.report.sections.modules import module_tree
from tracekit.report.sections.outputs import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.timing import certainty_table, process_table, startup_table
from tracekit.report.timelines import timelines, timelines_by_name
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled as why
from tracekit.report.words.common import both_sides, with_letters
from tracekit.wings import load, over_ranks


def side_report(single: SingleRun, run: Run | None = None, command: str | None = None) -> doc.Report:
    """One run or trace by itself; `command` is the one that makes the report anew."""
    side, nothing = single.side, single.nothing_compiled
    title, notes = one_side.side_headline(side), (*grave_sentences(single.notes), *one_side.warnings(single))
    if nothing is not None:
        title, notes = f"{why.HEADLINE}. {title}", (f"{why.because(nothing.reasons)}.", *notes)
    sides = with_letters(side)
    sections = shared.every_section(
        sides,
        first=(
            one_side.nothing_section(nothing) if nothing is not None else None,
            _findings(single.findings, words.scope(side), side.wall_us),
            doc.section("kernels", "Kernels", doc.Part(every_kernel(side), doc.TABLES)),
        ),
        drawn=timelines_by_name(sides),
        figures=[doc.Part(one_side.side_figures(side), doc.TABLES)],
        findings=single.findings,
        notes=notes,
        run=run,
        command=command,
    )
    return doc.Report(title, one_side.side_overview(single), sections)


def comparison_report(
    comparison: Comparison, run: Run | None = None, command: str | None = None, repeat: str = ""
) -> doc.Report:
    """Two sides; `command` is the one that reproduces the report, `repeat` measures both again."""
    sides, numerics, pictures = both_sides(comparison), numerics_table(comparison), picture_sources(comparison)
    what = accuracy_sentence(comparison) or ("Outputs of the sides and of the reference." if numerics else None)
    icicle, ranks = module_chart(comparison), over_ranks() if comparison.job else None
    sections = shared.every_section(
        sides,
        first=(
            doc.section(
                "module-tree",
                "Modules",
                doc.Part(module_tree(comparison), doc.TABLES),
                doc.Part(doc.Fold("As an icicle", (icicle,)), page_only=True) if icicle else None,
            ),
            _findings(comparison.findings, words.shared_scope(comparison), comparison.b.wall_us),
            load(ranks.section)(comparison) if ranks else None,
            doc.section("groups", groups_name(comparison), doc.Part(every_group(comparison), doc.TABLES)),
        ),
        drawn=timelines(comparison),
        falls=_falls(comparison),
        figures=(
            doc.Part(comparison_figures(comparison), doc.TABLES),
            doc.Part(startup_table(comparison), doc.TABLES),
        ),
        kernels=(matmul_table(comparison), *(top_kernels_table(side, letter) for letter, side in sides)),
        outputs=(
            *([doc.Bullets("Outputs", (what,))] if what else []),
            *([doc.Pictures(pictures)] if pictures else []),
            *([numerics] if numerics else []),
        ),
        timing=(certainty_table(comparison), process_table(comparison)),
        comparison=comparison,
        findings=comparison.findings,
        notes=(*grave_sentences(comparison.notes), *other_sentences(comparison.notes)),
        run=run,
        command=command,
    )
    return doc.Report(words.verdict_sentence(comparison), comparison_overview(comparison, repeat), sections)


def comparisons_report(compared: Comparisons, command: str | None = None) -> doc.Report:
    """Several ways to compile, a column a form."""
    sides, figures = with_letters(*compared.sides), several_sides.comparisons_figures(compared)
    # The forms' own names, for the eager one is not the column's.
    named = [(each.b.label, each) for each in compared.comparisons]
    listed_of = (
        (name, finding_texts(listed(each.findings), words.shared_scope(each), 3, each.b.wall_us, f"{at}-"))
        for at, (name, each) in enumerate(named)
    )
    folds = (
        doc.Fold(f"{name}: {counted(len(texts.findings), 'finding')}", (texts,))
        for name, texts in listed_of
        if texts.findings
    )
    sections = shared.every_section(
        sides,
        first=[doc.section("findings", "Findings", *(doc.Part(fold, doc.FIRST) for fold in folds))],
        drawn=timelines_by_name(sides),
        falls=(
            part
            for at, (name, each) in enumerate(named)
            for part in _falls(each, f"waterfall-{at}", (each.a.label, each.b.label))
            or [f"{name}: no waterfall: its sides have no common scale."]
        ),
        figures=(
            doc.Part(doc.Beside((figures,), "columns"), doc.TABLES),
            doc.Part(several_sides.run_table(compared), doc.TABLES),
        ),
        kernels=[top_kernels_table(side, letter, 8) for letter, side in sides],
        comparison=compared.comparisons[0],
        findings=[finding for each in compared.comparisons for finding in each.findings],
        notes=(
            *several_sides.notes_of_runs(compared, grave=True),
            *note_sentences(compared.notes),
            *several_sides.shortest_calls(compared),
            *several_sides.notes_of_runs(compared),
        ),
        command=command,
    )
    return doc.Report(several_sides.headline(compared), several_sides.comparisons_overview(compared), sections)


def _findings(findings: tuple[Finding, ...], scope: str, call_us: float | None) -> doc.Section | None:
    found = finding_texts(listed(findings), scope, call_us=call_us)
    return doc.section("findings", "Findings", doc.Part(found if found.findings else None, doc.FIRST))


def _falls(comparison: Comparison, id_: str = "waterfall", names: tuple[str, str] = LETTERS) -> list[doc.Part | str]:
    chart, table = waterfall_chart(comparison, id_, names), waterfall_table(comparison, names)
    return [doc.Part(chart, doc.FIRST), doc.Part(table, doc.TABLES)] if chart else []
