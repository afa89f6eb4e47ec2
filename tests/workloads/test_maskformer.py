from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("scipy")

from tracekit.errors import TracekitError
from tracekit.model.progress import Silent
from tracekit.model.workload import Request
from tracekit.workloads import maskformer


def test_a_transformers_that_masks_in_float32_takes_no_other_type(monkeypatch: pytest.MonkeyPatch) -> None:
    def masker(self: Any, input_resolution: Any) -> None: ...

    monkeypatch.setattr(maskformer.MaskFormerSwinLayer, "get_attn_mask", masker)
    with pytest.raises(TracekitError, match="runs MaskFormer in float32 alone"):
        maskformer.build(Request("maskformer", dtype="bfloat16"), "tiny", "cpu", Silent())
    built = maskformer.build(Request("maskformer"), "tiny", "cpu", Silent())
    assert built.settings.dtype == "float32"


def test_windows_are_shifted_at_tiny_size_too() -> None:
    built = maskformer.build(Request("maskformer"), "tiny", "cpu", Silent())
    (_, model), *_ = built.modules
    layers = [module for module in model.modules() if isinstance(module, maskformer.MaskFormerSwinLayer)]
    assert any(layer.shift_size > 0 for layer in layers)
