"""What keeps torch.compile from working is said before anything is built; what the machine is."""

import sys
import types
from functools import partial
from importlib import metadata
from pathlib import Path

import pytest
import torch
from tests.measure.conftest import make_settings
from torch._dynamo import exc as dynamo_exc

# Now: in a test that pretends another triton, torch would import that one.
from torch._inductor import cpp_builder, exc

from tracekit.errors import TracekitError
from tracekit.measure import compilation
from tracekit.measure.compilation import (
    cache_is_empty,
    callable_of,
    check_compilers,
    compiled_backward,
    dynamo_counters,
    idle_mode,
    room_for,
    watch_compilation,
)
from tracekit.measure.device import read_environment
from tracekit.measure.failures import explained
from tracekit.measure.forms import compiled_form, warm_up
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload, CompileTarget


def test_a_missing_cpp_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise exc.InvalidCxxCompiler

    monkeypatch.setattr(cpp_builder, "get_cpp_compiler", none)
    with pytest.raises(TracekitError, match=r"apt install g\+\+"):
        check_compilers("cpu")


@pytest.mark.parametrize(
    ("capability", "hip", "triton", "error"),
    [
        ((6, 0), None, True, r"Tesla P100 has compute capability 6\.0"),
        # AMD's GPUs count differently.
        ((6, 0), "6.4", True, None),
        ((9, 0), None, True, None),
        ((9, 0), None, False, r"pip install 'triton==3\.6\.0'"),
    ],
)
def test_a_gpu_that_triton_knows_no_more_and_a_missing_triton_are_named(
    monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], hip: str | None, triton: bool, error: str | None
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "Tesla P100")
    monkeypatch.setattr(torch.version, "hip", hip)
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton") if triton else None)
    monkeypatch.setattr(metadata, "requires", lambda _name: ["numpy", "triton==3.6.0; platform_system"])
    if error is None:
        check_compilers("cuda")
        return
    with pytest.raises(TracekitError, match=error):
        check_compilers("cuda")


@pytest.mark.parametrize(("mode", "idle"), [("reduce-overhead", True), ("max-autotune", True), ("default", False)])
def test_a_mode_that_asks_a_cpu_for_cuda_graphs_is_said_to_do_nothing_there(mode: str, idle: bool) -> None:
    assert (idle_mode(make_settings(mode=mode)) is not None) is idle
    assert idle_mode(make_settings(mode=mode, device="cuda")) is None


@pytest.mark.usefixtures("without_kernels")
def test_what_lies_in_the_cache_is_looked_up_before_a_form_fills_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workload: BuiltWorkload
) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    (tmp_path / "aa").mkdir()
    assert cache_is_empty() is True, "folders are no files"
    first = warm_up(compiled_form(workload), Silent()).compilation
    assert first is not None and first.cache_was_empty is True
    assert cache_is_empty() is False


@pytest.mark.parametrize(
    "name", ["callback.callback_handler", "register_start_callback", "remove_start_callback", "utils.counters"]
)
def test_a_torch_that_cannot_be_watched_is_an_error_that_names_those_that_can(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name.startswith(("register", "remove")):
        # A handler without the one method; Dynamo itself goes on with its own.
        both = ("register_start_callback", "remove_start_callback")
        left = {each: lambda _call: None for each in both if each != name}
        monkeypatch.setattr("torch._dynamo.callback.callback_handler", types.SimpleNamespace(**left))
    else:
        monkeypatch.delattr(f"torch._dynamo.{name}")
    with pytest.raises(TracekitError, match=r"torch 2\.9 to 2\.15"), watch_compilation():
        raise AssertionError("never watched")


def test_errors_that_this_torch_does_not_name_are_passed_on_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dynamo_exc, "TorchDynamoException")
    with pytest.raises(ValueError, match="as it is"), explained(make_settings()):
        raise ValueError("as it is")


def test_a_cpu_run_claims_no_gpu() -> None:
    environment = read_environment("cpu")
    assert (environment.gpu, environment.gpu_memory_bytes, environment.driver) == (None, None, None)
    assert environment.packages["torch"] == torch.__version__
    assert environment.cpu_threads == torch.get_num_threads()


def test_it_holds_how_float32_is_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    def mixed() -> str:
        raise RuntimeError("PyTorch is checking whether allow_tf32_new is enabled")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    assert read_environment("cpu").float32_matmul_precision == "high"
    monkeypatch.setattr(torch, "get_float32_matmul_precision", mixed)
    assert read_environment("cpu").float32_matmul_precision is None


def test_blocks_that_know_their_place_have_room_for_a_graph_each() -> None:
    from torch._dynamo import config

    blocks = [torch.nn.Linear(2, 2) for _ in range(10)]
    targets = tuple(CompileTarget(str(place), block) for place, block in enumerate(blocks))
    limit = config.recompile_limit
    with room_for(targets)():
        assert config.recompile_limit == limit
    for place, block in enumerate(blocks):
        block.place = place
    # As many as there are sizes, too.
    sizes = tuple(CompileTarget(str(size), torch.nn.Linear(size, 2)) for size in range(1, 21))
    for some, most in ((targets, 20), (sizes, 40)):
        with room_for(some)():
            assert config.recompile_limit == most
    assert config.recompile_limit == limit


def test_a_call_begins_at_the_module_whatever_a_library_put_in_its_forward_s_place() -> None:
    module = torch.nn.Linear(2, 2)
    assert callable_of(module) != module._call_impl
    module.forward = partial(module.forward)
    assert callable_of(module) == module._call_impl


def test_a_torch_without_dynamo_s_settings_or_errors_is_refused_in_one_line_or_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("config", "exc"):
        monkeypatch.setitem(sys.modules, f"torch._dynamo.{name}", None)
        monkeypatch.delattr(torch._dynamo, name)
    with pytest.raises(TracekitError, match="has no known API for Dynamo's settings"):
        compilation.check_compilers("cpu")
    assert compilation.dynamo_errors("Unsupported") == ()


@pytest.mark.parametrize("asked", [None, True])
def test_backward_is_traced_where_that_is_asked_for_and_gives_the_same(asked: bool | None) -> None:
    x = torch.ones(3, requires_grad=True)
    traced = dynamo_counters()["compiled_autograd"]["captures"]
    with compiled_backward(make_settings(compiled_autograd=asked), {"backend": "eager", "fullgraph": True})():
        (x * x).sum().backward()
    assert dynamo_counters()["compiled_autograd"]["captures"] - traced == bool(asked)
    assert torch.equal(x.grad, torch.full((3,), 2.0))
