import base64
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.showing import comparison_page, comparisons_page, side_page, written

from tracekit.comparison import compare
from tracekit.comparison.comparing import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.names import short_kernel_name
from tracekit.report import timelines as drawing
from tracekit.report.sections.idle import cause_table
from tracekit.report.timelines import MEDIAN_STEP, NO_GROUP, timelines, timelines_by_name
from tracekit.walks.reading import Reading
from tracekit.walks.sides import load_side

from ..browser import opened
from .conftest import HOSTILE_NAMES, matched_comparison, three_times_matched, timed_comparison


def hostile_timelines() -> Comparison:
    """Kernels with hostile names, a microsecond each."""
    count = len(HOSTILE_NAMES)
    work = Bars(tuple(map(float, range(count))), (0.5,) * count, tuple(range(count)), (0,) * count, 3)
    none = Bars((), (), (), (), 0)
    labels = tuple(Label(name, "pointwise") for name in HOSTILE_NAMES)
    timeline = StepTimeline(0, float(count), 0, 0, (7,), labels, work, tuple(range(count)), none, none)
    comparison = timed_comparison()
    a, b = (replace(side, timeline=timeline, label=HOSTILE_NAMES[1]) for side in (comparison.a, comparison.b))
    return replace(comparison, a=a, b=b)


def test_what_is_packed_is_what_was_recorded():
    comparison = matched_comparison()
    told = timelines(comparison)
    packed = gzip.decompress(base64.b64decode(told.data["packed"]))
    counts = [side["counts"] for side in told.data["sides"]]
    assert len(packed) == sum(10 * sum(each) + 3 * each[0] for each in counts)
    recorded, count = comparison.a.timeline, counts[0][0]
    assert count == len(recorded.positions)
    starts = np.cumsum(np.frombuffer(packed, "<u4", count)) / 100
    durations = np.frombuffer(packed, "<u4", count, 4 * count) / 100
    assert starts == pytest.approx(recorded.work.starts_us, abs=0.011)
    assert durations == pytest.approx(recorded.work.durations_us, abs=0.006)
    groups = np.frombuffer(packed, "<u2", count, 10 * count)
    at = int(np.flatnonzero(groups == 0)[0])
    largest = {member.name for member in comparison.groups[0].a}
    assert recorded.labels[recorded.work.labels[at]].name in largest
    assert (groups != NO_GROUP).all()
    assert told.data["groups"][0][2] == [24, 84]


def test_what_is_not_drawn_is_said():
    notes = timelines(hostile_timelines()).notes
    assert "6 events, the shortest, are not drawn." in notes
    assert "Kernels were told by names alone, so nothing lights up." in notes
    assert "No event is left out." in timelines(matched_comparison()).notes


def test_the_shortest_bars_and_the_last_groups_go_where_the_page_would_be_too_large(monkeypatch):
    comparison = matched_comparison()
    whole = timelines(comparison)
    monkeypatch.setattr(drawing, "MOST_BYTES", 6_000)
    monkeypatch.setattr(drawing, "MOST_GROUP_BYTES", 300)
    told = timelines(comparison)
    assert len(base64.b64decode(told.data["packed"])) <= 6_000 * 1.2
    (left_out,) = (int(each.split()[0].replace(",", "")) for each in told.notes if "are not drawn" in each)
    every, kept = (sum(sum(each["counts"]) for each in found.data["sides"]) for found in (whole, told))
    assert left_out == every - kept
    assert any("groups with smaller changes, for the page's size, do not light up" in each for each in told.notes)
    assert 0 < len(told.data["groups"]) < len(whole.data["groups"])
    # The longest kernel is still there, by its own name.
    work = comparison.a.timeline.work
    longest = comparison.a.timeline.labels[work.labels[int(np.argmax(work.durations_us))]].name
    assert short_kernel_name(longest) in {name for name, _ in told.data["sides"][0]["labels"]}
    packed = gzip.decompress(base64.b64decode(told.data["packed"]))
    count = told.data["sides"][0]["counts"][0]
    groups = np.frombuffer(packed, "<u2", count, 10 * count)
    assert set(groups.tolist()) <= {*range(len(told.data["groups"])), NO_GROUP}


def test_without_recordings_of_both_sides_there_is_nothing_to_draw():
    comparison = matched_comparison()
    assert timelines(timed_comparison()) is None
    assert timelines(replace(comparison, b=replace(comparison.b, timeline=None))) is None
    assert 'id="timelines"' not in comparison_page(timed_comparison())


@contextmanager
def drawn(tmp_path: Path, page: str, **screen: Any) -> Iterator[Any]:
    """The page, opened, when its timelines are drawn; it asks for nothing and complains of nothing."""
    with opened(written(tmp_path, page), **screen) as visited:
        visited.page.wait_for_selector("html[data-timelines=drawn]")
        yield visited.page
        assert visited.complaints == visited.requests == []


@pytest.mark.browser
def test_pointing_at_a_fused_kernel_lights_up_the_eager_ones_it_replaced(tmp_path):
    comparison = matched_comparison()
    timeline, group = comparison.b.timeline, comparison.groups[1]
    assert group.kind == "fused"
    fused = next(at for at, position in enumerate(timeline.positions) if position in group.b_at)
    with drawn(tmp_path, comparison_page(comparison)) as page:
        canvas = page.locator(".timelines canvas")
        canvas.scroll_into_view_if_needed()
        box = canvas.bounding_box()
        longest = max(each.length_us for each in (comparison.a.timeline, timeline) if each)
        middle = timeline.work.starts_us[fused] + timeline.work.durations_us[fused] / 2
        x = 6 + middle / longest * (box["width"] - 12)
        # The middle of B's first lane: below an axis, a title and three lanes of A, a title.
        y = 22 + 20 + (24 + 4) + (12 + 4) + (14 + 4) + 20 + 12
        # Zooming where the pointer is leaves what is under it there.
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.keyboard.down("Control")
        for _ in range(12):
            page.mouse.wheel(0, -400)
            page.wait_for_timeout(30)
        page.keyboard.up("Control")
        page.mouse.move(box["x"] + x + 0.2, box["y"] + y)
        page.wait_for_timeout(100)
        lit = f"{len(group.a_at)} of A, {len(group.b_at)} of B light up"
        assert all(told in page.inner_text(".readout") for told in ("B: vit_default", "(triton)", lit))
        page.click("[data-do=all]")
        after_next(page)
        assert int(canvas.get_attribute("data-lit")) > 0


@pytest.mark.browser
@pytest.mark.parametrize(
    ("report", "begin", "lit"),
    [
        (lambda: side_page(look_at(matched_comparison().b)), "", r"\d of this"),
        (lambda: comparisons_page(three_times_matched()), "D: max-autotune", r"\d of B, \d of C, \d of D of this"),
    ],
    ids=["one", "several"],
)
def test_a_kernel_lights_up_those_of_its_name_in_every_form(tmp_path, report, begin, lit):
    with drawn(tmp_path, report()) as page:
        said = after_next(page)
        assert said.startswith(begin) and re.search(f"{lit} name light up", said)


def after_next(page) -> str:
    """What is said of the bar that the key for the next one comes to."""
    page.focus(".timelines canvas")
    page.keyboard.press("n")
    page.wait_for_timeout(100)
    return page.inner_text(".readout")


@pytest.mark.browser
def test_the_timelines_are_zoomed_and_moved_by_buttons_keys_and_dragging(tmp_path):
    with drawn(tmp_path, comparison_page(matched_comparison())) as page:
        canvas = page.locator(".timelines canvas")

        def view() -> tuple[float, float]:
            page.wait_for_timeout(80)
            return float(canvas.get_attribute("data-from")), float(canvas.get_attribute("data-to"))

        whole = view()
        assert whole[0] == 0
        page.click("[data-do=in]")
        start, end = view()
        assert end - start == pytest.approx((whole[1] - whole[0]) / 2)
        canvas.focus()
        page.keyboard.press("ArrowRight")
        moved = view()
        assert moved[0] == pytest.approx(start + (end - start) / 4)
        box = canvas.bounding_box()
        page.mouse.move(box["x"] + 400, box["y"] + 60)
        page.mouse.down()
        page.mouse.move(box["x"] + 300, box["y"] + 60)
        page.mouse.up()
        assert view()[0] > moved[0]
        page.keyboard.press("0")
        assert view() == whole
        for _ in range(40):
            page.keyboard.press("+")
        start, end = view()
        assert end - start == pytest.approx(0.5)


@pytest.mark.browser
def test_on_a_phone_and_with_hostile_names_the_timelines_are_drawn_and_say_the_names_as_text(tmp_path):
    with drawn(tmp_path, comparison_page(hostile_timelines()), width=400, dark=True) as page:
        assert "<script>alert(1)</script>" in after_next(page)
        after_next(page)
        after_next(page)
        assert page.title() != "taken"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


RUN = Path(__file__).parents[2] / "traces" / "h200-vit"


def test_what_is_unattributed_is_explained_with_its_share_and_the_step_that_is_drawn_is_named_with_the_reason():
    sides = tuple(load_side(RUN, form=form, reading=Reading(shapes=True)) for form in ("eager", "compiled"))
    told = timelines(compare(*sides))
    shares = r"Unattributed \(gaps with \d\d % of A's idle time, \d\d % of B's idle time\): the light recording"
    assert re.match(shares, told.legend)
    assert "tables of idle time and waterfalls divide it in the proportions of the rich recording" in told.legend
    assert "what has the same colour plain and hatched has nothing to do with each other" in told.intro
    page = comparison_page(compare(*sides))
    assert told.legend.replace("'", "&#39;") in page
    assert "Idle and host, hatched, by cause:" in page
    steps = r"A: step \d \(of 2\) of the light recording, .*; B: step \d \(of 2\) of the light recording, "
    assert re.match(steps, told.notes[0])
    assert MEDIAN_STEP in told.notes


def test_a_trace_alone_speaks_of_no_other_recording():
    side = load_side(RUN / "eager-light.json.gz", reading=Reading(shapes=True))
    told = timelines_by_name((("", side),))
    assert told.legend.endswith("this recording does not say what the host did meanwhile.")
    assert re.match(r"Step \d \(of 2\) of the recording, ", told.notes[0])
    told = " ".join(told.notes) + (cause_table((("", side),)) or pytest.fail("no table")).note
    assert "rich" not in told and "light" not in told
