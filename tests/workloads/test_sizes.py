from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.errors import TracekitError
from tracekit.model.workload import OWN_WEIGHTS, Request
from tracekit.workloads.flux_info import FLUX
from tracekit.workloads.maskformer_info import MASKFORMER
from tracekit.workloads.settings import fill_in
from tracekit.workloads.sizes import GIB, check_request, choose_size


@pytest.mark.parametrize(("free_gib", "size"), [(139, "full"), (24, "small"), (4, "tiny")])
def test_auto_takes_the_largest_that_fits_the_gpu(free_gib: int, size: str) -> None:
    chosen, reason = choose_size(FLUX, "auto", "cuda", free_gib * GIB)
    assert chosen == size
    assert f"{free_gib} GiB of GPU memory are free" in reason


def test_without_a_gpu_it_is_tiny_whatever_the_memory() -> None:
    assert choose_size(FLUX, "auto", "cpu", 1000 * GIB)[0] == "tiny"


def test_a_size_that_cannot_fit_is_refused_before_anything_is_built() -> None:
    with pytest.raises(TracekitError, match=r"full needs about 38 GiB .* 12\.0 GiB are free"):
        choose_size(FLUX, "full", "cuda", 12 * GIB)


def test_on_a_cpu_float32_needs_twice_the_memory() -> None:
    with pytest.raises(TracekitError, match="needs about 76 GiB"):
        choose_size(FLUX, "full", "cpu", 60 * GIB)


def test_a_gpu_too_full_for_the_smallest_size_says_what_to_do() -> None:
    with pytest.raises(TracekitError, match="nvidia-smi"):
        choose_size(FLUX, "auto", "cuda", GIB // 4)


def test_a_size_that_does_not_exist_lists_those_that_do() -> None:
    with pytest.raises(TracekitError, match="auto, full, small, tiny"):
        check_request(FLUX, Request("flux", size="huge"))


def test_real_weights_take_no_size() -> None:
    check_request(FLUX, Request("flux", pretrained="owner/model"))
    with pytest.raises(TracekitError, match="a size of their own"):
        check_request(FLUX, Request("flux", size="tiny", pretrained="owner/model"))


def test_an_image_size_the_model_cannot_make_is_refused():
    check_request(FLUX, Request("flux", height=512, width=768))
    with pytest.raises(TracekitError, match="multiples of 16 pixels: --width 100"):
        check_request(FLUX, Request("flux", width=100))


def test_the_dtype_asked_for_decides_the_memory() -> None:
    assert choose_size(FLUX, "full", "cpu", 60 * GIB, "bfloat16")[0] == "full"
    with pytest.raises(TracekitError, match="needs about 76 GiB"):
        choose_size(FLUX, "full", "cuda", 60 * GIB, "float32")
    assert choose_size(FLUX, "auto", "cuda", 60 * GIB, "float32")[0] == "small"


def test_a_cpu_too_full_for_the_smallest_size_says_so() -> None:
    with pytest.raises(
        TracekitError, match=r"not enough memory for flux: its tiny size needs 1 GiB on the CPU, 0\.2 G"
    ):
        choose_size(FLUX, "auto", "cpu", GIB // 5)


def test_the_only_size_is_not_met_with_advice_to_take_a_smaller_one() -> None:
    alone = replace(FLUX, sizes={"full": "all"}, memory_gib={"full": 38.0})
    with pytest.raises(TracekitError, match="pass --dtype bfloat16, or a smaller --batch-size"):
        choose_size(alone, "full", "cuda", 12 * GIB)


def test_weights_of_its_own_are_for_what_was_named_by_its_configuration() -> None:
    with pytest.raises(TracekitError, match="say whose weights flux is to have: --pretrained ID"):
        check_request(FLUX, Request("flux", pretrained=OWN_WEIGHTS))
    with pytest.raises(TracekitError, match="flux has no --seq-length and no --download: leave them out"):
        check_request(FLUX, Request("flux", seq_length=5, download=True))


def test_a_workload_may_have_a_type_of_its_own() -> None:
    assert fill_in(MASKFORMER, Request("maskformer"), "full", "cuda").dtype == "float32"
    assert fill_in(MASKFORMER, Request("maskformer", dtype="bfloat16"), "full", "cuda").dtype == "bfloat16"
    with pytest.raises(TracekitError, match="needs about 4 GiB"):
        choose_size(MASKFORMER, "full", "cuda", 3 * GIB)
