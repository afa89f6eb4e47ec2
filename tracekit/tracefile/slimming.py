"""What a viewer can hold of a picture: what is least missed goes first, and is named."""

import json

import polars as pl
from msgspec.structs import replace

from tracekit.model.picture import Panel, Picture

#: Perfetto's page reads JSON up to some 150 MB well; sizes are estimated, so there is some room.
MOST_BYTES = 140_000_000
#: What an event and a point of a curve take beside names and details, and what an arrow takes: no less than is written.
EVENT_BYTES, ARROW_BYTES, POINT_BYTES = 110, 160, 95
#: In JSON control characters are written as six, quotes and backslashes as two.
CONTROLS, QUOTED = r"[\x00-\x1f]", r'["\\]'
#: Host events shorter than this are hardly to be seen beside a step.
SHORT_NS = 5000
#: A cut in time leaves no more than this share, or it would not be worth another look.
MOST_KEPT = 0.95
#: What is left out first, of the host's tracks.
HOST_EVENTS = (
    ("Python functions", pl.col("kind") == "python"),
    (f"host events shorter than {SHORT_NS / 1000:g} us", pl.col("end_ns") - pl.col("start_ns") < SHORT_NS),
    ("what the host did", pl.lit(value=True)),
)


def slimmed(picture: Picture, most_bytes: int = MOST_BYTES) -> Picture:
    """The picture as it is if it is small enough; else without Python functions, then without short host events, then
    without host events at all, then cut in time. Notes say what was left out."""
    for left_out, found in HOST_EVENTS:
        if estimate_bytes(picture) <= most_bytes:
            return picture
        smaller = _with_tracks(picture, found)
        gone = _count(picture) - _count(smaller)
        picture = _noted(smaller, f"{left_out} ({gone:,} events)") if gone else picture
    if estimate_bytes(picture) <= most_bytes:
        return picture
    # Only the beginning is left, to the same moment on both sides.
    ends = [track.slices["end_ns"].max() for panel in picture.panels for track in panel.tracks]
    moment = max((end for end in ends if isinstance(end, int)), default=0)
    cut = picture
    # Events are not spread evenly over time, so one cut in proportion may not do.
    while (size := estimate_bytes(cut)) > most_bytes and moment:
        moment = int(moment * min(most_bytes / size, MOST_KEPT))
        cut = _with_tracks(picture, pl.col("start_ns") > moment, of_host=False)
        panels: list[Panel] = []
        for panel in cut.panels:
            curves = [replace(each, points=each.points.filter(pl.col("at_ns") <= moment)) for each in panel.counters]
            panels.append(replace(panel, counters=tuple(curves)))
        cut = replace(cut, panels=tuple(panels))
    return _noted(cut, f"events that start after {moment / 1e6:.3f} ms")


def estimate_bytes(picture: Picture) -> int:
    """What the picture takes as JSON, or a little more."""
    texts_of_arrows = pl.col("name").str.len_bytes() + len(picture.arrows_are.encode())
    size = picture.arrows.height * ARROW_BYTES + 2 * int(picture.arrows.select(texts_of_arrows.sum()).item())
    name = pl.col("name").str
    for panel in picture.panels:
        for track in panel.tracks:
            texts = track.slices.select(
                pl.col("name", "details").str.len_bytes().sum(),
                (5 * name.count_matches(CONTROLS)).sum().alias("controls"),
                name.count_matches(QUOTED).sum().alias("quoted"),
            )
            size += int(sum(texts.row(0))) + track.slices.height * EVENT_BYTES
        for counter in panel.counters:
            size += counter.points.height * (POINT_BYTES + len(json.dumps(f"{panel.name}: {counter.name}")))
    return size


def _count(picture: Picture) -> int:
    return sum(track.slices.height for panel in picture.panels for track in panel.tracks)


def _with_tracks(picture: Picture, left_out: pl.Expr, *, of_host: bool = True) -> Picture:
    """Without these slices of the host's tracks, or of all; without tracks that are empty now, and without arrows that
    lost an end."""
    panels: list[Panel] = []
    kept_keys = [pl.DataFrame(schema={"panel": pl.Int64, "key": pl.Int64})]
    for number, panel in enumerate(picture.panels):
        slices = [t.slices.filter(~left_out) if t.of_host or not of_host else t.slices for t in panel.tracks]
        tracks = [replace(track, slices=kept) for track, kept in zip(panel.tracks, slices, strict=True) if kept.height]
        panels.append(replace(panel, tracks=tuple(tracks)))
        number_of = pl.lit(number, dtype=pl.Int64)
        kept_keys += [t.slices.select(number_of.alias("panel"), "key").drop_nulls() for t in tracks]
    arrows, kept = picture.arrows, pl.concat(kept_keys)
    for side in ("a", "b"):
        arrows = arrows.join(
            kept, left_on=[f"{side}_panel", f"{side}_key"], right_on=["panel", "key"], how="semi", maintain_order="left"
        )
    return replace(picture, panels=tuple(panels), arrows=arrows)


def _noted(picture: Picture, left_out: str) -> Picture:
    return replace(picture, notes=(*picture.notes, f"omitted to keep Perfetto fast: {left_out}"))
