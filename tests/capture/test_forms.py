from __future__ import annotations

import pytest

pytest.importorskip("torch")

from torch._inductor import config

from tracekit.capture.forms import compile_options, compiled_form
from tracekit.capture.warmup import warm_up
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload

from .conftest import make_settings


def test_a_form_that_is_ready_leaves_inductors_configuration_alone(workload: BuiltWorkload) -> None:
    """Changing it slows the calls that follow."""
    form = compiled_form(workload)
    warm_up(form, Silent())
    with form.ready():
        assert not config.cpp.enable_kernel_profile


def test_cpu_code_is_compiled_to_show_its_kernels_and_otherwise_as_its_mode_says() -> None:
    assert compile_options(make_settings(dynamic=False)) == {
        "fullgraph": True,
        "dynamic": False,
        "options": {"cpp.enable_kernel_profile": True},
    }
    graphs = compile_options(make_settings(mode="reduce-overhead"))
    assert "mode" not in graphs, "torch.compile takes a mode or options"
    assert graphs["options"] == {"triton.cudagraphs": True, "cpp.enable_kernel_profile": True}


def test_gpu_code_needs_no_options() -> None:
    assert compile_options(make_settings(device="cuda")) == {"fullgraph": True, "dynamic": None}
    assert compile_options(make_settings(device="cuda", mode="max-autotune"))["mode"] == "max-autotune"
