"""The sections of a report on one side, on two, on several and on a sweep, in their order."""

from __future__ import annotations

import datetime

from tracekit.model.comparison import Comparison, Finding
from tracekit.model.comparisons import Comparisons
from tracekit.model.run import Run
from tracekit.model.single_run import SingleRun
from tracekit.model.sweep_figures import Sweep
from tracekit.report.charts import waterfall_chart
from tracekit.report.composition.shared import (
    compilation_section,
    ending,
    idle_section,
    kernel_section,
    memory_section,
    of_each,
    operator_section,
    timeline_section,
)
from tracekit.report.document import (
    DETAILS,
    FIRST,
    LAST,
    TABLES,
    Beside,
    Bullets,
    Commands,
    Definitions,
    Fold,
    GateText,
    Heading,
    Output,
    Part,
    Pictures,
    Report,
    Section,
    Table,
    Timelines,
    both,
    page_only,
    section,
    standing_section,
    those,
    twin_only,
)
from tracekit.report.method import SWEEP, TIMELINES, TIMELINES_BY_NAME, how_measured, how_one_was_measured
from tracekit.report.sections import several, single_run
from tracekit.report.sections.figures import key_figures, overview_table
from tracekit.report.sections.findings import finding_texts
from tracekit.report.sections.groups import every_group, evidence_table, group_table, origin_table
from tracekit.report.sections.headline import gate_outcome, gate_sentences, limit_sentences, reason_sentence
from tracekit.report.sections.kernels import every_kernel, top_kernels_table
from tracekit.report.sections.outputs import accuracy_sentence, numerics_table, picture_sources
from tracekit.report.sections.startup import startup_table
from tracekit.report.sections.timing import certainty_table, process_table, timing_table
from tracekit.report.sections.traffic import matmul_table
from tracekit.report.sections.waterfall import waterfall_table
from tracekit.report.sides import both_sides, with_letters
from tracekit.report.sweep import words as sweeping
from tracekit.report.sweep.figures import eager_table, heat_map, matrices, speedup_table
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.tables import (
    best_table,
    building_table,
    cell_table,
    command_table,
    conditions_table,
    failure_table,
    last_words,
    note_rows,
    published_table,
)
from tracekit.report.timelines import timelines, timelines_by_name
from tracekit.report.words.common import (
    result_word,
    scope,
    shared_scope,
    subject,
    subjects,
    verdict_evidence,
    verdict_sentence,
)
from tracekit.report.words.notes import grave_sentences, note_sentences, other_sentences

BEFORE = "Before you rely on this"
METHOD = "How this was measured"


def side_report(single: SingleRun, run: Run | None = None, command: str | None = None) -> Report:
    """One run or trace by itself; `command` is the one that makes the report anew."""
    side, sides = single.side, with_letters(single.side)
    first, *more = single_run.sentences(single)
    warnings, method = single_run.warnings(single), Definitions(METHOD, tuple(how_one_was_measured(single, run)))
    sections = (
        standing_section("figures", "Figures", both(single_run.figures_table(side), TABLES)),
        _findings(single.findings, scope(side)),
        timeline_section(timelines_by_name(sides)),
        kernel_section(
            sides,
            page_only(Heading("Kernel by kernel") if (kernels := every_kernel(side)) else None),
            Part(kernels, top_kernels_table(side, "", limit=25), TABLES),
        ),
        idle_section(sides, (8, 8)),
        compilation_section(sides),
        operator_section(sides, (15, 15), TABLES),
        memory_section(sides),
        *ending(sides, run, command, (method, method), timing_table(sides)),
    )
    return Report(
        title=single_run.headline(side),
        subject=subject(side),
        sections=those(sections),
        lede=first,
        grave=grave_sentences(single.notes),
        sentences=tuple(more),
        origin=_origin(run),
        key_figures=single_run.key_figures(side),
        before=_before(run, warnings, warnings),
    )


def comparison_report(comparison: Comparison, run: Run | None = None, command: str | None = None) -> Report:
    """Two sides; `command` is the one that reproduces the report."""
    sides, drawn = both_sides(comparison), timelines(comparison)
    numerics, accuracy, pictures = (
        numerics_table(comparison),
        accuracy_sentence(comparison),
        picture_sources(comparison),
    )
    groups, method = every_group(comparison), tuple(how_measured(comparison, run))
    outputs = (
        page_only(accuracy or "What the forms return, beside what they should."),
        page_only(Pictures(pictures) if pictures else None),
        both(numerics),
    )
    others = other_sentences(comparison.notes)
    sections = (
        standing_section(
            "side-by-side",
            "Side by side",
            both(overview_table(comparison), TABLES),
            both(startup_table(comparison), TABLES),
        ),
        _waterfall(comparison),
        _findings(comparison.findings, shared_scope(comparison)),
        timeline_section(drawn),
        kernel_section(
            sides,
            page_only(Heading("What became of the kernels") if groups else None),
            Part(groups, group_table(comparison), TABLES),
            both(evidence_table(comparison)),
            both(origin_table(comparison)),
            both(matmul_table(comparison)),
            page_only(Heading("The largest kernels")),
            *of_each(top_kernels_table, sides, (15, 10)),
        ),
        idle_section(sides, (8, 5)),
        compilation_section(sides),
        operator_section(sides, (15, 10)),
        memory_section(sides, *(outputs if numerics else ())),
        *ending(
            sides,
            run,
            command,
            (Definitions(METHOD, (*method, *_drawn(drawn, TIMELINES))), Definitions(METHOD, method)),
            certainty_table(comparison),
            timing_table(sides),
            process_table(comparison),
        ),
    )
    gate = comparison.gate
    return Report(
        title=verdict_sentence(comparison),
        subject=subjects(comparison),
        sections=those(sections),
        result=(result_word(comparison), comparison.verdict.result),
        gate=GateText(
            gate_outcome(gate),
            gate.ends_as,
            tuple((each.outcome, said) for each, said in zip(gate.checked, gate_sentences(comparison), strict=True)),
        )
        if gate
        else None,
        lede=verdict_evidence(comparison) or "",
        grave=grave_sentences(comparison.notes),
        sentences=tuple(filter(None, (reason_sentence(comparison), *limit_sentences(comparison), accuracy))),
        guide=(
            f"A is {comparison.a.label} (before), B is {comparison.b.label} (after). Every change is B minus A "
            f"({shared_scope(comparison)}); what is negative got less."
        ),
        origin=_origin(run),
        key_figures=key_figures(comparison),
        before=_before(run, others, others),
    )


def comparisons_report(compared: Comparisons, command: str | None = None) -> Report:
    """Several ways to compile, a column a form."""
    sides, on_runs = several.sides_of(compared), several.notes_of_runs(compared)
    drawn = timelines_by_name(sides)
    notes, method = note_sentences(compared.notes), tuple(how_measured(compared.comparisons[0], None))
    falls: list[Part] = []
    findings: list[Part] = []
    for at, each in enumerate(compared.comparisons):
        name, ends = each.b.label, several.ends_of(each)
        table = waterfall_table(each, ends)
        if table is None:
            falls.append(page_only(f"{name}: its time was not divided, because its sides cannot be put on one scale."))
        else:
            falls.append(page_only(waterfall_chart(each, f"waterfall-{at}", ends)))
            falls.append(Part(Fold(f"{name}: the same as a table", (table,)), table, TABLES))
        found = finding_texts(each.findings, shared_scope(each), level=4)
        findings.append(page_only(Heading(name)))
        if each.findings:
            findings.append(Part(found, Fold(f"Findings: {name} ({len(each.findings)})", (found,)), unfolded=True))
        else:
            findings.append(page_only("Nothing was found that asks for a word."))
    sections = (
        standing_section(
            "side-by-side",
            "Side by side",
            Part(Beside((figures := several.figures_table(compared),), "columns"), figures, TABLES),
            both(several.run_table(compared), TABLES),
            page_only(Fold(f"Notes on single runs: {len(on_runs)}", (Bullets("", on_runs),)) if on_runs else None),
        ),
        standing_section(
            "time",
            "Where the time went",
            page_only("From the eager form to each compiled one, both of the same process, one cause after the other."),
            *falls,
        ),
        standing_section("findings", "Findings", *findings),
        timeline_section(drawn),
        kernel_section(sides, page_only(Heading("The largest kernels")), *of_each(top_kernels_table, sides, (8, 5))),
        idle_section(sides, (3, 0)),
        compilation_section(sides),
        operator_section(sides, (15, 5)),
        memory_section(sides),
        *ending(
            sides,
            None,
            command,
            (Definitions(METHOD, (*method, *_drawn(drawn, TIMELINES_BY_NAME))), Definitions(METHOD, method)),
            timing_table(sides),
        ),
    )
    return Report(
        title=several.headline(compared),
        subject=several.subjects(compared),
        sections=those(sections),
        grave=several.grave(compared),
        sentences=several.sentences(compared),
        key_figures=several.key_figures(compared),
        before=_before(None, notes, (*notes, *on_runs)),
    )


def sweep_report(sweep: Sweep, command: str | None = None) -> Report:
    """A sweep; `command` is what measures it and what goes on with it, a line each."""
    figures, many = matrices(sweep), len(sweep.works) > sweeping.MOST_WORKS
    heat, best, commands = heat_map(sweep), best_table(sweep), command_table(sweep)
    notes, warnings, method = note_rows(sweep), Bullets(BEFORE, note_sentences(sweep.notes)), Definitions(METHOD, SWEEP)

    noted = Fold(sweeping.NOTES, (Bullets("", tuple(f"{name}: {' '.join(said)}" for name, said in notes)),))
    sections = (
        section("speed-up", "Speed-up", Part(heat, speedup_table(sweep) if heat else None, FIRST, unfolded=True)),
        section(
            "best",
            "Best for what",
            Part(
                Fold("What is best for what, work by work", (best,)) if best and many else best,
                best,
                FIRST,
                unfolded=True,
            ),
            Part(_folded(commands) if many else commands, command_table(sweep, with_eager=not many)),
        ),
        section(
            "beside",
            "Beside the figures of 2023",
            both(published_table(sweep), FIRST, unfolded=True),
            short="Beside 2023",
        ),
        section(
            "times",
            "Times",
            both(figures.get("mean"), LAST),
            _if_folded(figures.get("median"), LAST, many),
            _if_folded(figures.get("device"), LAST, many),
            both(eager_table(sweep)),
        ),
        section(
            "cost",
            "Compiling and memory" if "compile" in figures else "Memory",
            both(figures.get("compile"), DETAILS),
            both(figures.get("even"), DETAILS),
            _if_folded(figures.get("memory"), DETAILS, many),
            _if_folded(figures.get("warmup_memory"), LAST, many),
        ),
        section(
            "failures",
            "Cells without times",
            both(failure_table(sweep), FIRST, unfolded=True),
            *(both(Fold(name, (Output(lines),)), LAST) for name, lines in last_words(sweep)),
        ),
        section(
            "cells",
            "Cell by cell",
            _if_folded(cell_table(sweep), LAST, True, "Verdicts"),
            _if_folded(conditions_table(sweep), LAST, True, "The machine while it was timed"),
            _if_folded(building_table(sweep), LAST, True, "What was built"),
            both(noted if notes else None),
        ),
        # How it was measured finds room before figures do.
        standing_section("method", "How it was measured", both(method, TABLES)),
        section("command", "The commands", both(Commands(command) if command else None), short="Commands"),
    )
    return Report(
        title=sweeping.headline(sweep),
        subject=" · ".join(label(sweep).common),
        sections=those(sections),
        lede=f"{sweeping.progress_sentence(sweep)} {sweeping.noted_sentence(sweep)}".strip(),
        before=(both(warnings, unfolded=True),),
        dense=True,
    )


def _folded(table: Table | None, title: str = "") -> Fold | None:
    return Fold(title or table.caption, (table,)) if table else None


def _if_folded(table: Table | None, rank: int, folded: bool, title: str = "") -> Part:
    return Part(_folded(table, title) if folded else table, table, rank)


def _waterfall(comparison: Comparison) -> Section | None:
    if comparison.waterfall is None:
        return None
    ends = (
        "Both ends are unprofiled medians."
        if comparison.waterfall.basis == "unprofiled"
        else "Both ends are as recorded, with the profiler on; the true times are shorter."
    )
    return section(
        "time",
        "Where the time went",
        page_only(f"From A's time to B's, one cause after the other. {ends}"),
        page_only(waterfall_chart(comparison)),
        both(waterfall_table(comparison), TABLES),
    )


def _findings(findings: tuple[Finding, ...], scope: str) -> Section | None:
    found = finding_texts(findings, scope) if findings else None
    return section("findings", "Findings", both(found, unfolded=True))


def _before(run: Run | None, of_page: tuple[str, ...], of_twin: tuple[str, ...]) -> tuple[Part, ...]:
    """What to know before relying on the figures; notes of the run stand among it in the page, by themselves in the
    twin."""
    notes = run.notes if run else ()
    about = Bullets("About this run", (f"Size chosen: {run.size_reason}.", *notes)) if run else None
    return Part(Bullets(BEFORE, (*of_page, *notes)), Bullets(BEFORE, of_twin)), twin_only(about)


def _origin(run: Run | None) -> str:
    if run is None:
        return ""
    started = datetime.datetime.fromisoformat(run.started).astimezone(datetime.UTC)
    return f"Size: {run.size_reason}. Recorded {started:%Y-%m-%d %H:%M} UTC with tracekit {run.tracekit}."


def _drawn(drawn: Timelines | None, text: str) -> tuple[tuple[str, str], ...]:
    """How timelines came about, which the page alone draws."""
    return (("Moment by moment", text),) if drawn else ()
