from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tracekit.capture.compiled_graph import launch_sites
from tracekit.model.provenance import GraphNode


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
