from typing import Any

import pytest
from msgspec.structs import replace

from tracekit.errors import DoesNotFitError, TracekitError
from tracekit.model.option import OWN_WEIGHTS
from tracekit.model.workload import THEIR_SIZE, Request, WorkloadInfo
from tracekit.workloads import sizes
from tracekit.workloads.one_forward_table import ROWS
from tracekit.workloads.registry import CAUSAL_LM, FLUX, QWEN_VL
from tracekit.workloads.sizes import GIB, check_request, growth_gib, way_to_need_less, weights_fit
from tracekit.workloads.unlisted import own_info

MASKFORMER, MLP, VIT = ROWS["maskformer"].info, ROWS["mlp"].info, ROWS["vit"].info


def choose(info: WorkloadInfo, size: str, device: str, free_gib: float, **asked: Any) -> tuple[str, str]:
    return sizes.choose_size(info, Request(info.name, size=size, **asked), device, int(free_gib * GIB))


@pytest.mark.parametrize(
    ("device", "free_gib", "dtype", "size"),
    [
        ("cuda", 139, None, "full"),
        ("cuda", 24, None, "small"),
        ("cuda", 4, None, "tiny"),
        ("cuda", 60, "float32", "small"),
        ("cpu", 1000, None, "tiny"),
    ],
)
def test_auto_takes_the_largest_that_fits_the_gpu(device: str, free_gib: int, dtype: str | None, size: str) -> None:
    assert choose(FLUX, "auto", device, free_gib, dtype=dtype)[0] == size


@pytest.mark.parametrize(
    ("info", "size", "device", "free_gib", "dtype", "message"),
    [
        (FLUX, "full", "cuda", 12, None, r"full needs about 38 GiB .* 12\.0 GiB are free"),
        (FLUX, "full", "cpu", 60, None, "needs about 76 GiB"),
        (FLUX, "full", "cuda", 60, "float32", "needs about 76 GiB"),
        (MASKFORMER, "full", "cuda", 3, None, "needs about 4 GiB"),
        (FLUX, "auto", "cuda", 0.25, None, "nvidia-smi"),
        (FLUX, "auto", "cpu", 0.2, None, r"tiny size needs 1 GiB on the CPU, 0\.2 G"),
        (replace(FLUX, sizes={"full": ""}), "full", "cuda", 12, None, "--dtype bfloat16, or a smaller --batch-size"),
    ],
)
def test_a_size_that_cannot_fit_is_refused_before_anything_is_built(
    info: WorkloadInfo, size: str, device: str, free_gib: float, dtype: str | None, message: str
) -> None:
    with pytest.raises(DoesNotFitError, match=message):
        choose(info, size, device, free_gib, dtype=dtype)


@pytest.mark.parametrize(
    ("info", "asked", "message"),
    [
        (FLUX, {"size": "huge"}, "auto, full, small, tiny"),
        (FLUX, {"size": "tiny", "pretrained": "owner/model"}, "leave --size out"),
        (FLUX, {"width": 100}, "^--width 100.* 16 pixels"),
        (QWEN_VL, {"height": 100}, "^--height 100.* 28 pixels"),
        (FLUX, {"pretrained": OWN_WEIGHTS}, r"--pretrained black-forest-labs/FLUX\.1"),
        (FLUX, {"seq_length": 5, "download": True}, "flux has no --seq-length and no --download: leave them out"),
        (CAUSAL_LM, {"prompt": "Once"}, "causal-lm has no --prompt: leave it out"),
        (VIT, {"max_new_tokens": 3, "use_fast": False}, "vit has no --max-new-tokens and no --use-fast"),
        (MLP, {"pretrained": "a/b"}, "mlp has no --pretrained: leave it out"),
        (MLP, {"options": ("layers=3",)}, "leave out layers=3"),
    ],
)
def test_what_a_workload_has_not_is_refused(info: WorkloadInfo, asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        check_request(info, Request(info.name, **asked))


def test_what_a_workload_has_is_not() -> None:
    check_request(FLUX, Request("flux", height=512, width=768))
    check_request(FLUX, Request("flux", pretrained="owner/model"))


def test_a_batch_that_is_clearly_too_large_is_refused_and_a_doubtful_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "growth_gib", lambda _info, _request, size: 10.0 if size == "full" else 1.0)
    with pytest.raises(DoesNotFitError, match=r"vit at size full needs about 12 GiB .*; pass a smaller --batch-size"):
        choose(VIT, "full", "cuda", 2)
    size, reason = choose(VIT, "full", "cuda", 9)
    assert size == "full" and "9.0 GiB are free" in reason
    assert choose(VIT, "full", "cuda", 12)[0] == "full"
    size, reason = choose(VIT, "auto", "cuda", 3)
    assert size == "tiny" and "2 GiB" in reason


def test_what_a_call_needs_beyond_the_list_grows_with_the_pixels_where_that_was_measured() -> None:
    pytest.importorskip("diffusers")

    def growth(info: WorkloadInfo, **asked: int) -> float:
        return growth_gib(info, Request(info.name, **asked), "full")  # type: ignore[arg-type]

    per_image = 1.9 * 512 * 512 / 1e6
    assert growth(FLUX, batch_size=5) == pytest.approx(4 * per_image)
    assert growth(FLUX, height=1024, width=1024) == pytest.approx(3 * per_image)
    assert growth(FLUX, height=256) < 0
    assert (growth(FLUX), growth(VIT, batch_size=100)) == (0, 0)


def test_real_weights_need_what_is_in_their_files() -> None:
    assert "about 9 GiB" in weights_fit("o/m", 3_750_000_000, "cuda", 16 * GIB, None)
    with pytest.raises(DoesNotFitError, match="o/m needs about 17 GiB of memory in float32"):
        weights_fit("o/m", 3_750_000_000, "cpu", 16 * GIB, None)
    assert "unknown" in weights_fit("o/m", None, "cuda", GIB, None)


@pytest.mark.parametrize(
    ("info", "size", "mend"),
    [
        (FLUX, "full", "pass --size small, or a smaller --batch-size, --height or --width"),
        (VIT, "tiny", "pass a smaller --batch-size"),
        (VIT, THEIR_SIZE, "pass a smaller --batch-size"),
        (own_info("model.py:build", ""), "own", "use a smaller model or smaller inputs"),
    ],
)
def test_who_ran_out_of_memory_is_told_the_next_smaller_size(info: WorkloadInfo, size: str, mend: str) -> None:
    assert way_to_need_less(info, size) == mend
