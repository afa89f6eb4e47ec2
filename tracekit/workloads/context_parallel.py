"""A diffusion transformer over ranks by diffusers' context parallelism: each has a part of the tokens, and all of them
meet in attention. Ulysses deals out heads for it, all-to-all; ring passes keys and values on."""

from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from tracekit.errors import TracekitError
from tracekit.model.run import Parallel, Settings

#: Ring adds up what each part of the keys gives and needs the softmax's sums for it, which PyTorch's own choice of an
#: attention kernel does not return.
RING_ATTENTION = "_native_cudnn"


def check_split(settings: Settings, heads: int, tokens: tuple[int, ...]) -> None:
    """Raises TracekitError where heads or tokens (of images, of prompts) cannot be dealt out evenly, and where a device
    or a data type has no such attention."""
    parallel, ranks = settings.parallel, dist.get_world_size()
    dealt = {"ulysses": (heads, *tokens), "ring": tokens}[str(parallel)]
    if any(each % ranks for each in dealt):
        of_heads = f"{heads} heads and " if parallel == "ulysses" else ""
        counts = " + ".join(map(str, tokens))
        raise TracekitError(
            f"--parallel {parallel} splits {of_heads}{counts} tokens: pass an --nproc that divides them"
        )
    if parallel == "ring" and settings.device == "cpu":
        raise TracekitError("--parallel ring runs on GPUs alone, by cuDNN's attention: pass --parallel ulysses")
    if parallel == "ring" and settings.dtype == "float32":
        raise TracekitError("--parallel ring has no attention in float32: pass --dtype bfloat16 or float16")


def spread(transformer: Any, parallel: Parallel) -> None:
    """From now on the transformer's calls are those of one rank of the job. A job of one rank is left as it is."""
    ranks = dist.get_world_size()
    if ranks == 1:
        return
    try:
        from diffusers import ContextParallelConfig
    except ImportError:
        raise TracekitError(
            "this diffusers has no context parallelism: pip install -c constraints.txt '.[profile]' in tracekit's"
            " checkout"
        ) from None
    if parallel == "ring":
        transformer.set_attention_backend(RING_ATTENTION)
    # diffusers numbers devices modulo how many accelerators there are: none where the device is a CPU.
    count = max(1, torch.accelerator.device_count())
    with patch.object(torch.accelerator, "device_count", return_value=count):
        transformer.enable_parallelism(config=ContextParallelConfig(**{f"{parallel}_degree": ranks}))
