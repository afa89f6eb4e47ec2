"""Pictures made by hand."""

import polars as pl

from tracekit.model.picture import Counter, Panel, Picture, Track
from tracekit.slices import ARROWS, SCHEMA, in_order


def make_track(
    name: str, *times: tuple[int, int], kind: str = "kernel", keys: bool = False, nests: bool = False
) -> Track:
    """A slice `k0`, `k1`, ... for each (start, end) in nanoseconds."""
    rows = [
        (kind, f"k{number}", start, end, f'{{"number":{number}}}', number if keys else None)
        for number, (start, end) in enumerate(times)
    ]
    return Track(name, in_order(pl.DataFrame(rows, schema=SCHEMA, orient="row")), nests, of_host=nests)


def make_picture(*panels: tuple[Track, ...], arrows: tuple[tuple[str, int, int], ...] = ()) -> Picture:
    """Panels `eager` and `compiled`, each with a curve."""
    curve = Counter("GPU 0 busy", "%", pl.DataFrame({"at_ns": [0, 50], "value": [10.0, 20.5]}))
    named = (Panel(name, tracks, (curve,)) for name, tracks in zip(("eager", "compiled"), panels, strict=False))
    rows = [(kind, 0, a_key, 1, b_key) for kind, a_key, b_key in arrows]
    return Picture(tuple(named), pl.DataFrame(rows, schema=ARROWS, orient="row"), "the same work")
