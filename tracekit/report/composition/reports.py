"""The sections of a report on one side, on two, on several and on a sweep, in their order."""

import datetime
from collections.abc import Iterable

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.comparisons import Comparisons
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun
from tracekit.model.sweep_figures import Sweep
from tracekit.report import document as doc
from tracekit.report.charts import call_chart, calls_chart, waterfall_bars, waterfall_chart
from tracekit.report.composition import shared
from tracekit.report.method import SWEEP, TIMELINES, TIMELINES_BY_NAME, how_measured, how_one_was_measured
from tracekit.report.sections import several, single_run
from tracekit.report.sections.figures import key_figures, overview_table
from tracekit.report.sections.findings import finding_texts, listed
from tracekit.report.sections.groups import every_group, evidence_table, group_table, origin_table
from tracekit.report.sections.headline import gate_text, limit_sentences, reason_sentence, waterfall_table
from tracekit.report.sections.kernels import every_kernel, top_kernels_table
from tracekit.report.sections.outputs import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.timing import certainty_table, process_table, startup_table, timing_table
from tracekit.report.sections.traffic import matmul_table
from tracekit.report.sides import both_sides, with_letters
from tracekit.report.sweep import tables
from tracekit.report.sweep import words as sweeping
from tracekit.report.sweep.figures import eager_table, heat_map, matrices, speedup_table
from tracekit.report.sweep.labels import label
from tracekit.report.timelines import timelines, timelines_by_name
from tracekit.report.words import common as words
from tracekit.report.words import not_compiled as why
from tracekit.report.words.notes import grave_sentences, note_sentences, other_sentences

BEFORE = "Before you rely on this"
METHOD = "How this was measured"


def side_report(single: SingleRun, run: Run | None = None, command: str | None = None) -> doc.Report:
    """One run or trace by itself; `command` is the one that makes the report anew."""
    side, sides = single.side, with_letters(single.side)
    first, *more = single_run.sentences(single)
    warnings, method = single_run.warnings(single), doc.Definitions(METHOD, tuple(how_one_was_measured(single, run)))
    kernels, nothing = every_kernel(side), single.nothing_compiled
    title, grave = single_run.headline(side), grave_sentences(single.notes)
    if nothing is not None:
        title = f"{why.HEADLINE}. {title}"
        grave = (f"{why.because(nothing.reasons)}.", *grave)
    sections = (
        single_run.nothing_section(nothing) if nothing is not None else None,
        doc.standing_section("figures", "Figures", doc.both(single_run.figures_table(side), doc.TABLES)),
        _findings(single.findings, words.scope(side), side.wall_us),
        doc.section("timelines", "Timeline", timelines_by_name(sides)),
        shared.kernel_section(
            sides,
            doc.Heading("Kernel by kernel") if kernels else None,
            doc.Part(kernels, top_kernels_table(side, "", limit=25), doc.TABLES),
        ),
        shared.idle_section(sides, (8, 8)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 15), doc.TABLES),
        shared.memory_section(sides),
        *shared.ending(sides, run, command, doc.both(method), timing_table(sides)),
    )
    return doc.Report(
        title=title,
        subject=words.subject(side),
        sections=tuple(filter(None, sections)),
        result=("nothing compiled", "not_timed") if nothing is not None else None,
        lede=first,
        grave=grave,
        sentences=tuple(more),
        origin=_origin(run),
        key_figures=single_run.key_figures(side),
        before=_before(run, warnings, warnings),
    )


def comparison_report(comparison: Comparison, run: Run | None = None, command: str | None = None) -> doc.Report:
    """Two sides; `command` is the one that reproduces the report."""
    sides, drawn, groups = both_sides(comparison), timelines(comparison), every_group(comparison)
    numerics, accuracy = numerics_table(comparison), accuracy_sentence(comparison)
    pictures, others = picture_sources(comparison), other_sentences(comparison.notes)
    what = accuracy or "What the forms return, beside what they should."
    outputs = (what, doc.Pictures(pictures) if pictures else None, numerics) if numerics else ()
    sections = (
        doc.standing_section(
            "side-by-side",
            "Side by side",
            doc.both(overview_table(comparison), doc.TABLES),
            doc.both(startup_table(comparison), doc.TABLES),
        ),
        _waterfall(comparison),
        _findings(comparison.findings, words.shared_scope(comparison), comparison.b.wall_us),
        doc.section("timelines", "Timeline", drawn),
        shared.kernel_section(
            sides,
            doc.Heading("What became of the kernels") if groups else None,
            doc.Part(groups, group_table(comparison), doc.TABLES),
            # The page has both in the drawer of each group.
            doc.Part(None, evidence_table(comparison)),
            doc.Part(None, origin_table(comparison)),
            matmul_table(comparison),
            doc.Heading("The largest kernels"),
            *shared.of_each(top_kernels_table, sides, (15, 10)),
        ),
        shared.idle_section(sides, (8, 5)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 10)),
        shared.memory_section(sides, *outputs),
        *shared.ending(
            sides,
            run,
            command,
            _method(how_measured(comparison, run), TIMELINES if drawn else None),
            certainty_table(comparison),
            timing_table(sides),
            process_table(comparison),
        ),
    )
    return doc.Report(
        title=words.verdict_sentence(comparison),
        subject=words.subjects(comparison),
        sections=tuple(filter(None, sections)),
        result=(words.result_word(comparison), comparison.verdict.result),
        gate=gate_text(comparison),
        lede=words.verdict_evidence(comparison) or "",
        grave=grave_sentences(comparison.notes),
        sentences=tuple(filter(None, (reason_sentence(comparison), *limit_sentences(comparison), accuracy))),
        guide=(
            f"A is {comparison.a.label} (before), B is {comparison.b.label} (after). Every change is B minus A "
            f"({words.shared_scope(comparison)}); what is negative got less."
        ),
        origin=_origin(run),
        key_figures=key_figures(comparison),
        before=_before(run, others, others),
    )


def comparisons_report(compared: Comparisons, command: str | None = None) -> doc.Report:
    """Several ways to compile, a column a form."""
    sides, on_runs = with_letters(*compared.sides), several.notes_of_runs(compared)
    drawn = timelines_by_name(sides)
    notes = note_sentences(compared.notes)
    falls: list[doc.Part | doc.Block | None] = []
    findings: list[doc.Part | doc.Block | None] = []
    for at, each in enumerate(compared.comparisons):
        # The forms' own names, for the eager one is not the column's.
        name, ends = each.b.label, (each.a.label, each.b.label)
        table = waterfall_table(each, ends)
        if table is None:
            falls.append(f"{name}: its time was not divided, because its sides cannot be put on one scale.")
        else:
            chart = waterfall_chart(each, f"waterfall-{at}", ends)
            falls.append(doc.Part(chart, waterfall_bars(each, ends), doc.FIRST, unfolded=True))
            falls.append(doc.Part(doc.Fold(f"{name}: the same as a table", (table,)), table, doc.TABLES))
        texts = finding_texts(listed(each.findings), words.shared_scope(each), 4, each.b.wall_us, f"{at}-")
        folded = doc.Fold(f"Findings: {name} ({len(texts.findings)})", (texts,))
        told = doc.Part(texts, folded, unfolded=True) if texts.findings else "Nothing to act on was found."
        findings += [doc.Heading(name), told]
    figures = several.figures_table(compared)
    noted = doc.Fold(f"Notes on single runs: {len(on_runs)}", (doc.Bullets("", on_runs),))
    sections = (
        doc.standing_section(
            "side-by-side",
            "Side by side",
            doc.Part(doc.Beside((figures,), "columns"), figures, doc.TABLES),
            doc.both(several.run_table(compared), doc.TABLES),
            doc.Part(noted if on_runs else None, None),
        ),
        doc.standing_section(
            "time",
            "Where the time went",
            "From the eager form to each compiled one, both of the same process, one cause after the other.",
            calls_chart(compared),
            *falls,
        ),
        doc.standing_section("findings", "Findings", *findings),
        doc.section("timelines", "Timeline", drawn),
        shared.kernel_section(
            sides, doc.Heading("The largest kernels"), *shared.of_each(top_kernels_table, sides, (8, 5))
        ),
        shared.idle_section(sides, (3, 0)),
        shared.compilation_section(sides),
        shared.operator_section(sides, (15, 5)),
        shared.memory_section(sides),
        *shared.ending(
            sides,
            None,
            command,
            _method(how_measured(compared.comparisons[0], None), TIMELINES_BY_NAME if drawn else None),
            timing_table(sides),
        ),
    )
    return doc.Report(
        title=several.headline(compared),
        subject=several.subjects(compared),
        sections=tuple(filter(None, sections)),
        grave=several.notes_of_runs(compared, grave=True),
        sentences=several.sentences(compared),
        key_figures=several.key_figures(compared),
        before=_before(None, notes, (*notes, *on_runs)),
    )


def sweep_report(sweep: Sweep, command: str | None = None) -> doc.Report:
    """A sweep; `command` is what measures it and what goes on with it, a line each."""
    figures, many = matrices(sweep), len(sweep.works) > sweeping.MOST_WORKS
    heat, best, commands = heat_map(sweep), tables.best_table(sweep), tables.command_table(sweep)
    notes = tables.cell_notes(sweep)
    sections = (
        doc.section(
            "speed-up", "Speed-up", doc.Part(heat, speedup_table(sweep) if heat else None, doc.FIRST, unfolded=True)
        ),
        doc.section(
            "best",
            "Best for what",
            doc.Part(
                doc.Fold("What is best for what, work by work", (best,)) if best and many else best,
                best,
                doc.FIRST,
                unfolded=True,
            ),
            doc.Part(_folded(commands) if many else commands, tables.command_table(sweep, with_eager=not many)),
        ),
        doc.section(
            "beside",
            "Beside the figures of 2023",
            doc.both(tables.published_table(sweep), doc.FIRST, unfolded=True),
            short="Beside 2023",
        ),
        doc.section(
            "times",
            "Times",
            doc.both(figures.get("mean"), doc.LAST),
            _if_folded(figures.get("median"), doc.LAST, many),
            _if_folded(figures.get("device"), doc.LAST, many),
            eager_table(sweep),
        ),
        doc.section(
            "cost",
            "Compiling and memory" if "compile" in figures else "Memory",
            figures.get("compile"),
            figures.get("even"),
            _if_folded(figures.get("memory"), doc.DETAILS, many),
            _if_folded(figures.get("warmup_memory"), doc.LAST, many),
        ),
        doc.section(
            "failures",
            "Cells without times",
            doc.both(tables.failure_table(sweep), doc.FIRST, unfolded=True),
            *(doc.both(doc.Fold(name, (doc.Output(lines),)), doc.LAST) for name, lines in tables.last_words(sweep)),
        ),
        doc.section(
            "cells",
            "Cell by cell",
            _if_folded(tables.cell_table(sweep), doc.LAST, True, "Verdicts"),
            _if_folded(tables.conditions_table(sweep), doc.LAST, True, "The machine while it was timed"),
            _if_folded(tables.building_table(sweep), doc.LAST, True, "What was built"),
            doc.Fold(sweeping.NOTES, (doc.Bullets("", notes),)) if notes else None,
        ),
        # How it was measured finds room before figures do.
        doc.standing_section(
            "method", "How it was measured", doc.both(doc.Definitions(METHOD, tuple(SWEEP.items())), doc.TABLES)
        ),
        doc.section("command", "The commands", doc.Commands(command) if command else None, short="Commands"),
    )
    return doc.Report(
        title=sweeping.headline(sweep),
        subject=" · ".join(label(sweep).common),
        sections=tuple(filter(None, sections)),
        lede=f"{sweeping.progress_sentence(sweep)} {sweeping.noted_sentence(sweep)}".strip(),
        before=(doc.both(doc.Bullets(BEFORE, note_sentences(sweep.notes)), unfolded=True),),
        dense=True,
    )


def _folded(table: doc.Table | None, title: str = "") -> doc.Fold | None:
    return doc.Fold(title or table.caption, (table,)) if table else None


def _if_folded(table: doc.Table | None, rank: int, folded: bool, title: str = "") -> doc.Part:
    return doc.Part(_folded(table, title) if folded else table, table, rank)


def _waterfall(comparison: Comparison) -> doc.Section | None:
    if comparison.waterfall is None:
        return None
    ends = "Both ends are unprofiled medians."
    if comparison.waterfall.basis != "unprofiled":
        ends = "Both ends are as recorded, with the profiler on; the true times are shorter."
    return doc.section(
        "time",
        "Where the time went",
        f"From A's time to B's, one cause after the other. {ends}",
        call_chart(comparison),
        doc.Part(waterfall_chart(comparison), waterfall_bars(comparison), doc.FIRST, unfolded=True),
        doc.both(waterfall_table(comparison), doc.TABLES),
    )


def _findings(findings: tuple[Finding, ...], scope: str, call_us: float | None) -> doc.Section | None:
    found = finding_texts(listed(findings), scope, call_us=call_us)
    return doc.section("findings", "Findings", doc.both(found if found.findings else None, unfolded=True))


def _before(run: Run | None, of_page: tuple[str, ...], of_twin: tuple[str, ...]) -> tuple[doc.Part, ...]:
    """What to know before relying on the figures; notes of the run stand among it in the page, by themselves in the
    twin."""
    notes = run.notes if run else ()
    about = doc.Bullets("About this run", (f"Size chosen: {run.size_reason}.", *notes)) if run else None
    return doc.Part(doc.Bullets(BEFORE, (*of_page, *notes)), doc.Bullets(BEFORE, of_twin)), doc.Part(None, about)


def _origin(run: Run | None) -> str:
    if run is None:
        return ""
    started = datetime.datetime.fromisoformat(run.started).astimezone(datetime.UTC)
    return f"Size: {run.size_reason}. Recorded {started:%Y-%m-%d %H:%M} UTC with tracekit {run.tracekit}."


def _method(measured: Iterable[tuple[str, str]], drawn: str | None) -> doc.Part:
    """How all came about; how timelines did is for the page, which alone draws them."""
    terms = tuple(measured)
    moments = (("Timeline", drawn),) if drawn else ()
    return doc.Part(doc.Definitions(METHOD, (*terms, *moments)), doc.Definitions(METHOD, terms))
