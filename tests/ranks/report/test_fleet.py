"""A fleet in thirty lines, on a page of bounded size, and in JSON that keeps to its schema."""

import json

from jsonschema import Draft202012Validator
from msgspec.structs import replace
from tests.ranks.fleets.grown import MISSING, SLOW, told
from tests.report.showing import printed

from tracekit.ranks.job_figures import CauseShare, Ranks
from tracekit.ranks.report.as_json import ranks_json
from tracekit.ranks.report.fleet import MOST_COLUMNS, step_map
from tracekit.ranks.report.overview import ranks_overview
from tracekit.ranks.report.ranks_page import ranks_report
from tracekit.ranks.report.words import causes_told
from tracekit.ranks.statements.words import ranges
from tracekit.report.contract import schema
from tracekit.report.page import page_of
from tracekit.report.thirty_lines import MOST_LINES, shown_overview

MOST_BYTES = 2_000_000


def enlarged(ranks: Ranks, times: int) -> Ranks:
    """As of a world so many times as large: all that has a row for each rank, host or group, so often."""
    rows = ("collectives", "late", "unmatched", "groups", "stragglers", "findings")
    longer = {name: getattr(ranks, name) * times for name in rows}
    every = [(each, 96 * at) for at in range(times) for each in ranks.ranks]
    waits = [(each, 96 * at) for at in range(times) for each in ranks.waits]
    longer["ranks"] = tuple(replace(each, rank=each.rank + more) for each, more in every)
    longer["waits"] = tuple(replace(each, rank=each.rank + more, late=each.late + more) for each, more in waits)
    return replace(ranks, **longer)


def test_a_fleet_takes_thirty_lines_whatever_is_slow() -> None:
    unknown = replace(told(), groups=tuple(replace(each, excess=None) for each in told().groups))
    for each in (told("planted"), told(), enlarged(told("planted"), 40), unknown):
        assert len(printed(shown_overview(ranks_overview(each), None, None), 100).splitlines()) <= MOST_LINES


def test_the_page_of_a_large_world_is_below_two_megabytes() -> None:
    large = enlarged(told("planted"), 60)
    assert len(large.ranks) > 5000
    assert len(page_of(ranks_report(large))) < MOST_BYTES


def test_the_map_of_steps_has_stragglers_first_and_bins_of_steps() -> None:
    steps = step_map(told("planted"))
    assert steps is not None
    assert str(SLOW) in {row[0] for row in steps.rows[:2]}
    longer = replace(told("planted"), by_step=told("planted").by_step * 40)
    binned = step_map(longer)
    assert binned is not None and len(binned.columns) == MOST_COLUMNS


def test_the_json_of_a_fleet_keeps_to_its_schema() -> None:
    document = json.loads(ranks_json(told("planted")))
    Draft202012Validator(schema("ranks")).validate(document)
    assert {each["kind"] for each in document["stragglers"]} == {"rank", "host", "link"}
    assert document["straggler_rule"]["false_alarms"] == 0.01


def test_missing_ranks_are_ranges() -> None:
    assert ranges(MISSING) == "0, 61 to 63"
    assert ranges(range(0, 100, 2), most=2) == "0, 2 and 48 more"


def test_causes_of_no_time_are_none() -> None:
    assert causes_told([CauseShare("python", 0.0)], 2) == ""
    assert causes_told([CauseShare("python", 3.0), CauseShare("guards", 1.0)], 1) == "Python 75 %"
