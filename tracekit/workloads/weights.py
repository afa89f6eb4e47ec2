"""Random weights, made where and as they will be used; and real ones through `from_pretrained`. Imports no library of
models."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from tracekit.errors import TracekitError

WITHOUT = "leave --pretrained out: random weights run the same kernels"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


@contextmanager
def random_weights(dtype: torch.dtype, device: str, seed: int) -> Iterator[None]:
    """Models built inside have random weights of `dtype` on `device`, the same for the same seed.

    Twelve billion parameters are drawn on the GPU in seconds; on the CPU they would take minutes.
    """
    before = torch.get_default_dtype()
    torch.manual_seed(seed)
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(before)


def load_pretrained(kind: Any, source: str, dtype: torch.dtype | None, **more: Any) -> Any:
    """`kind.from_pretrained(source)`, a repository's name or a local folder. `dtype` is None for what has none;
    `more` goes to `from_pretrained`.

    Raises TracekitError when it cannot be had.
    """
    if not Path(source).is_dir() and not REPOSITORY.fullmatch(source):
        raise TracekitError(f"--pretrained {source} is neither a folder here nor a repository's name (owner/model)")
    try:
        return kind.from_pretrained(source, **({"torch_dtype": dtype} if dtype else {}), **more)
    except OSError as error:
        from tracekit.workloads.hub_files import explain

        # huggingface_hub reports everything that is not there as some OSError, often one wrapped in another.
        raise TracekitError(explain(source, error, WITHOUT)) from None
    except ValueError as error:
        # Said of a configuration that is some other model's.
        reason = str(error).strip().splitlines()[0].rstrip(".: ")
        raise TracekitError(f"{source} holds no model for {kind.__name__}: {reason}") from None
