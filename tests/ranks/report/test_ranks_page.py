"""The page of many ranks: it adds up, it is small, and it is used by mouse, keys, phone and paper."""

import base64
import gzip
import math
import random
import re
from functools import cache
from pathlib import Path

import polars as pl
import pytest
from msgspec.structs import replace
from tests.ranks.jobs import make_digest, simulate
from tests.report.showing import printed, written
from tests.report.test_page_in_browser import WEIGHTY, assert_all_in_reach, violations, was_quiet

from tracekit.numbers import MISSING, duration
from tracekit.ranks.job_figures import Ranks, WaitedFor
from tracekit.ranks.joining import match_ranks
from tracekit.ranks.report.explorers import MOST_LATES, MOST_PERCENT, matrix, rank_explorer, span_bars, worst_explorer
from tracekit.ranks.report.overview import ranks_overview
from tracekit.ranks.report.ranks_page import ranks_report
from tracekit.ranks.report.tables import UNMATCHED, account_table, foremost, unmatched_us
from tracekit.ranks.report.words import PARTS
from tracekit.ranks.statements import notes as statements
from tracekit.ranks.statements.findings import LateRank
from tracekit.ranks.telling import MOST_HELD, tell_ranks
from tracekit.report.document import Explorer, HeatMap, Timelines
from tracekit.report.markdown import LONGEST, markdown_of, stacked
from tracekit.report.page import page_of
from tracekit.report.sections.call import CALL_PARTS
from tracekit.report.thirty_lines import MOST_LINES, shown_overview
from tracekit.shell import split

from ...browser import opened, settle

MOST_BYTES = 2_000_000
RENAMED = "(before) => document.querySelector('.timelines canvas').ariaLabel !== before"


@cache
def job(size: int, steps: int = 12) -> Ranks:
    """Three ranks of it are slow, the later ones less; the others differ a little."""
    draw = random.Random(size)
    slow = {size // 4: 400.0, size // 2: 250.0, size - 2: 150.0}

    def work_us(rank: int, step: int) -> float:
        return 1000.0 + draw.uniform(0, 40) + slow.get(rank, 0.0) * (step % 5 != rank % 5)

    return tell_ranks(match_ranks(simulate(size, steps, work_us)), drawn=True)


@cache
def page(size: int) -> str:
    return page_of(ranks_report(job(size)))


@pytest.mark.parametrize(("size", "bars"), [(2, 2), (8, 8), (12, 8)])
def test_the_segments_of_every_bar_add_up_to_its_span(size: int, bars: int) -> None:
    shown = span_bars(job(size), 8)
    assert len(shown) == bars
    for bar in shown:
        assert sum(us for _, us in bar.segments) == pytest.approx(bar.total_us, abs=0.05)
    assert [bar.label for bar in shown if bar.mark] == [f"rank {job(size).findings[0].rank}"]
    longest = max(stacked(shown, CALL_PARTS | PARTS).splitlines(), key=len)
    assert {"\N{FULL BLOCK}", "\N{DARK SHADE}", "\N{MEDIUM SHADE}"} <= set(longest)


def test_what_was_joined_to_nothing_is_a_segment_of_its_own() -> None:
    told = job(2)
    torn = replace(told.ranks[0], exposed_waiting_us=None, exposed_transfer_us=None)
    first, _ = span_bars(replace(told, ranks=(torn, told.ranks[1])), 8)
    assert dict(first.segments)["unmatched"] == pytest.approx(torn.exposed_us)
    assert sum(us for _, us in first.segments) == pytest.approx(first.total_us, abs=0.05)


@pytest.mark.parametrize("size", [8, 40])
def test_the_matrix_holds_all_waiting_and_the_table_each_rank(size: int) -> None:
    told = job(size)
    unit = 1e3
    heat = matrix(told)
    assert isinstance(heat, HeatMap)
    waits = {f"rank {each.rank}": each.waiting_us or 0.0 for each in told.ranks}
    for name, cells in heat.rows:
        figures = [0.0 if cell.tone == "missing" else float(cell.text) for cell in cells]
        assert sum(figures[:-1]) == pytest.approx(figures[-1], abs=0.02)
        if name in waits:
            assert figures[-1] * unit == pytest.approx(waits[name], abs=10)
    # The late ranks have columns of their own, and those that are left out stand together.
    assert f"rank {size // 4}" in heat.columns and len(heat.rows) == min(size, 17)
    table = rank_explorer(told)
    assert {row.number: row.figures[0].value for row in table.rows} == {use.rank: use.span_us for use in told.ranks}


def test_each_of_the_worst_collectives_opens_to_the_waiting_of_every_rank() -> None:
    told = job(8)
    table = worst_explorer(told)
    assert isinstance(table, Explorer) and len(table.rows) == len(told.worst) == 12
    for row, each in zip(table.rows, told.worst, strict=True):
        assert row.number == each.number and row.words[0] == f"rank {each.last_rank}"
        assert row.figures[-1].value == pytest.approx(sum(one.us for one in each.waiting_us))
        listed = next(text for term, text in row.facts if term == "Waiting by rank")
        assert len(listed.split(", ")) == 8


def test_sixty_four_ranks_are_a_small_page_and_a_short_summary() -> None:
    told = job(64)
    report = ranks_report(told)
    assert len(page(64).encode()) < MOST_BYTES / 4
    assert len(markdown_of(report)) < LONGEST / 2
    (timelines,) = (block for block in report.drawn() if isinstance(block, Timelines))
    assert {len(each["sides"]) for each in timelines.data["recordings"]} == {MOST_HELD}
    assert len(timelines.choices) == len(timelines.data["recordings"]) == len(timelines.recordings)
    assert len(printed(shown_overview(ranks_overview(told), None, Path("page.html")), 100).splitlines()) <= MOST_LINES


def test_bars_are_packed_as_counted_and_each_recording_names_its_collective() -> None:
    (timelines,) = (block for block in ranks_report(job(8)).drawn() if isinstance(block, Timelines))
    for recording in timelines.data["recordings"]:
        packed = gzip.decompress(base64.b64decode(recording["packed"]))
        # Of work start, length, label, group and lane; of gaps only labels where they are what work leaves free.
        each = ((13, 2 if side["holes"] else 10) for side in recording["sides"])
        sizes = sum(
            work * side["counts"][0] + gap * side["counts"][1]
            for side, (work, gap) in zip(recording["sides"], each, strict=True)
        )
        assert len(packed) == sizes
        assert timelines.data["groups"][recording["mark"]["group"]] in timelines.choices


def waiting_rank(exposed_us: float) -> Ranks:
    """Rank 1 runs 300 us of kernels more in each of ten steps; rank 0 computes meanwhile, but for the last of it."""
    steps = [1000.0 * step for step in range(10)]
    kernels = [(at, at + 500, "gemm") for at in steps]
    beside, extra = (
        [(at + 500, at + end, name) for at in steps] for end, name in ((800 - exposed_us, "b"), (800, "c"))
    )
    early = make_digest(0, 2, talk=[(at + 500, at + 900) for at in steps], kernels=[*kernels, *beside])
    late = make_digest(1, 2, talk=[(at + 800, at + 900) for at in steps], kernels=[*kernels, *extra])
    return tell_ranks(match_ranks([replace(each, steps=tuple(range(10)), window="steps") for each in (early, late)]))


def test_a_late_rank_leads_with_what_it_costs_and_overlapped_waits_are_evidence() -> None:
    told = waiting_rank(100)
    (late,) = [each for each in told.findings if isinstance(each, LateRank)]
    assert (late.severity, late.steps, late.cost_us) == ("warning", 10, pytest.approx(1000))
    shown = ranks_overview(told)
    # Of 300 us a step 200 are overlapped.
    assert duration(100.0) in shown.headline and duration(300.0) not in shown.headline
    assert duration(300.0) in shown.evidence and duration(100.0) in shown.advice[0].gain


def test_a_late_rank_whose_waits_are_overlapped_is_no_headline() -> None:
    told = waiting_rank(1)
    (late,) = [each for each in told.findings if isinstance(each, LateRank)]
    assert (late.severity, late.most_waited_us) == ("info", pytest.approx(3000))
    # All that communication costs comes first: the transfer of 100 us, and a microsecond of waiting.
    assert duration(101.0) in ranks_overview(told).headline and ranks_overview(told).result == ("", "")


def test_ranks_that_lose_most_come_first() -> None:
    told = waiting_rank(100)
    idle = replace(told.ranks[1], waiting_us=1e6, exposed_us=0.0)
    shown = replace(told, ranks=(told.ranks[0], idle), waits=())
    assert [row.number for row in rank_explorer(shown).rows] == [0, 1]
    assert [use.rank for use in foremost(shown, 1)[0]] == [0]
    heads = [column.label for column in account_table(told, 6).columns]
    assert heads.index("overlap price") < heads.index("waiting")


def test_a_price_that_may_be_none_costs_nothing() -> None:
    use = replace(job(2).ranks[0], overlap_price_us=100.0, overlap_price_ci95=(-10.0, 210.0))
    assert (use.seen_price_us, use.price_of_waiting_us) == (0, 0)
    assert use.communication_cost_us == use.exposed_us
    assert replace(use, overlap_price_ci95=(10.0, 190.0)).communication_cost_us == use.exposed_us + 100


def test_one_rank_alone_has_a_page_without_waiting() -> None:
    told = tell_ranks(match_ranks(simulate(4, 3, lambda rank, _: 100.0 + rank)[:1]), drawn=True)
    report = ranks_report(told)
    assert not [block for block in report.drawn() if isinstance(block, Timelines | HeatMap)]
    assert "rank 0" in page_of(report) and "rank 0" in markdown_of(report)


def test_a_late_rank_is_advised_on_first() -> None:
    (first, *_) = ranks_report(job(8)).overview.advice
    assert "rank 2" in first.what and first.command


def test_what_is_advised_takes_a_file_for_no_option() -> None:
    told = job(8)
    late = tuple(each.but(cause="compute") for each in told.findings if isinstance(each, LateRank))
    renamed = tuple(replace(each, path=f"--out=a b{each.rank}.json") for each in told.ranks)
    (first, *_) = ranks_report(replace(told, findings=late, ranks=renamed)).overview.advice
    tracekit, command, *files = split(first.command)
    assert (tracekit, command) == ("tracekit", "compare")
    assert len(files) == 2 and all(file.startswith("./--out=a b") for file in files)


@pytest.mark.browser
@pytest.mark.parametrize(("size", "width", "dark", "screens"), [(8, 1300, False, 6), (64, 390, True, 12)])
def test_the_page_is_in_reach_on_any_screen_and_a_few_screens_long(
    tmp_path: Path, size: int, width: int, dark: bool, screens: int
) -> None:
    with opened(written(tmp_path, page(size)), width=width, dark=dark) as visited:
        assert visited.page.get_attribute("html", "data-timelines") == "drawn"
        assert visited.page.evaluate("document.documentElement.scrollHeight") <= screens * 900
        if width > 900:
            assert visited.page.locator("nav").bounding_box()["y"] < 900, "the answer takes one screen"
        # What is folded opens on paper.
        visited.page.emulate_media(media="print")
        sheets = visited.page.pdf(format="A4")
        assert len(re.findall(rb"/Type\s*/Page\b", sheets)) <= 10
        visited.page.emulate_media(media="screen")
        assert_all_in_reach(visited.page)
        assert violations(visited.page, WEIGHTY) == []
        assert was_quiet(visited)


@pytest.mark.browser
def test_timelines_are_read_by_keys_and_another_collective_is_chosen(tmp_path: Path) -> None:
    with opened(written(tmp_path, page(8))) as visited:
        drawn = visited.page
        canvas, readout = drawn.locator(".timelines canvas"), drawn.locator(".readout")
        canvas.focus()
        told = []
        for key in ("n", "ArrowDown", "ArrowDown", "n"):
            drawn.keyboard.press(key)
            settle(drawn)
            told.append(readout.inner_text())
        assert [words.split(" \u00b7 ")[0] for words in told] == ["rank 0", "rank 1", "rank 2", "rank 2"]
        assert any("gemm" in words for words in told) and any("ncclDevKernel" in words for words in told)
        # All parts of the collective light up.
        assert int(canvas.get_attribute("data-lit")) >= 8
        before = canvas.get_attribute("aria-label")
        drawn.select_option(".timelines select", index=1)
        drawn.wait_for_function(
            "(before) => document.querySelector('.timelines canvas').ariaLabel !== before", arg=before
        )
        # The whole of the other collective, of which nothing is chosen yet.
        drawn.wait_for_function("() => document.querySelector('.readout').textContent === ''")
        assert canvas.get_attribute("data-from") == "0"
        drawn.click("#rank-1 .opens")
        assert "rank1.json" in drawn.inner_text("#drawer")
        assert was_quiet(visited)


def test_where_clocks_are_unknown_no_rank_is_named() -> None:
    lasting, brief = ([(at * each + 100, at * each + us) for at in range(6)] for each, us in ((1000, 400), (5000, 200)))
    told = tell_ranks(match_ranks([make_digest(rank, 2, talk=talk) for rank, talk in enumerate((lasting, brief))]))
    assert told.clock.basis == "bound" and not told.waits
    assert told.ranks[0].exposed_waiting_us == pytest.approx(6 * 200)
    # Waiting is a lower bound there.
    assert "at most" not in ranks_overview(told).headline
    lines = printed(shown_overview(ranks_overview(told), None, None), 100).splitlines()
    # Neither by how much somebody was late nor who.
    assert [line.count(MISSING) for line in lines if "all_reduce" in line] == [2]


def test_the_verdict_alone_says_which_ranks_and_recordings_it_lacks() -> None:
    told = job(8)
    lines = printed(shown_overview(ranks_overview(told), None, None, detail="verdict"), 100).splitlines()
    notes = (
        statements.Unreadable(reason="it is empty"),
        statements.Foreign("a.json", rank=1),
        statements.OtherJob("b.json", rank=2, size=4, usual_size=8),
    )
    few = replace(told, world=replace(told.world, recorded=(0, 1, 2), missing=(3, 4, 5, 6, 7)), notes=notes)
    *verdict, lacking = printed(shown_overview(ranks_overview(few), None, None, detail="verdict"), 100).splitlines()
    assert verdict == lines
    assert re.findall(r"\d+", lacking) == ["3", "8", "1", "2"]


def test_collectives_of_whose_lateness_nobody_knows_a_cause_have_no_column_for_it() -> None:
    told = job(2)
    bare = replace(told, worst=tuple(replace(each, causes=()) for each in told.worst))
    for some, columns in ((told, 2), (bare, 1)):
        explorer = worst_explorer(some)
        assert explorer is not None and {len(explorer.words), *(len(row.words) for row in explorer.rows)} == {columns}


def test_the_colours_of_the_matrix_are_of_single_ranks_and_sums_have_none() -> None:
    some = job(16)
    told = replace(some, waits=tuple(WaitedFor(rank, late, 100.0) for rank in range(16) for late in range(16)))
    shown = matrix(told)
    assert shown is not None and len(shown.columns) == MOST_LATES + 2
    for _, cells in shown.rows:
        assert [each.tone for each in cells] == ["loss"] * MOST_LATES + ["even"] * 2
        assert max(each.percent for each in cells[:MOST_LATES]) == MOST_PERCENT


@pytest.mark.parametrize(("most", "rows"), [(2, 3), (1, 2)])
def test_no_rank_alone_is_the_median_of_the_others(most: int, rows: int) -> None:
    told = tell_ranks(match_ranks(simulate(3, 2, lambda rank, step: 300.0 + 200 * rank)))
    names = [str(name).strip() for name, *_ in account_table(told, most).rows]
    assert len(names) == rows
    assert (set(names) == {f"rank {use.rank}" for use in told.ranks}) == (most == 2)


def test_a_recording_without_communication_is_said_to_have_none_once() -> None:
    told = tell_ranks(match_ranks([make_digest(None, None, talk=[], kernels=[(0, 800, "gemm")])]))
    shown = ranks_overview(told)
    assert statements.NoCollectives().long().startswith(shown.headline)
    assert len(shown.notes) == len(told.notes) - 1


def test_communication_that_matches_nothing_has_a_column_and_stands_in_the_headline() -> None:
    early, late = simulate(2, 6, lambda rank, step: 300.0 + 200 * rank)
    other = pl.when(pl.int_range(pl.len()) < 4).then(pl.lit("another")).otherwise("signature")
    cut = replace(late, collectives=late.collectives.with_columns(signature=other))
    told = tell_ranks(match_ranks([early, cut]))
    use = told.ranks[0]
    unmatched = unmatched_us(use)
    assert unmatched > 0.1 * use.span_us
    parts = (use.compute_us, use.exposed_transfer_us, use.exposed_waiting_us, unmatched, use.idle_us)
    assert math.fsum(us or 0.0 for us in parts) == pytest.approx(use.span_us)
    heads = [column.label for column in account_table(told, 6).columns]
    assert UNMATCHED in heads and UNMATCHED not in [
        column.label for column in account_table(tell_ranks(match_ranks([early, late])), 6).columns
    ]
    (note,) = [each for each in told.notes if each.code == "unmatched_collectives"]
    assert (note.facts["count"], note.facts["of"]) == (8, 12)
