"""The page of many ranks, and its markdown twin."""

import re
from collections.abc import Iterator

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
    many = len(told.ranks) > MOST_HELD
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
            _captioned("Slower than their peers", fleet.straggler_table(told, MOST_KINDS)),
            words.rule_words(told.straggler_rule) if told.straggler_rule else None,
            doc.Part(fleet.step_map(told) if told.straggler_rule else None, page_only=True),
        ),
        doc.section("groups", "Groups", *_groups(told)),
        doc.section("waiting", "Who waits for whom", doc.Part(explorers.matrix(told), doc.TABLES), _every_wait(told)),
        doc.section("late", "Late ranks", _captioned("Late ranks, and why", sections.late_table(told, MOST_LATE))),
        doc.section(
            "collectives",
            "Collectives",
            doc.Part(explorers.worst_explorer(told), doc.TABLES),
            _captioned("By kind, largest first", sections.collective_table(told, MOST_KINDS)),
        ),
        doc.section("findings", "Findings", doc.Part(_findings(told), doc.FIRST)),
        folded("detail", "Detail", "uneven work, idle time, matching", *_details(told)),
        folded(
            "method",
            "How this was measured",
            "waiting, causes, bandwidth",
            doc.Bullets("Method", (*words.HOW, *words.MANY_HOW) if many else words.HOW),
            short="Method",
        ),
    )
    return doc.Report(overview.headline, overview, tuple(filter(None, every)))


def _captioned(caption: str, table: doc.Table | None) -> doc.Part:
    """A table of the terminal, which is indented there and has no caption."""
    rows = ((str(name).strip(), *cells) for name, *cells in (table.rows if table else ()))
    return doc.Part(replace(table, caption=caption, rows=tuple(rows)) if table else None, doc.TABLES)


def _groups(told: Ranks) -> Iterator[doc.Block | None]:
    """A table for each axis; long ones are folded."""
    for axis in dict.fromkeys(each.axis for each in told.groups):
        table = fleet.group_table(told, axis, MOST_MATRIX_ROWS)
        yield doc.Fold(f"By {axis}", (table,)) if table and len(table.rows) > MOST_UNFOLDED else table


def _every_wait(told: Ranks) -> doc.Part | None:
    """All rows, where the first table has not room for all."""
    every = explorers.matrix(told, MOST_MATRIX_ROWS) if len(told.ranks) > explorers.MOST_WAITERS else None
    return doc.Part(doc.Fold(f"All {len(told.ranks):,} ranks", (every,)), page_only=True) if every else None


def _findings(told: Ranks) -> doc.Findings | None:
    texts = tuple(
        doc.FindingText(_address(each), each.severity, each.title(), each.long(), saved_words(each.saving_us))
        for each in told.findings[:MOST_FINDINGS]
    )
    return doc.Findings(texts) if texts else None


def _address(finding: RankFinding) -> str:
    """Where it stands in the page; of several of a code the rank, or the host's or group's name, tells which."""
    name = finding.name if isinstance(finding, Straggler) else None
    whose = name if finding.rank is None else str(finding.rank)
    return f"finding-{finding.code}" + (f"-{re.sub('[^0-9A-Za-z_.-]', '-', whose)}" if whose else "")


def _details(told: Ranks) -> Iterator[doc.Block | None]:
    few = replace(told, ranks=sections.foremost(told, MOST_UNFOLDED)[0])
    yield sections.uneven_table(told)
    yield sections.idle_table(few)
    yield sections.matching_table(told)
    yield sections.unmatched_table(told)
    yield doc.Bullets("Notes", told.warnings) if told.notes else None
