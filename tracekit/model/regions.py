"""Compiled code as a recording shows it: regions that Dynamo made, and the graphs that are called in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tracekit.model.bounded import doc


@dataclass(frozen=True, slots=True)
class RegionTime:
    """All runs of one compiled frame in the window."""

    id: Annotated[str | None, doc("Its compilation's (`1/2`); None where the event names none.")]
    count: int
    host_us: Annotated[float, doc("From entry to return.")]
    outside_us: Annotated[float, doc("Python and operators between its graphs and inner regions.")]


@dataclass(frozen=True, slots=True)
class CompiledRegions:
    """What ran in compiled code, in the window as recorded; times are sums over it."""

    regions: tuple[RegionTime, ...]
    graphs: Annotated[int, doc("Calls of compiled graphs.")]
    lookups: Annotated[int, doc("Those in which guards were checked.")]
    guards_us: Annotated[float, doc("Host time of finding the compiled code that fits (`TorchDynamo Cache Lookup`).")]
    entry_us: Annotated[float, doc("Host time of the steps before its first operator.")]
    gpu_us: Annotated[float | None, doc("GPU time launched from compiled graphs; None if unknown.")]
    all_gpu_us: Annotated[float | None, doc("All GPU time, over all streams.")]
    unlinked_us: Annotated[float | None, doc("GPU time, within `all_gpu_us`, whose launch was not recorded.")]
    activities: Annotated[int | None, doc("How many `gpu_us` is of.")]
    all_activities: Annotated[int | None, doc("How many `all_gpu_us` is of.")]

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
