"""Real weights through `from_pretrained`, with its many errors in one line each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from tracekit.errors import TracekitError
from tracekit.workloads.hub_errors import explain

WITHOUT = "leave --pretrained out: random weights run the same kernels"
REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


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
        # huggingface_hub reports everything that is not there as some OSError, often one wrapped in another.
        raise TracekitError(explain(source, error, WITHOUT)) from None
    except ValueError as error:
        # Said of a configuration that is some other model's.
        reason = str(error).strip().splitlines()[0].rstrip(".: ")
        raise TracekitError(f"{source} holds no model for {kind.__name__}: {reason}") from None
