"""A training step of a GPT-like decoder: forward, backward and AdamW, on one GPU or over ranks.

Over ranks `--parallel` is what torch's own users write: DistributedDataParallel; `fully_shard` of each block and of the
whole (FSDP2); tensor parallel attention and MLP of each block (Megatron's split: columns, then rows, with one
all-reduce after each). The learning rate is 0: weights stay, so every step does the same work on the same numbers.
"""

from typing import Any

import torch
import torch.distributed as dist
from msgspec import Struct
from msgspec.structs import replace
from torch import nn
from torch.distributed.tensor import DTensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tracekit.errors import TracekitError
from tracekit.model.progress import Progress
from tracekit.model.run import Component, Parallel
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request
from tracekit.workloads.building import count_parameters, fill_in, parallel_here, random_weights
from tracekit.workloads.registry import GPT

HEAD_WIDTH = 64


class Architecture(Struct, frozen=True):
    layers: int
    width: int
    vocabulary: int
    tokens: int


#: `full` is 1.3 billion parameters: 24 layers of 2048, as GPT-3 XL (Brown et al. 2020, table 2.1) with heads of 64.
ARCHITECTURES = {
    "full": Architecture(24, 2048, 50_304, 2048),
    "small": Architecture(12, 768, 50_304, 1024),
    "tiny": Architecture(2, 128, 512, 32),
}


class Block(nn.Module):
    """Attention and MLP before which is normed (Radford et al. 2019)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        normed = self.norm1(x)
        # Of a tensor parallel rank these are its own heads alone.
        q, k, v = (
            each(normed).unflatten(-1, (-1, HEAD_WIDTH)).transpose(1, 2) for each in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Enclosed(nn.Module):
    """A module that is sharded as a part of this one, as a block is that torch.compile was given before: FSDP's hooks
    stand around compiled code, not in it."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *args: torch.Tensor) -> Any:
        return self.inner(*args)


class Gpt(nn.Module):
    """From token ids to the loss of predicting the next ones."""

    def __init__(self, architecture: Architecture, *, checkpointed: bool) -> None:
        super().__init__()
        width = architecture.width
        self.token = nn.Embedding(architecture.vocabulary, width)
        self.position = nn.Embedding(architecture.tokens, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(architecture.layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, architecture.vocabulary, bias=False)
        self.checkpointed = checkpointed

    def forward(self, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.token(tokens) + self.position(places)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        logits = self.head(self.norm(x))
        return functional.cross_entropy(logits.flatten(0, 1).float(), following.flatten())


def build(request: Request, size: str, device: str, progress: Progress) -> BuiltWorkload:
    """The step, with random weights and token ids. Raises TracekitError for sizes and splits that do not go."""
    architecture = ARCHITECTURES[size]
    tokens = request.seq_length or architecture.tokens
    parallel = parallel_here(GPT, request, device)
    filled = fill_in(GPT, request, size, device)
    order = request.compile_order
    if order is None and (parallel, filled.scope) == ("fsdp2", "regional"):
        order = "after-sharding"
    if (parallel, filled.scope, request.fullgraph) == ("fsdp2", "model", None):
        # Dynamo goes around the hooks of each sharded block.
        filled = replace(filled, fullgraph=False)
    settings = replace(
        filled,
        seq_length=tokens,
        parallel=parallel,
        checkpoint=bool(request.checkpoint),
        compile_order=order,
        compiled_autograd=request.compiled_autograd,
    )
    dtype: torch.dtype = getattr(torch, settings.dtype)
    with random_weights(dtype, device, request.seed):
        model = Gpt(replace(architecture, tokens=tokens), checkpointed=bool(request.checkpoint))
    progress.detail(parallel or "one process")
    parameters = count_parameters(model)
    if order == "before-sharding":
        model.blocks = nn.ModuleList(map(Enclosed, model.blocks))
    called = _parallel(model, parallel, device)
    drawn = torch.Generator().manual_seed(
        # Tensor parallel ranks work on one batch together, others each on their own.
        request.seed + (dist.get_rank() if parallel in ("ddp", "fsdp2") else 0)
    )
    shape = (request.batch_size, tokens + 1)
    ids = torch.randint(architecture.vocabulary, shape, generator=drawn).to("cpu" if device == "meta" else device)
    # One fused kernel takes tensors that are split over ranks, or those that are not.
    groups = [[each for each in model.parameters() if isinstance(each, DTensor) == split] for split in (True, False)]
    weights = [{"params": some} for some in groups if some]
    optimizer = torch.optim.AdamW(weights, lr=0.0, fused=device == "cuda" or None)

    def step() -> torch.Tensor:
        loss: torch.Tensor = called(ids[:, :-1], ids[:, 1:])
        if torch.is_grad_enabled():
            loss.backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def targets_of(scope: str) -> tuple[CompileTarget, ...]:
        if scope == "regional":
            return tuple(
                CompileTarget(f"model.{name}", block)
                for name, block in model.named_modules()
                if isinstance(block, Block)
            )
        return (CompileTarget("model", model),)

    return BuiltWorkload(
        info=GPT,
        settings=settings,
        call=step,
        targets=targets_of(settings.scope),
        components=(Component("model", parameters, compiled=True),),
        notes=("A training step; the learning rate is 0: every step does the same work on the same weights.",),
        modules=(("model", model),),
        targets_of=targets_of,
    )


def _parallel(model: Gpt, parallel: Parallel | None, device: str) -> Any:
    """What is called in the model's place. Raises TracekitError where the heads cannot be split."""
    if parallel is None:
        return model
    if parallel == "ddp":
        from torch.nn.parallel import DistributedDataParallel

        return DistributedDataParallel(model, device_ids=[torch.cuda.current_device()] if device == "cuda" else None)
    from torch.distributed.device_mesh import init_device_mesh

    ranks = dist.get_world_size()
    mesh = init_device_mesh(device, (ranks,))
    if parallel == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        return model
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    width = model.norm.normalized_shape[0]
    if (width // HEAD_WIDTH) % ranks:
        raise TracekitError(f"--parallel tp splits {width // HEAD_WIDTH} heads: pass an --nproc that divides them")
    columns, rows = ColwiseParallel(), RowwiseParallel()
    plan = {"query": columns, "key": columns, "value": columns, "out": rows, "up": columns, "down": rows}
    for block in model.blocks:
        parallelize_module(block, mesh, plan)
    return model
