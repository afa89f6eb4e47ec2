import copy
from typing import Any

import pytest
import torch
from msgspec.structs import replace
from tests.measure.conftest import make_settings

from tracekit.measure import reference as reference_file
from tracekit.measure.outputs import Output
from tracekit.measure.reference import HIGHER, call_reference
from tracekit.model.note import Noted
from tracekit.model.workload import BuiltWorkload
from tracekit.statements.noted import ModulesNotNamed, ReferenceDoesNotFit, ReferenceFailed, ReferenceRanOutOfMemory
from tracekit.workloads.registry import FLUX

F = torch.nn.functional


class Stubborn(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A model that names precisions as published ones do."""

    def __init__(self) -> None:
        super().__init__()
        self.one = torch.nn.Linear(64, 64)
        self.two = torch.nn.Linear(64, 64)
        # Tied: raised once, and tied afterwards.
        self.two.weight = self.one.weight
        self.register_buffer("shift", torch.linspace(0, 1, 64))

    def forward(self, x: Any, *, low: Any) -> Any:
        x = self.one(x).to(low)
        x = F.gelu(x) + self.shift.to(dtype=low)
        return self.two(x * torch.ones(64, dtype=low))


def built(low: Any, call: Any, model: Any) -> BuiltWorkload:
    settings = make_settings(dtype=str(low).removeprefix("torch."))
    return BuiltWorkload(FLUX, settings, call, (), (), (), (("model", model),))


def stubborn(low: Any) -> tuple[Stubborn, Any, BuiltWorkload]:
    torch.manual_seed(0)
    model = Stubborn().to(low).eval().requires_grad_(False)
    x = torch.randn(8, 64).to(low)
    return model, x, built(low, lambda: model(x, low=low), model)


@pytest.mark.parametrize("low", [torch.bfloat16, torch.float16, torch.float32])
def test_the_reference_is_the_model_in_the_higher_precision(low: Any) -> None:
    model, x, workload = stubborn(low)
    high = HIGHER[low]
    found = call_reference(workload, high, 0)
    assert isinstance(found, Output)
    assert found.tensors[""].dtype is high
    assert torch.equal(found.tensors[""], copy.deepcopy(model).to(high)(x.to(high), low=high))


def test_every_weight_holds_the_same_memory_afterwards_and_no_hook_stays() -> None:
    model, _x, workload = stubborn(torch.bfloat16)
    before = [(each.data_ptr(), each.dtype, each.clone()) for each in model.state_dict().values()]
    output = workload.call()
    call_reference(workload, torch.float32, 0)
    after = [(each.data_ptr(), each.dtype) for each in model.state_dict().values()]
    assert after == [(pointer, dtype) for pointer, dtype, _values in before]
    assert model.two.weight is model.one.weight
    assert not any(module._forward_pre_hooks for module in model.modules())
    assert torch.equal(workload.call(), output)  # type: ignore[arg-type]


def test_noise_is_drawn_in_the_precision_it_has_in_an_eager_call() -> None:
    model = torch.nn.Linear(64, 64).bfloat16().requires_grad_(False)

    def call() -> Any:
        # As pipelines draw it: in the precision that the weights have.
        low = torch.randn(64, generator=torch.Generator().manual_seed(3), dtype=model.weight.dtype)
        full = torch.randn(64, generator=torch.Generator().manual_seed(3), dtype=torch.float32)
        return low + 0 * model(torch.zeros(64).bfloat16()), full

    low, full = call()
    found = call_reference(built(torch.bfloat16, call, model), torch.float32, 0)
    assert isinstance(found, Output)
    assert torch.equal(found.tensors["[0]"], low.float())
    assert torch.equal(found.tensors["[1]"], full)


def test_what_is_left_out_is_what_an_eager_call_leaves_out() -> None:
    model, p = torch.nn.Linear(4, 1000), torch.full((1000,), 0.3)

    def call() -> Any:
        with torch.no_grad():
            x = model(torch.ones(1, 4))
            kept = x * torch.bernoulli(p.to(x.dtype)), F.dropout(x, 0.3), F.dropout(x.clone(), 0.3, inplace=True)
            return *kept, F.dropout(x, 1.0), F.dropout(x, 0.3, training=False)

    workload = built(torch.float32, call, model)
    torch.manual_seed(workload.settings.seed)
    drawn = call()
    found = call_reference(workload, torch.float64, 0)
    assert isinstance(found, Output)
    for one, other in zip(drawn, found.tensors.values(), strict=True):
        assert torch.allclose(one.double(), other, rtol=1e-5, atol=1e-6)


def test_what_does_not_fit_is_said_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    _model, _x, workload = stubborn(torch.bfloat16)
    monkeypatch.setattr(reference_file, "free_memory_bytes", lambda _device: 2**30)
    needs_bytes = pytest.approx(10 * 2**30, rel=0.01)
    assert call_reference(workload, torch.float32, 2**32) == ReferenceDoesNotFit("float32", needs_bytes, 2**30)
    assert call_reference(replace(workload, modules=()), torch.float32, 0) == ModulesNotNamed()


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (
            RuntimeError("written for one precision\nsecond line"),
            ReferenceFailed(error="RuntimeError: written for one precision"),
        ),
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            # The layers' weight and biases and a buffer, twice as wide.
            ReferenceRanOutOfMemory(needs_bytes=1.25 * (64 * 64 + 3 * 64) * 4),
        ),
    ],
)
def test_a_model_that_fails_is_put_back_and_said_to(error: Exception, noted: Noted) -> None:
    model, x, workload = stubborn(torch.bfloat16)

    def call() -> Any:
        if model.one.weight.dtype is torch.float32:
            assert torch.get_float32_matmul_precision() == "highest"
            raise error
        return model(x, low=torch.bfloat16)

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert call_reference(replace(workload, call=call), torch.float32, 0) == noted
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)
    assert model.one.weight.dtype is torch.bfloat16
