"""Compiled autograd: backward is traced too, with what hooks of it do, and compiled as one.

Without it torch.compile compiles the backward of each of its graphs, and autograd runs the rest. `_enable` is private
to torch (2.9 to 2.15); its documented switch, `torch._dynamo.config.compiled_autograd`, holds only inside of compiled
code, and `backward()` is called outside.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch

from tracekit.errors import TracekitError
from tracekit.model.run import Settings


def compiled_backward(settings: Settings, options: dict[str, Any]) -> Callable[[], AbstractContextManager[Any]]:
    """What backward is compiled inside of, with these arguments of torch.compile; nothing where it was not asked for.
    Raises TracekitError where this torch keeps it otherwise."""
    if not settings.compiled_autograd:
        return nullcontext
    try:
        from torch._dynamo.compiled_autograd import _enable
    except ImportError:
        raise TracekitError(
            f"torch {torch.__version__} has no known API for compiled autograd; leave --compiled-autograd out"
        ) from None
    # Hooks of FSDP break the graph wherever they stand.
    compiler = partial(torch.compile, **{**options, "fullgraph": False})
    return partial(_enable, compiler, dynamic=bool(settings.dynamic))
