"""What more than one room uses of torch's private API. All that is used of it is listed in docs/compatibility.md."""

from collections.abc import Sequence
from typing import Any

import torch

from tracekit.errors import TracekitError

try:
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map, tree_map_only
except ImportError as error:
    raise TracekitError(f"torch {torch.__version__} lacks {error.name}; install torch 2.9 to 2.15") from None

__all__ = ("COMPILED_CALL", "TorchDispatchMode", "copy_into", "is_compiled", "tree_leaves", "tree_map", "tree_map_only")

#: Where `torch.nn.Module.compile` keeps the compiled callable, which `__call__` uses when it is there.
COMPILED_CALL = "_compiled_call_impl"


def is_compiled(model: object) -> bool:
    """Whether the module or function is the result of torch.compile, or was compiled in place."""
    marks = ("_orig_mod", "_torchdynamo_orig_callable")
    return any(hasattr(model, mark) for mark in marks) or getattr(model, COMPILED_CALL, None) is not None


def copy_into(targets: Sequence[torch.Tensor], sources: Sequence[torch.Tensor]) -> None:
    """Copies each source into its target, in one launch where this torch can."""
    together: Any = getattr(torch, "_foreach_copy_", None)
    if together:
        together(targets, sources)
        return
    for target, source in zip(targets, sources, strict=True):
        target.copy_(source)
