"""Compiled code as a recording shows it: regions that Dynamo made, and the graphs that are called in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegionTime:
    """All runs of one compiled frame in the window. `id` is its compilation's (`1/2`); None where the event names none.

    `host_us` is from entry to return; `outside_us` the part of it that was in no compiled graph, no region inside it
    and none of what entering a region costs: Python and operators that run between the compiled parts.
    """

    id: str | None
    count: int
    host_us: float
    outside_us: float


@dataclass(frozen=True, slots=True)
class CompiledRegions:
    """What ran in compiled code, in the window as recorded; times are sums over it.

    `graphs` counts calls of compiled graphs, `lookups` those in which guards were checked. `guards_us` is host time
    of finding the compiled code that fits (`TorchDynamo Cache Lookup`), `entry_us` that of the steps before its
    first operator. `gpu_us` is the GPU time, over all streams, of what was launched from compiled graphs (from
    regions, where the recording names no graphs), of `all_gpu_us`; None without GPU activity, or where no launch is
    known. `unlinked_us` is GPU time, within `all_gpu_us`, whose launch was not recorded. `activities` and
    `all_activities` are how many those are.
    """

    regions: tuple[RegionTime, ...]
    graphs: int
    lookups: int
    guards_us: float
    entry_us: float
    gpu_us: float | None
    all_gpu_us: float | None
    unlinked_us: float | None
    activities: int | None
    all_activities: int | None

    @property
    def count(self) -> int:
        """How often a region was entered."""
        return sum(region.count for region in self.regions)

    @property
    def gpu_share(self) -> float | None:
        """The share of GPU time that compiled code launched, 0 to 1."""
        return self.gpu_us / self.all_gpu_us if self.gpu_us is not None and self.all_gpu_us else None

    def outside_of(self, ids: tuple[str, ...]) -> float | None:
        """Host time in the window that these compilations' regions spent outside of compiled code, in microseconds;
        None where none of them ran."""
        found = [region.outside_us for region in self.regions if region.id in ids]
        return sum(found) if found else None
