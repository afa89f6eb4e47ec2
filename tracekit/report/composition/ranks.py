"""Many ranks: thirty lines, and the sections of their page."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tracekit.model.ranks import Ranks
from tracekit.numbers import counted, duration, percent
from tracekit.report import document as doc
from tracekit.report.composition.shared import folded
from tracekit.report.document import Line, Overview, Summary
from tracekit.report.rank_timelines import rank_timelines
from tracekit.report.sections import ranks as sections
from tracekit.report.sections.call import CALL_PARTS
from tracekit.report.thirty_lines import Detail, shown_overview
from tracekit.report.words import ranks as words

#: Ranks, late ranks and collectives that find room in thirty lines, and notes and findings.
MOST_RANKS, MOST_LATE, MOST_COLLECTIVES, MOST_NOTES, MOST_FINDINGS = 6, 3, 4, 3, 3
#: Pieces of advice; bars of the first screen, late ranks of the page, rows of the whole matrix, ranks in the twin.
MOST_ADVICE, MOST_BARS, MOST_LATE_ROWS, MOST_MATRIX_ROWS, MOST_IN_TWIN = 3, 8, 8, 256, 32
#: Of a rank's time: exposed waiting that is worth a headline.
LEAST_WAITING = 0.1


def ranks_overview(told: Ranks) -> Overview:
    warned = [each for each in told.findings if each.severity != "info"]
    first = next((each for each in warned if each.code == "late_rank"), None)
    notes = tuple(words.note_sentence(each) for each in told.notes)
    more = [words.finding_title(each) for each in told.findings if each is not first]
    world = told.world
    size = f"{len(world.recorded)} of {world.size} ranks" if world.size else counted(len(world.recorded), "rank")
    steps = counted(told.steps.count, "step")
    stretch = {"steps": steps, "span": "named spans", "whole": "whole recordings"}[told.steps.kind]
    tables = (
        sections.account_table(told, MOST_RANKS),
        sections.late_table(told, MOST_LATE),
        sections.collective_table(told, MOST_COLLECTIVES),
    )
    return Overview(
        subject=f"{size} · {stretch} · {sections.spread_words(told)}",
        headline=words.finding_title(first) if first else _nobody(told),
        result=("", "slower" if first else ""),
        evidence=words.finding_evidence(first) if first else words.last_words(told),
        notes=notes[:MOST_NOTES],
        tables=tuple(each for each in tables if each),
        advice=tuple(_advice(told))[:MOST_ADVICE],
        checks=tuple(doc.Check("", each) for each in more[:MOST_FINDINGS]),
        hidden=len(notes[MOST_NOTES:]) + len(more[MOST_FINDINGS:]),
    )


def _nobody(told: Ranks) -> str:
    """The answer where no rank is late by itself."""
    waits = [each for each in told.ranks if each.exposed_waiting_us is not None]
    if not waits or len(told.ranks) < 2:
        return "Waiting cannot be told from transfer"
    worst = max(waits, key=lambda each: (each.exposed_waiting_us or 0.0) / each.span_us)
    share = (worst.exposed_waiting_us or 0.0) / worst.span_us
    told_share = f"{percent(share, 1)} of rank {worst.rank}'s time is exposed waiting"
    if share < LEAST_WAITING:
        return f"No late rank: at most {told_share}"
    waited = [each for each in told.waits if each.rank == worst.rank]
    late = max(waited, key=lambda each: each.us).late
    return f"{told_share}, mostly for rank {late}"


def _advice(told: Ranks) -> Iterator[doc.Advice]:
    """What to do next, by the findings, late ranks first; and where ranks wait though none is late, by what makes the
    one late that is waited for most."""
    paths = {each.rank: shlex.quote(each.path) for each in told.ranks}
    late = {each.rank: each for each in told.findings if each.code == "late_rank"}
    for rank, facts in ((each.rank or 0, each.facts) for each in late.values()):
        gain = words.SAVES_WAITING.format(waiter=facts["waiter"], us=duration(facts["most_waited_us"]))
        codes = {each.code for each in told.findings if each.rank == rank}
        compute = facts["cause"] == "compute"
        cause = next((code for code in ("slow_gpu", "uneven_work") if compute and code in codes), facts["cause"])
        yield _remedy(cause, rank, facts["waiter"], paths, gain)
    for each in told.findings:
        if each.code in words.ADVICE and each.rank not in late:
            what, why = words.ADVICE[each.code]
            command = words.GPU_COMMAND if each.code == "slow_gpu" else ""
            yield doc.Advice(what.format(rank=each.rank), why, _saved(each.saving_us), False, command)
    worst = max((use.exposed_waiting_us or 0.0) / use.span_us for use in told.ranks)
    if not late and worst >= LEAST_WAITING and told.late and (first := told.late[0]).causes:
        waiter = first.waiter if first.waiter is not None else first.rank
        yield _remedy(first.causes[0].cause, first.rank, waiter, paths, "")


def _remedy(cause: str, rank: int, waiter: int, paths: dict[int, str], gain: str) -> doc.Advice:
    command = f"tracekit analyze {paths[rank]}"
    if cause in ("compute", "uneven_work"):
        command = f"tracekit compare {paths[waiter]} {paths[rank]}"
    elif cause == "slow_gpu":
        command = words.GPU_COMMAND
    return doc.Advice(words.remedy(cause, rank, waiter), "", gain, False, command)


def _saved(us: float | None) -> str:
    return f"up to {duration(us)} (est.)" if us else ""


def ranks_report(told: Ranks) -> doc.Report:
    """The page: the verdict with a bar a rank, then ranks, timelines, matrix and collectives; tables of detail are
    folded."""
    overview = replace(
        ranks_overview(told),
        tables=(),
        account=sections.lateness_account(told),
        bars=sections.span_bars(told, MOST_BARS),
    )
    bars = doc.StackedBars("Each rank's time", overview.bars, CALL_PARTS | words.PARTS)
    whole = _captioned(sections.account_table(told, MOST_IN_TWIN), "Where each rank's time goes")
    every = (
        doc.section(
            "ranks",
            "Ranks",
            doc.Part(None, bars, doc.FIRST, unfolded=True),
            doc.Part(sections.rank_explorer(told), whole, doc.TABLES, unfolded=True),
        ),
        doc.section("timelines", "Timelines", rank_timelines(told)),
        doc.section(
            "waiting",
            "Who waits for whom",
            doc.Part(sections.matrix(told), sections.matrix_table(told), doc.TABLES),
            doc.Part(_every_wait(told), None),
        ),
        doc.section(
            "late",
            "Late ranks",
            doc.both(_captioned(sections.late_table(told, MOST_LATE_ROWS), "Late ranks, and why"), doc.TABLES),
        ),
        doc.section(
            "collectives",
            "Collectives",
            doc.Part(sections.worst_explorer(told), sections.worst_table(told), doc.TABLES),
            doc.both(_captioned(sections.collective_table(told, 50), "By kind, largest first"), doc.TABLES),
        ),
        doc.section("findings", "Findings", doc.both(_findings(told), doc.FINDINGS, unfolded=True)),
        folded("detail", "Detail", "uneven work, idle time, matching", *_details(told)),
        folded(
            "method",
            "How this was measured",
            "waiting, causes, bandwidth",
            doc.Bullets("Method", words.HOW),
            short="Method",
        ),
    )
    title = overview.headline if overview.headline.endswith(".") else f"{overview.headline}."
    return doc.Report(title, overview, tuple(each for each in every if each))


def _every_wait(told: Ranks) -> doc.Fold | None:
    """All rows, where the first table has not room for all."""
    if len(told.ranks) <= sections.MOST_WAITERS:
        return None
    every = sections.matrix(told, MOST_MATRIX_ROWS)
    return doc.Fold(f"All {len(told.ranks):,} ranks", (every,)) if every else None


def _findings(told: Ranks) -> doc.Findings | None:
    texts = tuple(
        doc.FindingText(
            id=f"finding-{each.code}{'' if each.rank is None else f'-{each.rank}'}",
            severity=each.severity,
            title=words.finding_title(each),
            evidence=words.finding_evidence(each),
            saving=_saved(each.saving_us),
            savings=(),
            advice="",
            is_command=False,
            notes=(),
        )
        for each in told.findings
    )
    return doc.Findings(texts) if texts else None


def _details(told: Ranks) -> tuple[doc.Block | None, ...]:
    few = replace(told, ranks=sections.foremost(told, MOST_IN_TWIN))
    notes = tuple(map(words.note_sentence, told.notes))
    return (
        sections.uneven_table(told),
        sections.idle_table(few),
        sections.matching_table(told),
        sections.unmatched_table(told),
        doc.Bullets("Notes", notes) if notes else None,
    )


def _captioned(table: doc.Table | None, caption: str) -> doc.Table | None:
    if table is None:
        return None
    rows = tuple((str(row[0]).strip(), *row[1:]) for row in table.rows)
    return doc.Table(caption, table.columns, rows, table.note)


def ranks_text(told: Ranks, page: Path | None, more: tuple[str, ...], detail: Detail, width: int) -> Summary:
    """Thirty lines, or the verdict, or all there is."""
    tables: Summary = ()
    if detail == "all":
        found = tuple(Line(f"{words.finding_title(each)}. {words.finding_evidence(each)}") for each in told.findings)
        listed = (
            sections.matrix_table(told),
            sections.worst_table(told),
            sections.matching_table(told),
            sections.idle_table(told),
            sections.uneven_table(told),
            sections.unmatched_table(told),
        )
        tables = (*found, *(part for table in listed if table for part in (doc.BLANK, table)))
    return shown_overview(ranks_overview(told), tables, page, more, detail, width)
