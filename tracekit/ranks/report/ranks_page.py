"""The page of many ranks, and its markdown twin."""

import re

from msgspec.structs import replace

from tracekit.ranks.job_figures import RankFinding, Ranks
from tracekit.ranks.report import explorers, fleet, words
from tracekit.ranks.report import tables as sections
from tracekit.ranks.report.overview import ranks_overview, saved_words
from tracekit.ranks.report.rank_timelines import rank_timelines
from tracekit.ranks.statements.findings import Straggler
from tracekit.ranks.telling import MOST_HELD
from tracekit.report import document as doc
from tracekit.report.composition.shared import folded
from tracekit.report.sections.call import CALL_PARTS

#: Of many ranks there may be a finding for each of many hosts; the JSON has them all.
MOST_FINDINGS = 60
#: Bars of the first screen, late ranks, kinds of collectives, rows of the whole matrix, and rows unfolded.
MOST_BARS, MOST_LATE, MOST_KINDS, MOST_MATRIX_ROWS, MOST_UNFOLDED = 8, 8, 50, 256, 16


def ranks_report(told: Ranks) -> doc.Report:
    """The page: the verdict with a bar a rank, then ranks, timelines, matrix and collectives; tables of detail are
    folded."""
    overview = replace(
        ranks_overview(told),
        tables=(),
        account=explorers.lateness_account(told),
        bars=explorers.span_bars(told, MOST_BARS),
        bar_words=CALL_PARTS | words.PARTS,
    )
    every = (
        doc.section(
            "ranks",
            "Ranks",
            doc.Part(explorers.rank_explorer(told), doc.FIRST),
            fleet.distribution_table(told) if len(told.ranks) > MOST_UNFOLDED else None,
        ),
        doc.section("timelines", "Timelines", rank_timelines(told)),
        doc.section(
            "stragglers",
            "Stragglers",
            doc.Part(_captioned(fleet.straggler_table(told, MOST_KINDS), "Slower than their peers"), doc.TABLES),
            words.rule_words(told.straggler_rule) if told.straggler_rule else None,
            doc.Part(fleet.step_map(told) if told.straggler_rule else None, page_only=True),
        ),
        doc.section("groups", "Groups", *_groups(told)),
        doc.section(
            "waiting",
            "Who waits for whom",
            doc.Part(explorers.matrix(told), doc.TABLES),
            doc.Part(_every_wait(told), page_only=True),
        ),
        doc.section(
            "late",
            "Late ranks",
            doc.Part(_captioned(sections.late_table(told, MOST_LATE), "Late ranks, and why"), doc.TABLES),
        ),
        doc.section(
            "collectives",
            "Collectives",
            doc.Part(explorers.worst_explorer(told), doc.TABLES),
            doc.Part(_captioned(sections.collective_table(told, MOST_KINDS), "By kind, largest first"), doc.TABLES),
        ),
        doc.section("findings", "Findings", doc.Part(_findings(told), doc.FIRST)),
        folded("detail", "Detail", "uneven work, idle time, matching", *_details(told)),
        folded(
            "method",
            "How this was measured",
            "waiting, causes, bandwidth",
            doc.Bullets("Method", (*words.HOW, *(words.MANY_HOW if len(told.ranks) > MOST_HELD else ()))),
            short="Method",
        ),
    )
    return doc.Report(overview.headline, overview, tuple(each for each in every if each))


def _groups(told: Ranks) -> tuple[doc.Block | None, ...]:
    """A table for each axis; long ones are folded."""
    found: list[doc.Block | None] = []
    for axis in dict.fromkeys(each.axis for each in told.groups):
        table = fleet.group_table(told, axis, MOST_MATRIX_ROWS)
        long = table is not None and len(table.rows) > MOST_UNFOLDED
        found.append(doc.Fold(f"By {axis}", (table,)) if table and long else table)
    return tuple(found)


def _every_wait(told: Ranks) -> doc.Fold | None:
    """All rows, where the first table has not room for all."""
    if len(told.ranks) <= explorers.MOST_WAITERS:
        return None
    every = explorers.matrix(told, MOST_MATRIX_ROWS)
    return doc.Fold(f"All {len(told.ranks):,} ranks", (every,)) if every else None


def _findings(told: Ranks) -> doc.Findings | None:
    texts = tuple(
        doc.FindingText(
            id=f"finding-{each.code}{_whose(each)}",
            severity=each.severity,
            title=each.title(),
            evidence=each.long(),
            saving=saved_words(each.saving_us),
            savings=(),
            advice="",
            is_command=False,
            notes=(),
        )
        for each in told.findings[:MOST_FINDINGS]
    )
    return doc.Findings(texts) if texts else None


def _whose(finding: RankFinding) -> str:
    """What tells its address from that of another of the same code."""
    if finding.rank is not None:
        return f"-{finding.rank}"
    name = finding.name if isinstance(finding, Straggler) else None
    return f"-{re.sub('[^0-9A-Za-z_.-]', '-', name)}" if name else ""


def _details(told: Ranks) -> tuple[doc.Block | None, ...]:
    few = replace(told, ranks=sections.foremost(told, MOST_UNFOLDED)[0])
    notes = tuple(each.long() for each in told.notes)
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
