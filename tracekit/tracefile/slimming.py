"""What a viewer can hold of a picture: what is least missed goes first, and is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import polars as pl

from tracekit.model.picture import Counter, Panel, Picture, Track

#: Perfetto's page reads JSON up to some 150 MB well; sizes are estimated, so there is some room.
MOST_BYTES = 140_000_000
#: What an event and a point of a curve take beside names and details, and what an arrow takes: no less than is written.
EVENT_BYTES, ARROW_BYTES, POINT_BYTES = 110, 220, 95
#: In JSON control characters are written as six, quotes and backslashes as two.
CONTROLS, QUOTED = r"[\x00-\x1f]", r'["\\]'
#: Host events shorter than this are hardly to be seen beside a step.
SHORT_NS = 5000
#: A cut in time leaves no more than this share, or it would not be worth another look.
MOST_KEPT = 0.95


def slimmed(picture: Picture, most_bytes: int = MOST_BYTES) -> Picture:
    """The picture as it is if it is small enough; else without Python functions, then without short host events, then
    without host events at all, then cut in time. Notes say what was left out."""
    for drop in (_without_python, _without_short, _without_host):
        if estimate_bytes(picture) <= most_bytes:
            return picture
        picture = drop(picture)
    return picture if estimate_bytes(picture) <= most_bytes else _cut(picture, most_bytes)


def estimate_bytes(picture: Picture) -> int:
    """What the picture takes as JSON, or a little more."""
    tracks = sum(_bytes_of(track.slices) for panel in picture.panels for track in panel.tracks)
    points = sum(
        counter.points.height * (POINT_BYTES + len(json.dumps(f"{panel.name}: {counter.name}")))
        for panel in picture.panels
        for counter in panel.counters
    )
    return tracks + points + picture.arrows.height * ARROW_BYTES


def _bytes_of(slices: pl.DataFrame) -> int:
    name = pl.col("name").str
    texts = slices.select(
        pl.col("name", "details").str.len_bytes().sum(),
        (5 * name.count_matches(CONTROLS)).sum().alias("controls"),
        name.count_matches(QUOTED).sum().alias("quoted"),
    ).row(0)
    return int(sum(texts)) + slices.height * EVENT_BYTES


def _without_python(picture: Picture) -> Picture:
    return _without(picture, "Python functions", pl.col("kind") == "python")


def _without_short(picture: Picture) -> Picture:
    short = pl.col("end_ns") - pl.col("start_ns") < SHORT_NS
    return _without(picture, f"host events shorter than {SHORT_NS / 1000:g} us", short)


def _without_host(picture: Picture) -> Picture:
    return _without(picture, "what the host did", pl.lit(value=True))


def _without(picture: Picture, what: str, found: pl.Expr) -> Picture:
    """Without these slices of the host's tracks."""

    def drop(track: Track) -> Track:
        return replace(track, slices=track.slices.filter(~found)) if track.nests else track

    left = _with_tracks(picture, drop)
    gone = _count(picture) - _count(left)
    return _noted(left, f"{what} ({gone:,} events)") if gone else picture


def _cut(picture: Picture, most_bytes: int) -> Picture:
    """Only the beginning, to the same moment on both sides."""
    moment = max((_end_of(track) for panel in picture.panels for track in panel.tracks), default=0)
    cut = picture
    # Events are not spread evenly over time, so one cut in proportion may not do.
    while (size := estimate_bytes(cut)) > most_bytes and moment:
        moment = int(moment * min(most_bytes / size, MOST_KEPT))
        cut = _until(picture, moment)
    return _noted(cut, f"everything that begins later than {moment / 1e6:.3f} ms")


def _until(picture: Picture, moment: int) -> Picture:
    def shorter(counter: Counter) -> Counter:
        return replace(counter, points=_before(counter.points, "at_ns", moment))

    kept = _with_tracks(picture, lambda track: replace(track, slices=_before(track.slices, "start_ns", moment)))
    panels = (replace(panel, counters=tuple(map(shorter, panel.counters))) for panel in kept.panels)
    return replace(kept, panels=tuple(panels))


def _before(table: pl.DataFrame, column: str, moment: int) -> pl.DataFrame:
    return table.filter(pl.col(column) <= moment)


def _end_of(track: Track) -> int:
    end = track.slices["end_ns"].max()
    return end if isinstance(end, int) else 0


def _count(picture: Picture) -> int:
    return sum(track.slices.height for panel in picture.panels for track in panel.tracks)


def _with_tracks(picture: Picture, change: Callable[[Track], Track]) -> Picture:
    """With other tracks, without those that are empty now, and without arrows that lost an end."""
    panels: list[Panel] = []
    for panel in picture.panels:
        tracks = (change(track) for track in panel.tracks)
        panels.append(replace(panel, tracks=tuple(track for track in tracks if track.slices.height)))
    arrows = picture.arrows
    for key, panel in zip(("a_key", "b_key"), panels, strict=False):
        keys = [track.slices["key"].drop_nulls() for track in panel.tracks]
        arrows = arrows.filter(pl.col(key).is_in(pl.concat(keys).implode())) if keys else arrows.clear()
    return replace(picture, panels=tuple(panels), arrows=arrows)


def _noted(picture: Picture, left_out: str) -> Picture:
    return replace(picture, notes=(*picture.notes, f"left out to keep the page fast: {left_out}"))
