"""Operators by their plain names: `aten.add_.Tensor`, `aten::add` and `torch.ops.aten.add.default` are all `add`."""

from __future__ import annotations

from functools import cache

#: Operators that compute nothing: another view of the same memory, or memory yet to be written.
NO_WORK = frozenset(
    """alias as_strided _reshape_alias chunk detach diagonal empty empty_like empty_strided expand lift_fresh
    movedim narrow new_empty new_empty_strided permute reinterpret_tensor reshape resolve_conj
    resolve_neg select set_ slice split split_with_sizes squeeze swapaxes t to transpose unbind unfold unflatten
    unsafe_chunk unsafe_split unsafe_split_with_sizes unsqueeze view view_as_real view_as_complex _unsafe_view
    view_as""".split()
)


@cache
def plain_name(operator: str) -> str:
    """The operator's name without its namespace and overload, and without the underscore of an in-place one."""
    parts = operator.removeprefix("torch.ops.").replace("::", ".").split(".")
    name = parts[1] if len(parts) > 1 else parts[0]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def does_no_work(operator: str) -> bool:
    """Whether the operator launches nothing by itself, whatever its arguments."""
    return plain_name(operator) in NO_WORK
