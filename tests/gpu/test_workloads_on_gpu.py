"""One build of every workload on a real GPU, at tiny size: eager twice, and compiled with Inductor."""

import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.workloads.configurations import save

from tracekit.errors import TracekitError
from tracekit.model.progress import Silent
from tracekit.model.workload import BuiltWorkload, Request
from tracekit.workloads import registry

torch: Any = pytest.importorskip("torch")

NAMES = [info.name for info in registry.all_workloads()]
PHASES = [(phase, cache) for phase in ("generate", "prefill", "decode") for cache in ("dynamic", "static")]


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def build(name: str, **asked: Any) -> BuiltWorkload:
    info = registry.find(name)
    request = Request(name, **asked)
    request = replace(request, scope=registry.check_scope(info, request.scope))
    try:
        builder = registry.load_builder(info)
    except TracekitError as error:
        pytest.skip(str(error))
    return builder(request, list(info.sizes)[-1], "cuda", Silent())


def outputs(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def compiled_call(workload: BuiltWorkload) -> Any:
    from tracekit.measure.forms import compiled_form

    form = compiled_form(workload)
    with form.ready():
        for _ in range(2):
            form.call()
        return form.call()


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_runs_on_the_gpu(name: str) -> None:
    workload = build(name)
    assert {p.device.type for _, module in workload.modules for p in module.parameters()} == {"cuda"}
    workload.call()
    for each in outputs(workload.call()):
        assert each.device.type == "cuda"
        assert torch.isfinite(each.float()).all()


@pytest.mark.parametrize("name", NAMES)
def test_every_workload_compiles_on_the_gpu(name: str) -> None:
    # In float32, so that rounding cannot hide or feign a difference.
    workload = build(name, dtype="float32")
    eager, compiled = outputs(workload.call()), outputs(compiled_call(workload))
    assert [each.shape for each in compiled] == [each.shape for each in eager]
    for one, other in zip(eager, compiled, strict=True):
        assert (one.float() - other.float()).abs().mean() < 0.05 * one.float().abs().mean() + 1e-6


@pytest.mark.parametrize(("phase", "cache"), PHASES)
def test_phases_of_qwen_do_the_same_again_eager_and_compiled(phase: str, cache: str) -> None:
    workload = build("qwen2.5-vl", phase=phase, cache=cache, batch_size=2, dtype="float32")
    first: Any = workload.call()
    assert torch.equal(first, workload.call())
    assert compiled_call(workload).shape == first.shape


@pytest.mark.parametrize("phase", ["generate", "decode"])
def test_decoding_with_a_static_cache_runs_as_cuda_graphs(phase: str) -> None:
    asked = {"phase": phase, "cache": "static", "mode": "reduce-overhead", "scope": "language", "dtype": "float32"}
    workload = build("qwen2.5-vl", **asked)
    eager, compiled = workload.call(), compiled_call(workload)
    if phase == "decode":
        assert torch.allclose(eager, compiled, atol=1e-3)
    else:
        assert eager.shape == compiled.shape


def test_the_published_3b_is_drawn_on_the_gpu_in_seconds() -> None:
    info = registry.find("qwen2.5-vl")
    if torch.cuda.mem_get_info()[0] < info.memory_gib["3b"] * 2**30:
        pytest.skip("not enough GPU memory")
    torch.cuda.reset_peak_memory_stats()
    start = time.monotonic()
    request = Request("qwen2.5-vl", scope="model", max_new_tokens=2)
    workload = registry.load_builder(info)(request, "3b", "cuda", Silent())
    assert sum(part.parameters for part in workload.components) == 3_754_622_976
    workload.call()
    assert torch.cuda.max_memory_allocated() < info.memory_gib["3b"] * 2**30
    assert time.monotonic() - start < 120


@pytest.mark.parametrize(("scope", "graphs"), [("regional", 1), ("vit.layers.0,classifier", 2), ("all", 1)])
def test_parts_of_a_model_are_compiled_by_name_on_the_gpu(scope: str, graphs: int) -> None:
    from tracekit.measure.compilation import watch_compilation
    from tracekit.workloads.scopes import build_scoped

    info = registry.find("vit")
    workload = build_scoped(registry.load_builder(info), info, Request("vit", scope=scope), "tiny", "cuda", Silent())
    with watch_compilation() as watch:
        compiled_call(workload)
    assert watch.since_start("graphs") == graphs


CONFIGURATIONS = (
    "ViTForImageClassification LlamaForCausalLM T5ForConditionalGeneration WhisperForConditionalGeneration"
    " UNet2DConditionModel FluxTransformer2DModel SD3Transformer2DModel"
).split()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_configuration_compiled_returns_what_eager_does_in_the_memory_listed(name: str, tmp_path: Path) -> None:
    torch.compiler.reset()
    # In float32, so that rounding cannot hide or feign a difference.
    request = Request(save(name, tmp_path), dtype="float32")
    info = registry.find(request.workload)
    builder = registry.load_builder(info)
    listed = registry.look_into(info, request).memory_gib["full"] * 2**30
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    workload = builder(request, "full", "cuda", Silent())
    eager = workload.call()
    assert torch.cuda.max_memory_allocated() - before < listed
    workload.targets[0].module.compile()
    for one, other in zip(eager, workload.call(), strict=True):  # type: ignore[call-overload]
        difference = torch.linalg.vector_norm(one.float() - other.float())
        assert difference <= 0.005 * torch.linalg.vector_norm(one.float())
