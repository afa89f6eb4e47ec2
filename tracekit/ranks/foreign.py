"""Which recordings are none of their job's, though they state its size? Another run's, or of another part of this one:
in most of their collectives they were over before the others of the group came, or came when these had left."""

import polars as pl

#: Of fewer collectives, and of groups of two, nobody can say who is wrong.
LEAST_COLLECTIVES, LEAST_MEMBERS = 4, 3
#: Of a rank's collectives.
MOSTLY_APART = 0.5


def find_foreign(parts: pl.DataFrame, tolerance_ns: float) -> tuple[int, ...]:
    """Ranks, of `parts` in collectives that all leave at once: `collective`, `rank`, `start` and `end` on one clock.
    None where they are no minority."""
    within = parts.filter(pl.len().over("collective") >= LEAST_MEMBERS).with_columns(
        first=pl.col("start").median().over("collective"), last=pl.col("end").median().over("collective")
    )
    apart = (pl.col("end") < pl.col("first") - tolerance_ns) | (pl.col("start") > pl.col("last") + tolerance_ns)
    shares = within.group_by("rank").agg(apart.mean().alias("apart"), pl.len())
    found = shares.filter((pl.col("len") >= LEAST_COLLECTIVES) & (pl.col("apart") >= MOSTLY_APART))["rank"].sort()
    return tuple(found.to_list()) if 2 * len(found) < parts["rank"].n_unique() else ()
