"""A model whose call is one forward over fixed inputs: the rows of the table, and what all share. Torch alone."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from msgspec.structs import replace
from torch import nn

from tracekit.model.progress import Progress
from tracekit.model.run import Component, Settings
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request, WorkloadInfo
from tracekit.torch_internals import tree_map
from tracekit.workloads.building import count_parameters, fill_in, random_weights
from tracekit.workloads.one_forward_table import ROWS, OneForward

Arguments = dict[str, Any]

RANDOM = "Random weights: the output is meaningless, kernels and shapes are the model's."


def build_one_forward(
    make: Callable[[OneForward, str], Any],
    draw: Callable[[OneForward, Any, Mapping[str, int], int, int], Arguments],
    request: Request,
    size: str,
    device: str,
    progress: Progress,
    load: Callable[[OneForward, str, torch.dtype], Any] | None = None,
) -> BuiltWorkload:
    """The row's model and its inputs on `device`, ready to be called. `make` gives the model of a size, where torch
    makes models now, `load` one with real weights. `draw` makes the arguments of a forward of this model, in these
    sizes, so many at once, by a seed: on the CPU, the same for every device; floats among them are cast to the run's
    dtype. Raises TracekitError for pretrained weights that cannot be had or are another model's."""
    row = ROWS[request.workload]
    settings = fill_in(row.info, request, size, device, gpu_iterations=row.gpu_iterations)
    dtype: torch.dtype = getattr(torch, settings.dtype)
    if request.pretrained and load:
        progress.detail(f"loading {request.pretrained}")
        model = load(row, request.pretrained, dtype)
    else:
        with random_weights(dtype, device, request.seed):
            model = make(row, size)
    sizes = drawn_sizes(row, size, model)

    def read(found: Any) -> object:
        if isinstance(found, torch.Tensor):
            return found
        outputs = tuple(getattr(found, name) for name in row.outputs)
        return outputs[0] if row.bare else outputs

    def arguments(asked: Request) -> Arguments:
        return draw(row, model, sizes, asked.batch_size, settings.seed)

    built = built_forward(row.info, settings, model, request, arguments, read)
    note = (
        f"One call {row.does.format(**sizes)}, batch size {settings.batch_size}. Inputs are on the device before the"
        f" call; {' and '.join(row.outputs)} stay on it."
    )
    return replace(
        built, call_at=built.call_at if row.resizes else None, notes=(note,) if settings.pretrained else (note, RANDOM)
    )


def built_forward(
    info: WorkloadInfo,
    settings: Settings,
    model: Any,
    request: Request,
    draw: Callable[[Request], Arguments],
    read: Callable[[Any], object],
) -> BuiltWorkload:
    """The workload of a model, moved to its device; `read` takes from what it returns what a call gives."""
    # What a model makes of numbers of its own is on the CPU still.
    model = model.to(settings.device).requires_grad_(False).eval()
    dtype: torch.dtype = getattr(torch, settings.dtype)

    def call_at(other: Request) -> Callable[[], object]:
        arguments = placed_on(draw(other), settings.device, dtype)

        def call() -> object:
            with torch.no_grad():
                return read(model(**arguments))

        return call

    return BuiltWorkload(
        info=info,
        settings=settings,
        call=call_at(request),
        call_at=call_at,
        targets=(CompileTarget("model", model),),
        components=(Component("model", count_parameters(model), compiled=True),),
        notes=(),
        modules=(("model", model),),
    )


def drawn_sizes(row: OneForward, size: str, model: Any) -> dict[str, int]:
    """In which sizes a model's inputs are drawn. One that is made for images of one size is shown such, also where real
    weights bring a size of their own."""
    sizes = dict(row.sizes[size].drawn)
    if "image_size" in row.tiny_figures:
        sizes |= {"height": model.config.image_size, "width": model.config.image_size}
    return sizes


def placed_on(inputs: dict[str, Any], device: str, dtype: torch.dtype) -> dict[str, Any]:
    """The arguments on the device, floats among them in `dtype`."""
    placed: dict[str, Any] = tree_map(
        lambda each: each.to(device, dtype) if each.is_floating_point() else each.to(device), inputs
    )
    return placed


#: How much wider a block is inside.
WIDENING = 4


class Block(nn.Module):
    """LayerNorm, Linear, GELU, Linear, and what came in added to what comes out."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, WIDENING * width)
        self.gelu = nn.GELU()
        self.narrow = nn.Linear(WIDENING * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        narrowed: torch.Tensor = self.narrow(self.gelu(self.widen(self.norm(x))))
        return x + narrowed


def _draw_hidden_states(_row: OneForward, _model: Any, sizes: Mapping[str, int], count: int, seed: int) -> Arguments:
    shape = (count, sizes["tokens"], sizes["width"])
    return {"input": torch.randn(shape, generator=torch.Generator().manual_seed(seed))}


def _make_blocks(row: OneForward, size: str) -> nn.Sequential:
    figures = row.figures_at(size)
    return nn.Sequential(*(Block(figures["width"]) for _ in range(figures["blocks"])))


#: The row `mlp`: what a transformer does between its attentions, small enough to know by heart.
build = partial(build_one_forward, _make_blocks, _draw_hidden_states)
