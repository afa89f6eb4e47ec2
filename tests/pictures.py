"""Pictures made by hand."""

import polars as pl

from tracekit.analysis.drawing.slices import SCHEMA, in_order
from tracekit.model.timeline import Counter, Panel, Picture, Track

ARROWS = {"name": pl.String, "a_key": pl.Int64, "b_key": pl.Int64}


def make_track(
    name: str, *times: tuple[int, int], kind: str = "kernel", keys: bool = False, nests: bool = False
) -> Track:
    """A slice `k0`, `k1`, ... for each (start, end) in nanoseconds."""
    rows = [
        (kind, f"k{number}", start, end, f'{{"number":{number}}}', number if keys else None)
        for number, (start, end) in enumerate(times)
    ]
    return Track(name, in_order(pl.DataFrame(rows, schema=SCHEMA, orient="row")), nests)


def make_picture(*panels: tuple[Track, ...], arrows: tuple[tuple[str, int, int], ...] = ()) -> Picture:
    """Panels `eager` and `compiled`, each with a curve."""
    curve = Counter("GPU 0 busy", "%", pl.DataFrame({"at_ns": [0, 50], "value": [10.0, 20.5]}))
    named = (Panel(name, tracks, (curve,)) for name, tracks in zip(("eager", "compiled"), panels, strict=False))
    return Picture(tuple(named), pl.DataFrame(list(arrows), schema=ARROWS, orient="row"))
