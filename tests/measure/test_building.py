"""Which size real weights are, what larger calls need, and a cache that cannot be written to."""

from pathlib import Path

import pytest
from msgspec.structs import replace

pytest.importorskip("torch")
pytest.importorskip("transformers")

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.measure.building import check_cache, choose_request_size
from tracekit.model.progress import Silent
from tracekit.model.workload import THEIR_SIZE, Request
from tracekit.numbers import parameter_count
from tracekit.workloads import registry
from tracekit.workloads.scopes import build_scoped

GIB = 2**30


def chosen(name: str, free_gib: float = 200, device: str = "cuda", **asked: object) -> tuple[str, str]:
    request = Request(name, **asked)  # type: ignore[arg-type]
    return choose_request_size(registry.find(name), request, device, int(free_gib * GIB))


def test_published_weights_are_the_size_of_the_list_that_they_are() -> None:
    size, reason = chosen("qwen2.5-vl", free_gib=16, pretrained="Qwen/Qwen2.5-VL-3B-Instruct")
    assert (size, reason) == ("3b", "the weights of Qwen/Qwen2.5-VL-3B-Instruct")
    with pytest.raises(DoesNotFitError, match=r"at size 7b needs about 20 GiB .* leave --pretrained out"):
        chosen("qwen2.5-vl", free_gib=16, pretrained="Qwen/Qwen2.5-VL-7B-Instruct")


def test_other_weights_have_no_size_of_the_list_and_an_unknown_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.workloads.hub_files.count_saved", lambda _source: None)
    size, reason = chosen("causal-lm", free_gib=1, pretrained="meta-llama/Llama-3.2-1B")
    assert size == THEIR_SIZE and size not in registry.find("causal-lm").sizes
    assert "memory unknown" in reason


def test_weights_that_are_here_are_weighed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracekit.workloads.hub_files.count_saved", lambda _source: 8 * 10**9)
    with pytest.raises(DoesNotFitError, match=r"owner/model needs about 18 GiB .*8\.0 B parameters"):
        chosen("causal-lm", free_gib=16, pretrained="owner/model")
    assert chosen("causal-lm", free_gib=24, pretrained="owner/model")[0] == THEIR_SIZE


def test_a_batch_that_cannot_fit_is_refused_before_anything_is_built() -> None:
    pytest.importorskip("diffusers")
    with pytest.raises(DoesNotFitError, match=r"flux at size full needs about \d+ GiB"):
        chosen("flux", free_gib=40, batch_size=100, size="full")
    with pytest.raises(DoesNotFitError, match="flux at size tiny needs about"):
        chosen("flux", free_gib=2, batch_size=1000)
    assert chosen("flux", free_gib=60, batch_size=16)[0] == "full"


def test_a_run_of_other_weights_says_no_size_of_the_list(tmp_path: Path) -> None:
    import transformers

    config = transformers.ViTConfig(num_hidden_layers=1, hidden_size=32, num_attention_heads=2, intermediate_size=64)
    model = transformers.ViTForImageClassification(config)
    model.save_pretrained(tmp_path)
    info, request = registry.find("vit"), Request("vit", pretrained=str(tmp_path), scope="model")
    size, reason = choose_request_size(info, request, "cpu", 4 * GIB)
    told = parameter_count(sum(each.numel() for each in model.parameters()))
    assert (size, f"{tmp_path}: {told} parameters" in reason) == (THEIR_SIZE, True)
    workload = build_scoped(registry.load_builder(info), info, request, size, "cpu", Silent())
    assert workload.settings.size == THEIR_SIZE
    # Fresh processes build it again by that name.
    again = replace(request, scope="vit.embeddings")
    assert build_scoped(registry.load_builder(info), info, again, size, "cpu", Silent()).settings.size == THEIR_SIZE


def test_an_unwritable_cache_is_said_with_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    check_cache()
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file" / "cache"))
    with pytest.raises(TracekitError, match="set TORCHINDUCTOR_CACHE_DIR"):
        check_cache()
