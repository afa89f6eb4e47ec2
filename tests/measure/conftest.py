from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests import sides  # noqa: E402
from torch._inductor.async_compile import AsyncCompile  # noqa: E402

from tracekit.measure import forms  # noqa: E402
from tracekit.model.run import Settings  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget  # noqa: E402
from tracekit.workloads.registry import FLUX  # noqa: E402


class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return torch.nn.functional.gelu(self.inner(x)) + x

    def decode(self, x: Any) -> Any:
        return self.inner(x).tanh() * 2


def make_settings(**changes: Any) -> Settings:
    """Of a block that is called on a CPU."""
    small = {"workload": "block", "size": "tiny", "device": "cpu", "dtype": "float32", "scope": "block"}
    return sides.make_settings(**{**small, "height": None, "width": None, "steps": None, "iterations": 3, **changes})


def make_workload(call: Any, targets: tuple[CompileTarget, ...] = (), **settings: Any) -> BuiltWorkload:
    return BuiltWorkload(FLUX, make_settings(**settings), call, targets, (), ())


@pytest.fixture
def block() -> Block:
    torch.manual_seed(0)
    return Block().eval()


@pytest.fixture
def workload(block: Block) -> BuiltWorkload:
    x = torch.randn(4, 8)

    def call() -> object:
        with torch.no_grad():
            return block(x)

    return make_workload(call, (CompileTarget("block", block),))


@pytest.fixture
def dynamo_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch.compile without Inductor: what Dynamo says and refuses is the same, and no C++ is compiled for it."""
    monkeypatch.setattr(
        forms,
        "compile_options",
        lambda settings: {"fullgraph": settings.fullgraph, "dynamic": settings.dynamic, "backend": "eager"},
    )


@pytest.fixture
def without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inductor as it is, but for its kernels, which do nothing: to compile their C++ takes most of the time."""
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", lambda *_arguments: lambda *_buffers: None)
