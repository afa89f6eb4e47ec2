"""A graph that Inductor compiled, as nouns: its nodes, and the launches in its generated code."""

import re
from collections.abc import Iterator
from typing import Any

import torch

from tracekit.measure.source_location import ModuleNames, place, user_frames
from tracekit.model.provenance import GraphNode, LaunchSite, TensorShape

HANDLE = re.compile(r"\[Provenance debug handles\] (\S+):(\d+)")
TRITON_LAUNCH = re.compile(r"^\s+(\w+)\.run\(")
FUNCTION = re.compile(r"^\s*def (\w+)\(")
#: How `call` runs a part that may become a CUDA graph.
PARTITION_CALL = re.compile(r"\.partitions\[(\d+)\]\(")
#: Generated code defines its kernels, then the functions of its parts, then waits for the kernels, then launches them.
KERNELS_DEFINED = re.compile(r"^def partition_\d+\(|^async_compile\.wait\(globals\(\)\)", re.MULTILINE)
#: How it defines a Triton kernel: the function's name and source. Inductor lets no three quotes stand in it.
TRITON_KERNEL = re.compile(r"\basync_compile\.triton\(\s*'(\w+)',\s*'{3}\n?(.*?)'{3}", re.DOTALL)

#: Name and handle of a launch.
Launch = tuple[str, str | None]


def describe_node(node: Any, names: ModuleNames) -> dict[str, Any]:
    """A node of the graph that was lowered, as it is kept in Inductor's cache."""
    original = node.meta.get("original_aten")
    value = node.meta.get("val")
    tensors = value if isinstance(value, (tuple, list)) else (value,)
    return {
        "name": node.name,
        "target": str(node.target),
        "op": None if original is None else str(original),
        "module": module_of(node.meta, names),
        "line": line_of(node.meta),
        "outputs": [
            ([size if isinstance(size, int) else None for size in each.shape], dtype_name(each))
            for each in tensors
            if isinstance(each, torch.Tensor)
        ],
    }


def dtype_name(tensor: torch.Tensor) -> str:
    """`bfloat16`."""
    return str(tensor.dtype).removeprefix("torch.")


def module_of(meta: dict[str, Any], names: ModuleNames) -> str | None:
    """The innermost module call around a node, of a backward node that of its forward node. Dynamo keys them by the
    module's identity, with a number added when it is called again. What it calls by another key goes unnamed."""
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack") or {}
    for key in reversed(stack):
        identity = str(key).partition("@")[0]
        name = names.of(int(identity)) if identity.isdigit() else None
        if name is not None:
            return name
    return None


def line_of(meta: dict[str, Any]) -> str | None:
    """The innermost line around a node that is not torch's."""
    frames = user_frames(meta.get("stack_trace") or "")
    return place(*frames[-1][:2]) if frames else None


def graph_nodes(nodes: list[dict[str, Any]], before: dict[str, list[str]], lines: list[str]) -> tuple[GraphNode, ...]:
    """Nodes as they were kept. `before` leads from each to those that Dynamo traced, which `lines` has in order."""
    position = {name: i for i, name in enumerate(lines)}
    found = []
    for i, node in enumerate(nodes):
        origins = [position[name] for name in before.get(node["name"], ()) if name in position]
        # A node of unknown origin is one of its own, behind all that are known.
        order = min(origins, default=len(lines) + i)
        outputs = tuple(TensorShape(tuple(sizes), dtype) for sizes, dtype in node["outputs"])
        found.append(GraphNode(node["name"], node["target"], node["op"], node["module"], node["line"], order, outputs))
    return tuple(found)


def launch_sites(source: str, kernels: dict[str, list[str]], nodes: tuple[GraphNode, ...]) -> tuple[LaunchSite, ...]:
    """The launches in a graph's generated code, in the order in which its function `call` makes them."""
    position = {node.name: i for i, node in enumerate(nodes)}
    begin = KERNELS_DEFINED.search(source)
    # The launches by the function they stand in. A few kinds of Triton kernel have no handle. The call of a partition,
    # which is a function of its own, stands among them under the partition's name.
    functions: dict[str, list[Launch]] = {}
    function, handled = "", None
    for line in source[begin.start() :].splitlines() if begin else ():
        if begun := FUNCTION.match(line):
            function, handled = begun[1], None
        elif part := PARTITION_CALL.search(line):
            functions.setdefault(function, []).append((f"partition_{part[1]}", None))
        elif marked := HANDLE.search(line):
            handled = marked[1]
            functions.setdefault(function, []).append((handled, marked[2]))
        elif launch := TRITON_LAUNCH.match(line):
            if launch[1] != handled:
                functions.setdefault(function, []).append((launch[1], None))
            handled = None
    found = []
    for kernel, handle in _in_order(functions, "call"):
        names = kernels.get(f"{kernel}:{handle}") if handle else None
        known = None if names is None else tuple(position[name] for name in names if name in position)
        found.append(LaunchSite(kernel, known))
    return tuple(found)


def triton_sources(source: str) -> list[tuple[str, str]]:
    """Name and source of each Triton kernel that a graph's generated code defines. Recordings have them by that name,
    which another graph may have given to another kernel."""
    return [(name, kernel.strip()) for name, kernel in TRITON_KERNEL.findall(source)]


def _in_order(functions: dict[str, list[Launch]], function: str) -> Iterator[Launch]:
    for kernel, handle in functions.get(function, ()):
        if handle is None and kernel in functions:
            yield from _in_order(functions, kernel)
        else:
            yield kernel, handle
