"""Many ranks: thirty lines, and the sections of their page."""

from pathlib import Path

from tracekit.model.ranks import Ranks
from tracekit.numbers import counted, percent
from tracekit.report import document as doc
from tracekit.report.document import Line, Overview, Summary
from tracekit.report.sections import ranks as sections
from tracekit.report.thirty_lines import Detail, shown_overview
from tracekit.report.words import ranks as words

#: Ranks, late ranks and collectives that find room in thirty lines, and notes and findings.
MOST_RANKS, MOST_LATE, MOST_COLLECTIVES, MOST_NOTES, MOST_FINDINGS = 6, 3, 4, 3, 3
#: Of a rank's time: exposed waiting that is worth a headline.
LEAST_WAITING = 0.1


def ranks_overview(told: Ranks) -> Overview:
    warned = [each for each in told.findings if each.severity != "info"]
    headline = words.finding_title(warned[0]) if warned else _nobody(told)
    notes = tuple(words.note_sentence(each) for each in told.notes)
    more = [words.finding_title(each) for each in told.findings if not warned or each is not warned[0]]
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
        headline=headline,
        result=("", "slower" if warned and warned[0].code == "late_rank" else ""),
        evidence=words.finding_evidence(warned[0]) if warned else "",
        notes=notes[:MOST_NOTES],
        tables=tuple(each for each in tables if each),
        checks=tuple(doc.Check("", each) for each in more[:MOST_FINDINGS]),
        hidden=len(notes[MOST_NOTES:]) + len(more[MOST_FINDINGS:]),
    )


def _nobody(told: Ranks) -> str:
    """The answer where nothing needs doing."""
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


def ranks_report(told: Ranks) -> doc.Report:
    overview = ranks_overview(told)
    whole = sections.account_table(told, len(told.ranks))
    found = tuple(doc.both(f"{words.finding_title(each)}. {words.finding_evidence(each)}") for each in told.findings)
    every = (
        doc.section("ranks", "Ranks", doc.both(_captioned(whole, "Where each rank's time goes"), doc.TABLES)),
        doc.section("findings", "Findings", *found),
        doc.section(
            "waiting",
            "Who waits for whom",
            doc.both(sections.matrix_table(told), doc.TABLES),
            doc.both(_captioned(sections.late_table(told, 16), "Late ranks, and why"), doc.TABLES),
        ),
        doc.section(
            "collectives",
            "Collectives",
            doc.both(_captioned(sections.collective_table(told, 50), "Largest first"), doc.TABLES),
            doc.both(sections.matching_table(told)),
            doc.both(sections.unmatched_table(told)),
        ),
        doc.section("idle", "Idle time", doc.both(sections.idle_table(told))),
        doc.section("work", "Uneven work", doc.both(sections.uneven_table(told))),
        doc.section("notes", "Notes", *(doc.both(words.note_sentence(each)) for each in told.notes)),
        doc.section("method", "How this was measured", *(doc.both(each) for each in words.HOW)),
    )
    return doc.Report(f"{overview.headline}.", overview, tuple(each for each in every if each))


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
