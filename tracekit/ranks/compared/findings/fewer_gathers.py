"""Are weights that FSDP gathers block by block gathered in fewer and larger pieces once compiled?

A block that was compiled before it was sharded is called past `nn.Module.__call__`, so that the hooks of `fully_shard`
do not run: its weights come with those of the whole model, before anything is computed.
"""

from tracekit.model.comparison import Comparison, Finding
from tracekit.ranks.compared.nouns import job_of
from tracekit.ranks.compared.statements import FewerGathers, ShardThenCompile

#: What gathers weights, and what shows that they are sharded.
GATHER, SCATTER = "all_gather", "reduce_scatter"
#: Of so many gathers at least, B has at most this share.
LEAST_GATHERS, FEWER = 3, 0.7


def find_fewer_gathers(comparison: Comparison) -> Finding | None:
    """Found when A gathers and scatters, and B gathers at most 70 % as often. The saving is what more of all-gathers is
    exposed in B."""
    job = job_of(comparison)
    gathers = job.collective(GATHER) if job else None
    if job is None or gathers is None or job.collective(SCATTER) is None:
        return None
    if gathers.a_count < LEAST_GATHERS or gathers.b_count > FEWER * gathers.a_count:
        return None
    more_us = gathers.b_exposed_transfer_us - gathers.a_exposed_transfer_us
    statement = FewerGathers(
        side=comparison.b.label,
        a_gathers=gathers.a_count,
        b_gathers=gathers.b_count,
        a_each_bytes=gathers.a_each_bytes,
        b_each_bytes=gathers.b_each_bytes,
        a_exposed_us=gathers.a_exposed_transfer_us,
        b_exposed_us=gathers.b_exposed_transfer_us,
    )
    return Finding(statement, more_us if more_us > 0 else None, ShardThenCompile())
