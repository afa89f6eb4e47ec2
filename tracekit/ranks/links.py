"""How fast is the link between the GPUs of a group, and does a group use it? Slow links, and slow groups."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any

from msgspec import Struct

from tracekit.ranks.digests import RankRecording
from tracekit.ranks.job_figures import CollectiveUse, RankFinding
from tracekit.ranks.statements import findings as statements

#: Smaller messages are latency; so many are no chance.
LARGE_BYTES, LEAST_COUNT = 16 << 20, 3
#: Of the link's peak. Two H200s without NVLink multicast reach 46 % beside compute, which is what a slow link could.
FAR_BELOW, REACHED = 0.25, 0.46
#: Of what other groups of the same kind and size reach, the median.
SLOWER_GROUP = 0.6


class Link(Struct, frozen=True):
    """What one GPU can send to the others of its host, GB/s in one direction. `per_peer`: to each of them, where GPUs
    are linked pair by pair and no switch stands between."""

    device: str  #: Words that are all in the device's name.
    gbps: float
    per_peer: float | None = None


#: Makers print both directions together; these are half of that. The first that fits; cards whose bridges or switches
#: the name does not tell (V100, A40, RTX) are left out, as are those of several hosts.
LINKS = (
    # NVIDIA DGX B200 data sheet (2024): NVLink 5, 14.4 TB/s of eight.
    Link("b200", 900),
    # NVIDIA H200 data sheet (2024): NVLink 4, 900 GB/s; NVL is bridged in twos or fours, else PCIe 5, 128 GB/s.
    Link("h200 nvl", 64),
    Link("h200", 450),
    # NVIDIA H100 data sheet (2023, 2024): NVLink 4, 900 GB/s; PCIe and NVL are bridged in twos, else PCIe 5.
    Link("h100 pcie", 64),
    Link("h100 nvl", 64),
    Link("h100", 450),
    # NVIDIA A100 data sheet (2021): SXM, NVLink 3, 600 GB/s; PCIe 4, 64 GB/s.
    Link("a100 pcie", 32),
    Link("a100", 300),
    # NVIDIA L4 and L40S data sheets (2023), A10 product brief (2021): PCIe 4, 64 GB/s. T4 data sheet (2018): PCIe 3.
    Link("l40s", 32),
    Link("l4", 32),
    Link("a10g", 32),
    Link("t4", 16),
    # AMD Instinct MI300X data sheet (2023): Infinity Fabric, 128 GB/s to each of seven others.
    Link("mi300x", 448, per_peer=64),
)


def peak_gbps(digests: Mapping[int, RankRecording], group: tuple[int, ...], hosts: int) -> float | None:
    """The peak of a group's link, in one direction; None where it spans hosts, a rank was not recorded, or the device
    is not known. `hosts` is how many clocks there are, should the recordings not name theirs."""
    if not all(rank in digests for rank in group) or len(group) < 2:
        return None
    places = {digests[rank].host_name for rank in group}
    devices = {digests[rank].device_name for rank in group}
    if len(devices) > 1 or len(places) > 1 or (None in places and hosts > 1):
        return None
    words = set((devices.pop() or "").lower().replace("-", " ").replace("_", " ").split())
    link = next((each for each in LINKS if words.issuperset(each.device.split())), None)
    if link is None or "mig" in words:
        return None
    return link.gbps if link.per_peer is None else min(link.gbps, link.per_peer * (len(group) - 1))


def find_slow_links(
    collectives: tuple[CollectiveUse, ...], digests: Mapping[int, RankRecording]
) -> Iterator[RankFinding]:
    """What is far below its link's peak, the one with most transfer; and groups slower than others of their kind."""
    large = [
        (each, each.busbw_gbps)
        for each in collectives
        # What ranks send each other unequally has no one bandwidth.
        if (each.bytes or 0) >= LARGE_BYTES
        and each.count >= LEAST_COUNT
        and each.busbw_gbps is not None
        and not each.rank_bytes
    ]
    slow = [(each, gbps, peak) for each, gbps in large if (peak := each.peak_gbps) and gbps < FAR_BELOW * peak]
    for each, gbps, peak in sorted(slow, key=lambda one: -(one[0].transfer_us or 0.0))[:1]:
        yield statements.SlowLink(
            None,
            _saving(each, gbps / peak / REACHED),
            **_facts(each),
            peak_gbps=peak,
            share=gbps / peak,
            groups=len({one.ranks for one, _, _ in slow}),
        )
    kinds: dict[tuple[object, ...], list[tuple[CollectiveUse, float]]] = defaultdict(list)
    for each, gbps in large:
        hosts = len({digests[rank].host_name if rank in digests else None for rank in each.ranks})
        kinds[each.name, each.dtype, each.bytes, len(each.ranks), hosts].append((each, gbps))
    found: list[statements.SlowGroup] = []
    for some in kinds.values():
        for each, gbps in some:
            others = [gbps_there for other, gbps_there in some if other.ranks != each.ranks]
            usual = median(others) if others else 0.0
            if usual and gbps / usual < SLOWER_GROUP:
                facts = _facts(each) | {"usual_gbps": usual, "groups": len(some)}
                found.append(statements.SlowGroup(None, _saving(each, gbps / usual), **facts))
    # Of a slow group the kind that takes most of its time.
    by_group = {each.ranks: each for each in sorted(found, key=lambda one: one.transfer_us)}
    yield from by_group.values()


def _facts(each: CollectiveUse) -> dict[str, Any]:
    """What both say of it."""
    return {
        "collective": each.name,
        "message_bytes": each.bytes,
        "ranks": each.ranks,
        "busbw_gbps": each.busbw_gbps,
        "transfer_us": each.transfer_us or 0.0,
    }


def _saving(each: CollectiveUse, share: float) -> float:
    """Of a rank's time, at the usual bandwidth: what overlaps compute saves none."""
    return each.exposed_transfer_us / len(each.ranks) * (1 - share)
