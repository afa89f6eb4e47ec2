"""Runs of small models on the CPU by the walk of `tracekit profile`: without a report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

torch = pytest.importorskip("torch")

from tests.measure.conftest import Block, make_settings  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.measure import forms, profiling  # noqa: E402
from tracekit.measure.plan import Plan  # noqa: E402
from tracekit.model.progress import Progress, Silent  # noqa: E402
from tracekit.model.run import Run  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.workloads.registry import find  # noqa: E402

REQUEST = Request("mlp", size="tiny", iterations=2)
PLAN = Plan(REQUEST, ("eager", "compiled"), None, False, "tracekit profile mlp --compiled")
#: Asks nothing of the forms but their times and recordings.
BARE = replace(PLAN, provenance=False, numerics=False)
EAGER = replace(PLAN, forms=("eager",))


class Painter(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.block = Block()

    def forward(self, x: Any) -> Any:
        return {"image": torch.sigmoid(self.block(x)).reshape(1, 3, 16, 16), "text": "a cat"}


def painter(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    """Called with batches of any size that make an image."""
    torch.manual_seed(0)
    return built(Painter(), lambda asked: torch.randn(96 * asked.batch_size, 8), request)


def built(model: Any, make_input: Callable[[Request], Any], request: Request) -> BuiltWorkload:
    model = model.eval().requires_grad_(False)

    def call_at(asked: Request) -> Callable[[], object]:
        x = make_input(asked)
        return lambda: model(x)

    settings = make_settings(
        workload="mlp",
        scope="model",
        fullgraph=request.fullgraph is not False,
        dynamic=request.dynamic,
        batch_size=request.batch_size,
    )
    targets, modules = (CompileTarget("model", model),), (("model", model),)
    call = call_at(request)
    return BuiltWorkload(find("mlp"), settings, call, targets, (), (), modules, call_at=call_at)


def without_kernels(patch: pytest.MonkeyPatch) -> None:
    """Models are compiled as far as AOTAutograd: Inductor's C++ takes seconds."""
    options = forms.compile_options
    patch.setattr(forms, "compile_options", lambda settings: {**options(settings), "backend": "aot_eager"})


def profile(
    folder: Path,
    plan: Plan = PLAN,
    build: Any = painter,
    *,
    device: str = "cpu",
    kernels: bool = True,
    progress: Progress | None = None,
) -> Run:
    """The run, compiled with kernels or without."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profiling, "load_builder", lambda _info: build)
        patch.setattr("tracekit.measure.device.pick_device", lambda: device)
        if not kernels:
            without_kernels(patch)
        return store.load(profiling.profile(replace(plan, out=folder), progress or Silent(), lambda _part: None))
