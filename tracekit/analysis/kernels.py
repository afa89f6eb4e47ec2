"""Which kernels ran, of which family, how often and how long? Which copies? And how often did the host launch?"""

import re
from functools import cache

import polars as pl

from tracekit.analysis.window import Scope
from tracekit.model.analysis import FAMILIES, CopySummary, FamilyTime, KernelSummary, KernelTime, LaunchSummary
from tracekit.names import is_triton, template_family

#: Kernels shorter than this cost about as much to launch as to run.
SHORT_NS = 10_000
#: cudaGraphLaunch, cuGraphLaunch, hipGraphLaunch, with CUDA's _ptsz and _v variants.
GRAPH_LAUNCH = "GraphLaunch"
#: What a kernel does stands at the beginning of its name; the types of its arguments can go on for kilobytes.
LONGEST_NAME = 2000

#: Types in a name that stand before what the kernel is called.
UNNAMED = re.compile(r"^void |\(anonymous namespace\)::|<unnamed>::")
#: Where a word begins in `twoShotAllReduceKernel`.
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: In what a kernel is called, its namespaces included: NCCL and its kin, NVSHMEM, PyTorch's symmetric memory, DeepEP
#: (whose `layout` stays on its GPU), the all-reduces of vLLM, SGLang and TensorRT-LLM. Whole words: `overall_reduce` is
#: none, and what warps and blocks reduce among themselves neither.
COMMUNICATION = re.compile(
    r"(?<![a-z])(?:nccl|rccl|msccl|uccl|oneccl|nvshmem|rocshmem|symm(?:etric)?_mem|multimem|mnnvl"
    r"|deep_ep(?!(?:::|\d+)layout)|cross_device_reduce|(?:one|two)_?shot_(?:all_?)?reduce"
    r"|(?<!warp_)(?<!block_)(?<!thread_)(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)v?(?![a-z]))"
)

#: In lower case. The first that matches counts: attention kernels are built from gemm pieces, and matmuls from copies.
FAMILY_PATTERNS = {
    family: re.compile(pattern)
    for family, pattern in {
        "attention": "flash|fmha|attention|sdpa|mha_|_attn",
        "copy": (
            "nchwtonhwc|nhwctonchw|catarray|direct_copy|copy_kernel|_copy_|native::copy<|tensortransform|transpose"
            "|fill_index|im2col|index_?select|gather_kernel|vectorized_gather|indexkernel|index_elementwise|scatter"
        ),
        "convolution": "conv(?!ert)|implicit_?gemm|fprop|dgrad|wgrad|winograd|miopen",
        "gemm": "gemm|nvjet|cutlass|splitk|matmul|cublas|xmma|cijk_|gemv|dot_kernel",
        "normalization": "norm(?!al_)|rowwisemoments|computefusedparams|softmax|bn_fw|bn_bw",
        "reduction": (
            "reduce|reduction|argmax|argmin|cumsum|cumprod|scan|topk|radix_?sort|bitonic|meanops|sumops|::sort"
        ),
        "pointwise": (
            "elementwise|pointwise|functor|upsample|gelu|silu|relu|dropout|embedding|distribution|arange|_foreach"
            "|multi_tensor_apply|philox"
        ),
    }.items()
}


@cache
def family_of(name: str, kind: str = "kernel") -> str:
    """The family of an activity: by a kernel's name, `other` when no pattern knows it; of copies and sets the kind."""
    if kind != "kernel":
        return kind
    if is_triton(name):
        # The name lists the operators that are fused, whichever they are; a template does one of them.
        return template_family(name) or "triton"
    # Told by what it is called and not by its arguments.
    called = re.split(r"[<(]", UNNAMED.sub("", name[:LONGEST_NAME]), maxsplit=1)[0]
    if COMMUNICATION.search(HUMP.sub("_", called).lower()):
        return "communication"
    begin = name[:LONGEST_NAME].lower()
    return next((family for family, pattern in FAMILY_PATTERNS.items() if pattern.search(begin)), "other")


def with_families(activities: pl.DataFrame) -> pl.DataFrame:
    """The activities with the `family` of each."""
    names = activities.select("name", "kind").unique()
    families = names.with_columns(family=pl.Series([family_of(*each) for each in names.iter_rows()], dtype=pl.String))
    return activities.join(families, on=["name", "kind"], how="left", maintain_order="left")


def summarize_kernels(scope: Scope) -> KernelSummary:
    """Counts and GPU time of the kernels that belong to the window; memory copies and sets are not among them."""
    kernels = scope.activities.filter(pl.col("kind") == "kernel")
    names = _by_name(kernels)
    by_family: dict[str, FamilyTime] = {}
    for each in names:
        so_far = by_family.get(each.family, FamilyTime(each.family, 0, 0.0))
        count, us = (each.count, each.total_us) if is_triton(each.name) else (0, 0.0)
        by_family[each.family] = FamilyTime(
            each.family,
            count=so_far.count + each.count,
            total_us=so_far.total_us + each.total_us,
            triton_count=so_far.triton_count + count,
            triton_us=so_far.triton_us + us,
        )
    return KernelSummary(
        count=kernels.height,
        unique=len(names),
        total_us=_total_us(kernels),
        triton_count=sum(each.triton_count for each in by_family.values()),
        short_count=int((kernels["end_ns"] - kernels["start_ns"] < SHORT_NS).sum()),
        by_family=tuple(by_family[family] for family in FAMILIES if family in by_family),
        by_name=names,
    )


def summarize_copies(scope: Scope) -> CopySummary:
    """Counts and GPU time of memory copies and sets."""
    copies = scope.activities.filter(pl.col("kind") != "kernel")
    memcpy_count = int((copies["kind"] == "memcpy").sum())
    return CopySummary(memcpy_count, copies.height - memcpy_count, _total_us(copies), _by_name(copies))


def _by_name(activities: pl.DataFrame) -> tuple[KernelTime, ...]:
    """Largest total first; equal totals by kind and name, so that two runs list them alike."""
    groups = activities.group_by("name", "kind").agg(count=pl.len(), ns=(pl.col("end_ns") - pl.col("start_ns")).sum())
    rows = groups.sort(["ns", "kind", "name"], descending=[True, False, False]).iter_rows()
    return tuple(
        KernelTime(name, family_of(name, kind), count, ns / 1e3, ns / 1e3 / count) for name, kind, count, ns in rows
    )


def _total_us(activities: pl.DataFrame) -> float:
    return int((activities["end_ns"] - activities["start_ns"]).sum()) / 1e3


def count_launches(scope: Scope) -> LaunchSummary:
    """Launches are calls that at least one kernel of the window names by its correlation id, whatever their name."""
    kernels = scope.activities.filter(scope.activities["kind"] == "kernel")["call"]
    graph_calls = scope.calls.filter(scope.calls["name"].str.contains(GRAPH_LAUNCH, literal=True))["call"]
    in_graphs = kernels.filter(kernels.is_in(graph_calls.implode()))
    return LaunchSummary(
        count=kernels.drop_nulls().n_unique(),
        graph_launches=in_graphs.n_unique(),
        kernels_in_graphs=in_graphs.len(),
        unlinked_kernels=kernels.null_count(),
    )


def in_launch_order(scope: Scope) -> pl.DataFrame:
    """The window's activities, step by step, in the order of the calls that launched them. What has no recorded launch
    stands where it started; the activities of one call (a CUDA graph's) are in the order of their start."""
    return scope.activities.sort("step", pl.coalesce("called_ns", "start_ns"), "start_ns", maintain_order=True)
