"""The colours of timelines and charts: visible on their paper, and apart for people who see few colours.

Colour blindness by Machado, Oliveira and Fernandes (2009), severity 1; differences by CIEDE2000 (Sharma, Wu and Dalal,
2005), where 1 is just visible side by side and 10 is another colour at a glance.
"""

import re
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path

import numpy as np
import pytest
from tests.sides import make_side

from tracekit.comparison.judging.alternatives import MOST_RUNS
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.report import charts
from tracekit.report.charts import HUES, SEGMENTS, STRONGEST, family_charts
from tracekit.report.timelines import texture
from tracekit.report.words.common import FAMILY_WORDS, with_letters

STYLE = (Path(charts.__file__).parent / "templates/page.css").read_text(encoding="utf-8")

SIGHT = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE = (0.9505, 1.0, 1.089)

Colour = tuple[float, float, float]


def scheme(dark: bool) -> dict[str, str]:
    """The custom properties that hold in the light or the dark scheme."""
    blocks = re.findall(r"(@media screen[^{]*\{\s*)?:root \{(.*?)\}", STYLE, re.DOTALL)
    found: dict[str, str] = {}
    for media, body in blocks:
        if not media or dark:
            found |= dict(re.findall(r"--([\w-]+):\s*([^;]+);", body))
    return {name: found[value[6:-1]] if value.startswith("var(--") else value for name, value in found.items()}


def channels(colour: str) -> np.ndarray:
    return np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])


def linear(colour: str) -> np.ndarray:
    values = channels(colour) / 255
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """By WCAG 2."""
    light, dark = sorted((float(linear(each) @ np.array(XYZ[1])) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def lab(colour: str, sight: str) -> Colour:
    seen = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    x, y, z = (
        np.cbrt(each) if each > 0.008856 else 7.787 * each + 16 / 116 for each in np.array(XYZ) @ seen / np.array(WHITE)
    )
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: Colour, other: Colour) -> float:
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    stretch = 1 + 0.5 * (1 - sqrt(mean**7 / (mean**7 + 25**7)))
    c1, c2 = hypot(a1 * stretch, b1), hypot(a2 * stretch, b2)
    h1, h2 = degrees(atan2(b1, a1 * stretch)) % 360, degrees(atan2(b2, a2 * stretch)) % 360
    turn = (h2 - h1 + 180) % 360 - 180
    hue = (h1 + h2 + (360 if abs(h1 - h2) > 180 else 0)) / 2
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = (
        1
        - 0.17 * cos(radians(hue - 30))
        + 0.24 * cos(radians(2 * hue))
        + 0.32 * cos(radians(3 * hue + 6))
        - 0.2 * cos(radians(4 * hue - 63))
    )
    dl = (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / sqrt(20 + (lightness - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * sqrt(c1 * c2) * sin(radians(turn) / 2) / (1 + 0.015 * chroma * t)
    bend = sin(radians(60 * exp(-(((hue - 275) / 25) ** 2))))
    turned = -2 * sqrt(chroma**7 / (chroma**7 + 25**7)) * bend
    return sqrt(dl**2 + dc**2 + dh**2 + turned * dc * dh)


def test_the_difference_is_that_of_the_published_examples():
    # Pairs 1, 7 and 17 of Sharma, Wu and Dalal's table.
    assert difference((50, 2.6772, -79.7751), (50, 0, -82.7485)) == pytest.approx(2.0425, abs=1e-4)
    assert difference((50, 0, 0), (50, -1, 2)) == pytest.approx(2.3669, abs=1e-4)
    assert difference((50, 2.5, 0), (73, 25, -18)) == pytest.approx(27.1492, abs=1e-4)


@pytest.mark.parametrize("dark", [False, True])
def test_every_hue_is_seen_on_its_paper_and_told_from_every_other(dark: bool):
    told = scheme(dark)
    hues = {name: value for name, value in told.items() if name.startswith("hue-")}
    assert len(hues) == 9
    for name, value in hues.items():
        assert contrast(value, told["paper"]) >= 3, name
    for sight in SIGHT:
        for one, other in combinations(hues, 2):
            assert difference(lab(hues[one], sight), lab(hues[other], sight)) > 15, (sight, one, other)


@pytest.mark.parametrize("kinds", [tuple(FAMILY_WORDS), IDLE_CAUSES])
def test_kinds_of_one_lane_differ_in_hue_or_in_texture(kinds: tuple[str, ...]):
    told = scheme(False)
    looks = [(told[f"kind-{kind}"], texture(kind)) for kind in kinds]
    assert len(set(looks)) == len(looks)
    assert not {texture(kind) for kind in FAMILY_WORDS} & {texture(kind) for kind in IDLE_CAUSES}


@pytest.mark.parametrize("dark", [False, True])
def test_gain_and_loss_differ_in_lightness_and_are_read_as_text(dark: bool):
    told = scheme(dark)
    assert contrast(told["gain"], told["loss"]) >= 1.5
    assert all(contrast(told[each], told["paper"]) >= 4.5 for each in ("gain", "loss"))


@pytest.mark.parametrize("dark", [False, True])
def test_text_on_bars_is_read(dark: bool):
    told = scheme(dark)
    for bar, text in SEGMENTS.values():
        assert contrast(told[bar], told[text]) >= 4.5, bar
    for name in ("gain", "loss", "total"):
        # A module's colour covers the paper in part.
        strongest = STRONGEST * channels(told[name]) + (1 - STRONGEST) * channels(told["paper"])
        assert contrast("#" + "".join(f"{round(each):02x}" for each in strongest), told["ink"]) >= 4.5, name


@pytest.mark.parametrize("dark", [False, True])
def test_what_a_rank_does_is_told_apart_in_its_bar_and_in_its_timeline(dark: bool):
    told = scheme(dark)
    kinds = [told[f"kind-{kind}"] for kind in ("compute", "transfer", "waiting")]
    for colour in kinds:
        assert contrast(colour, told["paper"]) >= 3 and contrast(colour, told["on-bar"]) >= 4.5, colour
    for sight in SIGHT:
        for one, other in combinations(kinds, 2):
            assert difference(lab(one, sight), lab(other, sight)) > 15, (sight, one, other)


@pytest.mark.parametrize("dark", [False, True])
def test_bars_of_the_sides_are_seen_on_their_paper(dark: bool):
    told = scheme(dark)
    for letter in HUES:
        assert contrast(told[f"side-{letter}"], told["paper"]) >= 3, letter


def test_as_many_sides_as_may_stand_beside_each_other_have_looks_of_their_own():
    told = scheme(False)
    for chart in family_charts(with_letters(*(make_side(f"side {at}") for at in range(2 * MOST_RUNS)))):
        looks = [(told[bar.colour], bar.hatched) for bar in chart.legend]
        assert len(looks) == len(set(looks)) == 2 * MOST_RUNS
