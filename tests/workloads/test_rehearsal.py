from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tracekit.workloads.rehearsal import rehearse  # noqa: E402


class Tied(nn.Module):
    """Two layers of one weight, 4096 bytes, and a buffer of 8."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 32, bias=False)
        self.second = nn.Linear(32, 32, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("scale", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) * self.scale[0]


class Looking(nn.Module):
    """Cannot go on without a value."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if bool(x.sum() > 0) else -x


def rehearsed(kind: type[nn.Module], *shape: int):
    with torch.device("meta"):
        return rehearse(kind(), {"x": torch.zeros(shape)})


def test_weights_are_counted_once_however_often_they_are_used() -> None:
    assert rehearsed(Tied, 1, 32).weights_bytes == 32 * 32 * 4 + 8


def test_activations_are_the_most_that_one_call_holds_at_once() -> None:
    # What came in is not counted. Two of its size live at once: what a layer was given and what it makes of it.
    assert rehearsed(Tied, 100, 32).activations_bytes == 2 * 100 * 32 * 4


def test_where_a_value_decides_activations_are_not_known() -> None:
    found = rehearsed(Looking, 8)
    assert (found.weights_bytes, found.activations_bytes) == (0, None)


def test_inputs_that_do_not_fit_are_the_models_own_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError):
        rehearsed(Tied, 1, 31)
    assert capfd.readouterr().err == ""


def test_what_a_rehearsal_computes_does_not_come_to_real_calls():
    """transformers keeps DETR's position embeddings by shape, device and type, whichever model asked."""
    pytest.importorskip("transformers")
    from transformers.models.detr.modeling_detr import DetrSinePositionEmbedding

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = DetrSinePositionEmbedding(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.embedding(x.shape, x.device, x.dtype)

    size = (1, 3, 5, 7)
    with torch.device("meta"):
        rehearse(Positions(), {"x": torch.zeros(size)})
    found = Positions()(torch.zeros(size))
    assert type(found) is torch.Tensor
    assert torch.isfinite(found).all()
