"""Records of torch's compile log and Inductor's code by hand: what a small model on the CPU does not say."""

from collections import Counter
from typing import Any

import pytest

from tracekit.measure.compile_log import METRICS, RECOMPILE, SKIPS, LogEntry, read_log
from tracekit.measure.compiled_graph import launch_sites, triton_sources
from tracekit.model.compilation import CudaGraphSkip, Diagnostics
from tracekit.model.provenance import GraphNode


def metrics(id_: str | None = "0/0", **content: Any) -> LogEntry:
    content = {"co_name": "forward", "co_filename": "model.py", "co_firstlineno": 12, **content}
    return LogEntry(METRICS, id_, content, "warm-up", 1)


def found_in(*entries: LogEntry, **counted: int) -> Diagnostics:
    return read_log(list(entries), Counter(counted))


def test_backward_graphs_and_what_runs_later_are_no_frames_of_their_own():
    found = found_in(metrics(), metrics(is_forward=False), metrics(is_runtime=True), metrics(None))
    assert [frame.id for frame in found.frames] == ["0/0"]


def test_a_version_that_tells_little_leaves_the_rest_unknown():
    (frame,) = read_log([LogEntry(METRICS, "3/1", {}, "timed", 2)], Counter()).frames
    assert (frame.id, frame.phase, frame.call) == ("3/1", "timed", 2)
    assert (frame.function, frame.where, frame.seconds, frame.guards, frame.inputs) == (None,) * 5
    assert frame.because == ()


def test_the_limit_is_told_with_the_name_that_the_first_compilation_has():
    failed = {"fail_type": "torch.FailOnRecompileLimitHit", "fail_reason": "recompile_limit reached"}
    found = found_in(metrics(), metrics("0/8", co_name=None, co_filename=None, **failed))
    (fallback,) = found.fallbacks
    assert (fallback.kind, fallback.function, fallback.where) == ("recompile_limit", "forward", "model.py:12")
    assert [frame.id for frame in found.frames] == ["0/0"]
    nothing = found_in(metrics(fail_type="torch._dynamo.exc.SkipFrame"))
    assert nothing.fallbacks == (), "a frame without anything to compile"


@pytest.mark.parametrize(
    "payload", ['["0/0: tensor \'x\' rank mismatch", "0/0: ___check_obj_id(y)"]', ["0/0: a", "0/0: b"], "0/0: one\n"]
)
def test_checks_that_failed_are_read_from_a_list_or_a_line(payload: Any):
    found = found_in(metrics(), metrics("0/1"), LogEntry(RECOMPILE, "0/1", payload, "warm-up", 2))
    (again,) = found.recompiles
    assert again.id == "0/1"
    assert {guard.version for guard in again.because} == {"0/0"}
    assert not any(guard.text.startswith("0/0") for guard in again.because)
    assert len(again.because) == (1 if payload == "0/0: one\n" else 2)


def test_a_reason_that_the_logger_and_the_metrics_tell_is_counted_once():
    skip = LogEntry("skip", None, "mutated inputs", "warm-up", 1)
    also = metrics(cudagraph_skip_reason="skipping cudagraphs due to mutated inputs")
    assert found_in(skip, skip, also, **{SKIPS: 2}).cuda_graph_skips == (CudaGraphSkip("mutated inputs", 2),)
    assert found_in(also, **{SKIPS: 1}).cuda_graph_skips == (CudaGraphSkip("mutated inputs", 1),)
    assert found_in(**{SKIPS: 3}).cuda_graph_skips == (CudaGraphSkip(None, 3),)


def test_phases_hold_nothing_twice():
    found = found_in(
        metrics(
            dynamo_cumulative_compile_time_us=10e6,
            aot_autograd_cumulative_compile_time_us=8e6,
            inductor_cumulative_compile_time_us=5e6,
            triton_compile_time_us=2e6,
            compile_time_autotune_time_us=1e6,
        ),
        # A backward graph is compiled when it first runs, outside of Dynamo.
        metrics(is_forward=False, backward_cumulative_compile_time_us=3e6, triton_compile_time_us=1e6),
    )
    seconds = {each.phase: each.seconds for each in found.phases}
    assert seconds == {"aot_autograd": 3.0, "triton": 3.0, "inductor": 4.0, "dynamo": 2.0, "autotune": 1.0}
    assert [each.seconds for each in found.phases] == sorted(seconds.values(), reverse=True)


@pytest.mark.parametrize("path", ["transformers/generic.py", "/usr/lib/dist-packages/transformers/generic.py"])
def test_a_failed_check_keeps_paths_within_a_package_whole(path: str):
    reasons = f'["0/0: len(args) == 2  # output = func()  # {path}:939 in wrapper"]'
    (frame,) = found_in(LogEntry(RECOMPILE, "0/1", reasons, "warm-up", 1), metrics("0/1")).frames
    assert frame.because[0].text.endswith("func()  # transformers/generic.py:939 in wrapper")


#: Definitions of kernels as Inductor of torch 2.9 to 2.15 writes them for a GPU, its own and a user's, and for a CPU.
GENERATED = """
async_compile = AsyncCompile()
# kernel path: /tmp/torchinductor/ab/cab.py
# Topologically Sorted Source Nodes: [x, y], Original ATen: [aten.add]
triton_poi_fused_add_0 = async_compile.triton('triton_poi_fused_add_0', '''
import triton
import triton.language as tl

@triton_heuristics.pointwise(
    size_hints={'x': 256},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*bf16', 'xnumel': 'i32', 'XBLOCK': 'constexpr'}, 'constants': {}},
    inductor_meta={'kernel_name': 'triton_poi_fused_add_0'}
)
@triton.jit
def triton_poi_fused_add_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    tl.store(out_ptr0 + (xindex), tl.load(in_ptr0 + (xindex)) + 1)
''', device_str='cuda')

scale_0 = async_compile.triton('scale', '''
@triton.jit
def scale(x_ptr, n: tl.constexpr):
    tl.store(x_ptr, n)
''', device_str='cuda')

cpp_fused_mul_0 = async_compile.cpp_pybinding(['const float*'], r'''
extern "C" void kernel(const float* in_ptr0) {}
''')
async_compile.wait(globals())
del async_compile
"""


def test_the_source_of_each_triton_kernel_is_found_under_the_name_that_it_runs_by() -> None:
    own, users = triton_sources(GENERATED)
    assert (own[0], users[0]) == ("triton_poi_fused_add_0", "scale")
    assert own[1].startswith("import triton") and own[1].endswith("tl.load(in_ptr0 + (xindex)) + 1)")
    assert users[1] == "@triton.jit\ndef scale(x_ptr, n: tl.constexpr):\n    tl.store(x_ptr, n)"
    assert triton_sources("") == []


def test_launches_are_in_the_order_of_call_also_through_partitions() -> None:
    code = """
triton_poi_fused_add_0 = async_compile.triton('''
def triton_poi_fused_add_0(in_ptr0):
    other.run(in_ptr0)
''')
def partition_1(args):
    # [Provenance debug handles] extern_kernels.mm:4
    extern_kernels.mm(a, b, out=c)
def partition_0(args):
    # [Provenance debug handles] triton_poi_fused_add_0:1
    triton_poi_fused_add_0.run(a, b, 10, stream=stream0)
    triton_per_fused_mix_1.run(a, b, 10, stream=stream0)
async_compile.wait(globals())
class Runner:
    def call(self, args):
        (buf0,) = self.partitions[0](partition0_args)
        # [Provenance debug handles] torch.ops.aten.sort.default:2
        buf1 = torch.ops.aten.sort.default(buf0)
        (buf2,) = self.partitions[1](partition1_args)
def benchmark_compiled_module():
    triton_poi_fused_add_0.run(a, b, 10)
"""
    kernels = {"triton_poi_fused_add_0:1": ["add"], "extern_kernels.mm:4": ["mm"], "torch.ops.aten.sort.default:2": []}
    nodes = tuple(GraphNode(name, name, None, None, None, 0) for name in ("mm", "add"))
    sites = launch_sites(code, kernels, nodes)
    assert [(site.kernel, site.nodes) for site in sites] == [
        ("triton_poi_fused_add_0", (1,)),
        ("triton_per_fused_mix_1", None),
        ("torch.ops.aten.sort.default", ()),
        ("extern_kernels.mm", (0,)),
    ]
