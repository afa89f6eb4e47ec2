import base64
import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from tests.report.showing import comparison_page, comparisons_page, side_page, written

from tracekit.comparison.comparing import compare
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.timeline import Bars, Label, StepTimeline
from tracekit.names import short_kernel_name
from tracekit.numbers import duration
from tracekit.reading.sides import load_side
from tracekit.reading.traces import Reading
from tracekit.report import timelines as drawing
from tracekit.report.sections.idle import cause_table
from tracekit.report.timeline_bytes import NO_GROUP, as_columns, with_short_events_together
from tracekit.report.timelines import (
    ALIKE,
    BY_NAMES,
    DIVIDED,
    LENGTHENED,
    MEDIAN_STEP,
    TOGETHER,
    UNKNOWN,
    timelines,
    timelines_by_name,
)
from tracekit.report.words.common import with_letters

from ..browser import opened, settle
from .conftest import HOSTILE_NAMES, matched_comparison, three_times_matched, timed_comparison

RUN = Path(__file__).parents[2] / "traces" / "h100-vit"


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


@cache
def both_recordings() -> Comparison:
    """A run of ViT-B/16 on an H200, each form recorded without operators and with them."""
    sides = (load_side(RUN, form=form, reading=Reading(shapes=True)) for form in ("eager", "compiled"))
    return compare(*sides)


def unpacked(recording: dict[str, Any]) -> list[dict[str, list[np.ndarray]]]:
    """Of each side the columns of its work (starts, durations, labels, groups, lanes), its gaps and the host."""
    packed, offset = gzip.decompress(base64.b64decode(recording["packed"])), 0

    def column(size: int, count: int) -> np.ndarray:
        nonlocal offset
        planes = np.frombuffer(packed, "u1", size * count, offset).reshape(size, count)
        offset += size * count
        return np.array([256**at for at in range(size)]) @ planes

    found = []
    for side in recording["sides"]:
        work, gaps, host = side["counts"]
        of_gaps = (2,) if side["holes"] else (4, 4, 2)
        kinds = {"work": ((4, 4, 2, 2, 1), work), "gaps": (of_gaps, gaps), "host": ((4, 4, 2), host)}
        found.append({kind: [column(size, count) for size in sizes] for kind, (sizes, count) in kinds.items()})
    assert offset == len(packed)
    return found


def test_what_is_packed_is_what_was_recorded():
    comparison = matched_comparison()
    told = timelines(comparison)
    (recording,) = told.data["recordings"]
    recorded = comparison.a.timeline
    starts, durations, _, groups, _ = unpacked(recording)[0]["work"]
    assert recording["sides"][0]["counts"][0] == len(recorded.positions)
    assert np.cumsum(starts) / 100 == pytest.approx(recorded.work.starts_us, abs=0.011)
    assert durations / 100 == pytest.approx(recorded.work.durations_us, abs=0.006)
    at = int(np.flatnonzero(groups == 0)[0])
    largest = {member.name for member in comparison.groups[0].a}
    assert recorded.labels[recorded.work.labels[at]].name in largest
    assert (groups != NO_GROUP).all()
    assert told.data["groups"][0][2] == [24, 84]


def test_gaps_that_are_not_the_holes_in_the_work_are_packed_themselves():
    recorded = matched_comparison().a.timeline
    fewer = Bars(
        *(each[1:] for each in (recorded.gaps.starts_us, recorded.gaps.durations_us, recorded.gaps.labels)), (), 1
    )
    comparison = matched_comparison()
    drawn = [comparison, replace(comparison, a=replace(comparison.a, timeline=replace(recorded, gaps=fewer)))]
    whole, cut = (timelines(each).data["recordings"][0] for each in drawn)
    assert (whole["sides"][0]["holes"], cut["sides"][0]["holes"]) == (True, False)
    starts, durations, _ = unpacked(cut)[0]["gaps"]
    assert np.cumsum(starts) / 100 == pytest.approx(fewer.starts_us, abs=0.011)
    assert durations / 100 == pytest.approx(fewer.durations_us, abs=0.006)


def test_kernels_of_one_name_light_up_in_the_timeline_of_one_side():
    side = matched_comparison().b
    told = timelines_by_name(with_letters(side))
    (found,) = unpacked(told.data["recordings"][0])
    names = [side.timeline.labels[label].name for label in side.timeline.work.labels]
    together = set(zip(names, found["work"][3].tolist(), strict=True))
    assert len(together) == len(set(names)) == len(told.data["groups"])
    assert [counts[0] for _, _, counts in told.data["groups"]] == [names.count(each) for each in dict.fromkeys(names)]
    assert timelines_by_name(with_letters(timed_comparison().a)) is None


def test_what_is_not_drawn_is_said():
    told = timelines(hostile_timelines())
    assert "6 events, the shortest, are not drawn." in told.recordings[0]
    assert told.notes == (BY_NAMES,)
    assert "No event is left out." in timelines(matched_comparison()).recordings[0]


def test_the_shortest_bars_and_the_last_groups_go_where_the_page_would_be_too_large(monkeypatch):
    comparison = matched_comparison()
    whole = timelines(comparison)
    monkeypatch.setattr(drawing, "MOST_BYTES", 3_000)
    monkeypatch.setattr(drawing, "MOST_GROUP_BYTES", 300)
    told = timelines(comparison)
    (before,), (after,) = whole.data["recordings"], told.data["recordings"]
    assert len(base64.b64decode(after["packed"])) <= 3_000 * 1.2
    (left_out,) = (int(each.split()[0].replace(",", "")) for each in told.recordings[0] if "are not drawn" in each)
    every, kept = (sum(sum(each["counts"]) for each in found["sides"]) for found in (before, after))
    assert left_out == every - kept
    assert any("groups with smaller changes" in each for each in told.notes)
    assert 0 < len(told.data["groups"]) < len(whole.data["groups"])
    # The longest kernel is still there, by its own name.
    work = comparison.a.timeline.work
    longest = comparison.a.timeline.labels[work.labels[int(np.argmax(work.durations_us))]].name
    assert short_kernel_name(longest) in {name for name, _ in after["sides"][0]["labels"]}
    groups = unpacked(after)[0]["work"][3]
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
        assert visited.page.get_attribute("html", "data-timelines") == "drawn"
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
        y = 22 + 24 + (24 + 4) + (12 + 4) + (14 + 4) + 24 + 12
        # Zooming where the pointer is leaves what is under it there.
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.keyboard.down("Control")
        for _ in range(12):
            page.mouse.wheel(0, -400)
        page.keyboard.up("Control")
        page.mouse.move(box["x"] + x + 0.2, box["y"] + y)
        settle(page)
        lit = f"{len(group.a_at)} of A, {len(group.b_at)} of B "
        assert all(told in page.inner_text(".readout") for told in ("B: vit_default", "(triton)", lit))
        page.click("[data-do=all]")
        after_next(page)
        assert int(canvas.get_attribute("data-lit")) > 0


@pytest.mark.browser
@pytest.mark.parametrize(
    ("report", "begin", "lit"),
    [
        (lambda: side_page(look_at(matched_comparison().b)), "vit_default", r"\d of this"),
        (lambda: comparisons_page(three_times_matched()), "D: max-autotune", r"\d of B, \d of C, \d of D of this"),
    ],
    ids=["one", "several"],
)
def test_a_kernel_lights_up_those_of_its_name_in_every_form(tmp_path, report, begin, lit):
    with drawn(tmp_path, report()) as page:
        said = after_next(page)
        assert said.startswith(begin) and re.search(f"{lit} name", said)


def after_next(page) -> str:
    """What is said of the bar that the key for the next one comes to."""
    page.focus(".timelines canvas")
    page.keyboard.press("n")
    settle(page)
    return page.inner_text(".readout")


@pytest.mark.browser
def test_the_timelines_are_zoomed_and_moved_by_buttons_keys_and_dragging(tmp_path):
    with drawn(tmp_path, comparison_page(matched_comparison())) as page:
        canvas = page.locator(".timelines canvas")

        def view() -> tuple[float, float]:
            settle(page)
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

        page.mouse.move(box["x"] + 400, box["y"] + 60)
        page.keyboard.press("0")
        page.keyboard.down("Shift")
        page.mouse.down()
        page.mouse.move(box["x"] + 600, box["y"] + 60)
        page.mouse.up()
        page.keyboard.up("Shift")
        unit = whole[1] / (box["width"] - 12)
        assert view() == pytest.approx((394 * unit, 594 * unit), rel=1e-3)


#: Keeps what is told of selected kernel groups, as a table of them would.
HEAR = """() => {
  window.heard = [];
  document.addEventListener("tracekit:group", ({ detail }) => window.heard.push([detail.from, detail.group]));
}"""


def choose_group(page: Any, group: int, *, show: bool = False) -> None:
    """What a table of kernel groups tells when one is chosen in it."""
    detail = {"group": group, "from": "groups", **({"show": True} if show else {})}
    page.evaluate("(detail) => document.dispatchEvent(new CustomEvent('tracekit:group', { detail }))", detail)
    settle(page)


@pytest.mark.browser
def test_a_pinned_kernel_stays_with_its_counterpart_until_it_is_let_go(tmp_path):
    comparison = matched_comparison()
    fused = next(at for at, group in enumerate(comparison.groups) if group.kind == "fused")
    with drawn(tmp_path, comparison_page(comparison)) as page:
        page.evaluate(HEAR)
        canvas, readout = page.locator(".timelines canvas"), page.locator(".timelines .readout")
        assert page.is_disabled("[data-do=other]")
        choose_group(page, fused, show=True)
        pieces = int(canvas.get_attribute("data-marked"))
        group = comparison.groups[fused]
        assert pieces == len(group.a_at) / len(group.b_at) > 1
        # A's first kernels of the group are brought above B's, which is not where they were recorded.
        sides = ((comparison.a.timeline, group.a_at), (comparison.b.timeline, group.b_at))
        a_us, b_us = (
            min(us for us, at in zip(side.work.starts_us, side.positions, strict=True) if at in places)
            for side, places in sides
        )
        shifted = [float(each) for each in canvas.get_attribute("data-shifted").split(",")]
        assert shifted == pytest.approx([b_us - a_us, 0], abs=0.02)
        # The pointer passes over it all, and another click lets go.
        said, box = readout.inner_text(), canvas.bounding_box()
        page.mouse.move(box["x"] + 30, box["y"] + 60)
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
        settle(page)
        assert readout.inner_text() == said and said.startswith("Pinned") and f"counterpart in A: {pieces}" in said
        page.mouse.click(box["x"] + 30, box["y"] + 5)
        settle(page)
        assert canvas.get_attribute("data-marked") == "0"
        # In the middle is the kernel that was shown; its click is told, and its other side is a key away.
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 22 + 2 * 24 + (24 + 4) + (12 + 4) + (14 + 4) + 12)
        settle(page)
        assert readout.inner_text() == said
        page.click("[data-do=other]")
        settle(page)
        assert "A: vit_eager" in readout.inner_text() and canvas.get_attribute("data-marked") == "1"
        assert page.evaluate("heard") == [["groups", fused], ["timeline", fused], ["timeline", fused]]
        canvas.focus()
        page.keyboard.press("Escape")
        page.mouse.move(0, 0)
        settle(page)
        assert "Pinned" not in readout.inner_text() and canvas.get_attribute("data-lit") == "0"


@pytest.mark.browser
def test_a_group_that_is_chosen_elsewhere_lights_up_and_a_kernel_is_pinned_by_keyboard_alone(tmp_path):
    with drawn(tmp_path, comparison_page(matched_comparison())) as page:
        page.evaluate(HEAR)
        canvas = page.locator(".timelines canvas")
        choose_group(page, 0)
        assert canvas.get_attribute("data-lit") == str(24 + 84)
        assert "24 of A, 84 of B " in page.inner_text(".readout")
        after_next(page)
        page.keyboard.press("Enter")
        page.keyboard.press("c")
        settle(page)
        assert page.inner_text(".readout").startswith("Pinned")
        (_, _), one, other = page.evaluate("heard")
        assert one == other and one[0] == "timeline"


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1300])
def test_the_drawer_of_a_pinned_kernel_leaves_the_timeline_in_sight_and_shows_its_group_in_it(tmp_path, width):
    with drawn(tmp_path, comparison_page(matched_comparison()), width=width) as page:
        canvas = page.locator(".timelines canvas")
        after_next(page)
        page.keyboard.press("Enter")
        page.get_by_role("dialog").get_by_role("button", name="Show in the timeline").click()
        settle(page)
        assert int(canvas.get_attribute("data-marked")) > 0
        assert page.evaluate("document.activeElement.tagName") == "CANVAS"
        place, beside = canvas.bounding_box(), page.get_by_role("dialog").bounding_box()
        assert place["y"] >= 0
        assert place["x"] + place["width"] <= beside["x"] or place["y"] + place["height"] <= beside["y"]


@pytest.mark.browser
def test_the_recording_without_operators_is_drawn_when_asked_for_at_the_same_kernel(tmp_path):
    with drawn(tmp_path, comparison_page(both_recordings()), width=400, dark=True) as page:
        canvas, readout, switch = page.locator(".timelines canvas"), page.locator(".readout"), page.locator(".switch")
        rich = canvas.get_attribute("aria-label")
        choose_group(page, 1, show=True)
        before = readout.inner_text().split(" \u00b7 ")
        switch.press("Enter")
        page.wait_for_function("(label) => document.querySelector('.timelines canvas').ariaLabel !== label", arg=rich)
        settle(page)
        after = readout.inner_text().split(" \u00b7 ")
        assert before[:3] == after[:3] and before[4] != after[4]
        assert switch.get_attribute("aria-pressed") == "true"
        assert "with profiler and operators" in rich
        assert "with profiler and operators" not in canvas.get_attribute("aria-label")
        assert [each.is_visible() for each in page.query_selector_all(".note.recording")] == [False, True]
        switch.click()
        page.wait_for_function("(label) => document.querySelector('.timelines canvas').ariaLabel === label", arg=rich)
        settle(page)
        assert readout.inner_text().split(" \u00b7 ") == before


@pytest.mark.browser
def test_a_link_holds_the_group_that_is_selected_what_is_in_view_and_of_which_recording(tmp_path):
    report = comparison_page(both_recordings())

    def shown(page: Any) -> list[str | None]:
        settle(page)
        told = [page.get_attribute(".timelines canvas", f"data-{name}") for name in ("from", "to", "lit")]
        return [*told, page.get_attribute(".switch", "aria-pressed"), page.get_attribute("tr.chosen", "id")]

    with drawn(tmp_path, report) as page:
        page.click(".switch")
        page.wait_for_selector(".switch[aria-pressed=true]")
        page.click("#group-1 .opens")
        for _ in range(3):
            page.click("[data-do=in]")
        settle(page)
        page.wait_for_function("""() => {
          const { from, to } = document.querySelector(".timelines canvas").dataset;
          return location.hash === `#group-1@${Number(from).toFixed(2)}-${Number(to).toFixed(2)}-1`;
        }""")
        page.evaluate("document.querySelector('.timelines canvas').focus()")
        link, before = page.evaluate("location.hash"), shown(page)
        page.click("[data-do=all]")
        page.click(".switch")
        page.wait_for_function("() => location.hash === '#group-1'")
    with opened(written(tmp_path, report), at=link) as visited:
        after = shown(visited.page)
        assert after[2:] == before[2:] and int(after[2] or 0) > 0
        assert [float(each or 0) for each in after[:2]] == pytest.approx(
            [float(each or 0) for each in before[:2]], abs=0.01
        )


@pytest.mark.browser
def test_on_a_phone_and_with_hostile_names_the_timelines_are_drawn_and_say_the_names_as_text(tmp_path):
    with drawn(tmp_path, comparison_page(hostile_timelines()), width=400, dark=True) as page:
        assert "<script>alert(1)</script>" in after_next(page)
        after_next(page)
        after_next(page)
        assert page.title() != "taken"
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_what_is_unattributed_is_explained_with_its_share_and_the_step_that_is_drawn_is_named_with_the_reason():
    told = timelines(both_recordings())
    rich, light = told.recordings
    shares = r"Unattributed \(\d\d % of A's idle time, \d\d % of B's idle time\): "
    assert re.match(shares, light[0]) and light[0].endswith(ALIKE + DIVIDED)
    assert rich[0] == "" and LENGTHENED in rich and LENGTHENED not in light
    assert light[0].replace("'", "&#39;") in comparison_page(both_recordings())
    assert "ernel-only trace, step " in light[1] and rich[1].startswith("Full trace, step 1 of 3, ")
    assert MEDIAN_STEP in light and MEDIAN_STEP in rich


def test_titles_have_the_time_with_the_profiler_and_without():
    rich, light = (
        [side["title"] for side in each["sides"]] for each in timelines(both_recordings()).data["recordings"]
    )
    comparison = both_recordings()
    for title, side in zip(light, (comparison.a, comparison.b), strict=True):
        length, wall = duration(side.timeline.length_us), duration(side.wall_us)
        assert title.endswith(f"{length} with profiler ({wall} without)")
    assert all("with profiler and operators (" in title for title in rich)
    # Of two traces alone nothing is known of calls without the profiler.
    (bare,) = timelines(matched_comparison()).data["recordings"]
    assert bare["sides"][0]["title"].endswith("ms with profiler")


def test_the_recording_with_operators_has_the_same_kernels_in_the_same_groups_and_causes_of_its_gaps():
    told = timelines(both_recordings())
    rich, light = map(unpacked, told.data["recordings"])
    for one, other, side in zip(light, rich, told.data["recordings"][0]["sides"], strict=True):
        assert np.array_equal(one["work"][3], other["work"][3])
        kinds = {side["labels"][at][1] for at in other["gaps"][-1]}
        assert {"op_dispatch", "launch_call"} <= kinds and "unattributed" not in kinds


def test_short_host_events_of_the_recording_with_operators_are_drawn_together_where_there_is_no_room(monkeypatch):
    whole = timelines(both_recordings())
    monkeypatch.setattr(drawing, "MOST_RICH_BYTES", 6_000)
    told = timelines(both_recordings())
    before, after = ([side["counts"] for side in each.data["recordings"][0]["sides"]] for each in (whole, told))
    assert [each[:2] for each in before] == [each[:2] for each in after]
    events, bars = (sum(each[2] for each in counts) for counts in (before, after))
    assert 0 < bars < events
    assert TOGETHER.format(events=events, bars=bars) in told.recordings[0]
    assert not any(each.startswith(f"{events:,} host") for each in whole.recordings[0])
    monkeypatch.setattr(drawing, "MOST_RICH_BYTES", 1_000)
    assert len(timelines(both_recordings()).data["recordings"]) == 1
    without = replace(both_recordings(), b=replace(both_recordings().b, rich_timeline=None))
    assert len(timelines(without).data["recordings"]) == 1


def test_what_is_drawn_together_has_the_cause_of_most_of_its_time_and_covers_what_it_stands_for():
    labels = (Label("add", "op_dispatch"), Label("mul", "op_dispatch"), Label("cudaLaunchKernel", "launch_call"))
    # Five that follow each other within 10 us, one that is long, and one after a pause.
    starts, lengths = (0.0, 2.0, 3.0, 6.0, 8.0, 10.0, 40.0, 45.0), (2.0, 1.0, 3.0, 2.0, 1.5, 30.0, 1.0, 1.0)
    host = Bars(starts, lengths, (0, 1, 2, 1, 0, 0, 2, 2), (0,) * 8, 0)
    none = Bars((), (), (), (), 0)
    timeline = StepTimeline(0, 50.0, 0, 0, (7,), labels, none, (), none, host)
    told = with_short_events_together(timeline, as_columns(host), 10.0)
    names = [(told.labels[at].name, told.labels[at].kind) for at in told.host.labels]
    alone = [("add", "op_dispatch"), ("cudaLaunchKernel", "launch_call"), ("cudaLaunchKernel", "launch_call")]
    assert names in ([("add and others", "op_dispatch"), *alone], [("mul and others", "op_dispatch"), *alone])
    assert (told.host.starts_us, told.host.durations_us) == ((0, 10, 40, 45), (9.5, 30, 1, 1))
    assert with_short_events_together(timeline, as_columns(host), 0.5).host == host


def test_a_trace_alone_speaks_of_no_other_recording():
    side = load_side(RUN / "eager-light.json.zst", reading=Reading(shapes=True))
    told = timelines_by_name((("", side),))
    assert told.recordings[0][0].endswith(UNKNOWN)
    assert re.match(r"Trace, step \d of 7\.", told.recordings[0][1])
    told = " ".join(told.recordings[0]) + (cause_table((("", side),)) or pytest.fail("no table")).note
    assert "rich" not in told and "light" not in told
