"""comparison/matching/decompositions.json from the installed torch: `python -m docs.making.decompositions`.

torch.compile takes some operators apart before Inductor sees them (those with a Python kernel for the keys below), and
a fused kernel is named after the parts. Here calls of each are traced on small inputs. Where calls differ in their
parts an operator has several lists. What computes nothing is left out.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch._dispatch.python import enable_python_dispatcher
from torch._inductor import lowering  # noqa: F401  Some decompositions look into it.
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.nn import functional

from tracekit.comparison.matching.operators import DECOMPOSITIONS, does_no_work

aten, Key = torch.ops.aten, torch._C.DispatchKey
Call = Callable[..., Any]


def calls() -> Iterator[tuple[str, Call, list[tuple[int, ...]]]]:
    """Operators that one fused kernel does, with calls of each and the shapes of their inputs."""
    shapes = {1: (1, 8, 16), 2: (1, 8, 16, 16), 3: (1, 8, 8, 8, 8)}
    sizes: tuple[dict[str, Any], ...] = ({"scale_factor": 2}, {"scale_factor": 0.5}, {"size": 20})
    for operator, mode, dimensions in (
        *((f"upsample_nearest{n}d", "nearest", n) for n in shapes),
        *((f"_upsample_nearest_exact{n}d", "nearest-exact", n) for n in shapes),
        *(("upsample_linear1d", "linear", 1), ("upsample_bilinear2d", "bilinear", 2)),
        *(("upsample_trilinear3d", "trilinear", 3), ("upsample_bicubic2d", "bicubic", 2)),
    ):
        corners: tuple[bool | None, ...] = (None,) if "nearest" in mode else (False, True)
        for size in sizes:
            for align in corners:
                resize = partial(functional.interpolate, mode=mode, align_corners=align, **size)
                yield operator, resize, [shapes[dimensions]]
    for name in ("native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm"):
        for training in (False, True):
            named = {
                "training": training,
                "momentum": 0.1,
                "exponential_average_factor": 0.1,
                "eps": 1e-5,
                "epsilon": 1e-5,
            }
            taken = {each.name for each in getattr(aten, name).default._schema.arguments}
            normalize = partial(getattr(aten, name), **{key: named[key] for key in named if key in taken})
            yield name, normalize, [shapes[2], *[(8,)] * 4]
    for shrink in (functional.hardshrink, functional.softshrink):
        yield shrink.__name__, shrink, [shapes[2]]


def parts_of(call: Call, inputs: list[Tensor]) -> frozenset[str]:
    """The operators that Inductor would name the kernel of the first result after."""

    def first(*inputs: Tensor) -> Tensor:
        result = call(*inputs)
        return result if isinstance(result, Tensor) else result[0]

    with enable_python_dispatcher(), torch.no_grad(), preserve_node_meta():
        graph = make_fx(first, decomposition_table=select_decomp_table(), tracing_mode="fake")(*inputs).graph
    graph.eliminate_dead_code()
    made = (node.meta.get("original_aten") for node in graph.nodes if node.op == "call_function")
    names = {each._overloadpacket.__name__ for each in made if each is not None}
    return frozenset(name for name in names if not does_no_work(name))


def is_taken_apart(operator: str) -> bool:
    """Whether that happens before Inductor sees it."""
    packet = getattr(aten, operator)
    kernels = (getattr(packet, overload).py_kernels for overload in packet.overloads())
    return any(each.keys() & {Key.CompositeImplicitAutograd, Key.Autograd} for each in kernels)


def decompositions() -> dict[str, list[list[str]]]:
    """Of each operator the parts of its calls; calls that have those of another and more are left out."""
    found = defaultdict[str, set[frozenset[str]]](set)
    for operator, call, shapes in calls():
        assert is_taken_apart(operator), f"torch {torch.__version__} leaves {operator} to Inductor"
        for dtype in (torch.float32, torch.bfloat16):
            found[operator].add(parts_of(call, [torch.zeros(shape, dtype=dtype) for shape in shapes]))
    return {
        operator: sorted(sorted(parts) for parts in lists if not any(other < parts for other in lists))
        for operator, lists in sorted(found.items())
    }


if __name__ == "__main__":
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(lists)}" for name, lists in decompositions().items())
    DECOMPOSITIONS.write_text(f'{{"torch": {json.dumps(torch.__version__)}, "operators": {{\n{rows}\n}}}}\n')
