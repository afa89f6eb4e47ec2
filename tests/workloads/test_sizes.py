from __future__ import annotations

from dataclasses import replace

import pytest

from tracekit.errors import TracekitError
from tracekit.model.option import OWN_WEIGHTS
from tracekit.model.workload import Request
from tracekit.workloads.listed import FLUX
from tracekit.workloads.one_forward_table import ROWS
from tracekit.workloads.own_info import described
from tracekit.workloads.settings import fill_in
from tracekit.workloads.sizes import GIB, check_request, choose_size, way_to_need_less, weights_fit

MASKFORMER, VIT = ROWS["maskformer"].info, ROWS["vit"].info


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
    with pytest.raises(TracekitError, match=r"whose weights flux is to have: --pretrained black-forest-labs/FLUX\.1"):
        check_request(FLUX, Request("flux", pretrained=OWN_WEIGHTS))
    with pytest.raises(TracekitError, match="flux has no --seq-length and no --download: leave them out"):
        check_request(FLUX, Request("flux", seq_length=5, download=True))


def test_a_workload_may_have_a_type_of_its_own() -> None:
    assert fill_in(MASKFORMER, Request("maskformer"), "full", "cuda").dtype == "float32"
    assert fill_in(MASKFORMER, Request("maskformer", dtype="bfloat16"), "full", "cuda").dtype == "bfloat16"
    with pytest.raises(TracekitError, match="needs about 4 GiB"):
        choose_size(MASKFORMER, "full", "cuda", 3 * GIB)


def test_a_batch_that_is_clearly_too_large_is_refused_and_a_doubtful_one_tried_with_a_warning() -> None:
    grown = lambda size: 10.0 if size == "full" else 1.0  # noqa: E731
    with pytest.raises(TracekitError, match=r"vit at size full needs about 12 GiB for this batch and image size, by"):
        choose_size(VIT, "full", "cuda", 2 * GIB, None, grown)
    size, reason = choose_size(VIT, "full", "cuda", 9 * GIB, None, grown)
    assert size == "full" and "it may not fit" in reason and "9.0 GiB are free" in reason
    assert choose_size(VIT, "full", "cuda", 12 * GIB, None, grown) == (
        "full",
        "as asked; this batch and image size need about 12 GiB, by an estimate",
    )


def test_auto_takes_the_largest_that_fits_the_batch_too() -> None:
    grown = lambda size: 10.0 if size == "full" else 1.0  # noqa: E731
    size, reason = choose_size(VIT, "auto", "cuda", 3 * GIB, None, grown)
    assert (size, reason) == (
        "tiny",
        "tiny is the largest that fits; this batch and image size need about 2 GiB, by an estimate",
    )
    assert choose_size(VIT, "auto", "cuda", 3 * GIB, None, lambda _size: None)[0] == "full", "not known is no reason"


def test_real_weights_are_told_by_what_is_in_their_files() -> None:
    assert weights_fit("o/m", 3_750_000_000, "cuda", 16 * GIB, None) == (
        "the weights of o/m: 3.8 B parameters, about 9 GiB"
    )
    with pytest.raises(TracekitError, match=r"o/m needs about 17 GiB of memory in float32, by the 3\.8 B parameters"):
        weights_fit("o/m", 3_750_000_000, "cpu", 16 * GIB, None)
    assert "not known before they are loaded" in weights_fit("o/m", None, "cuda", GIB, None)


def test_whom_memory_ran_out_is_told_of_options_that_the_workload_has() -> None:
    assert way_to_need_less(FLUX.takes) == "pass a smaller --size, --batch-size, --height or --width"
    assert way_to_need_less(VIT.takes) == "pass a smaller --size or --batch-size"
    own = way_to_need_less(described("model.py:build", "as it is").takes)
    assert own == "make the model or what it is called with smaller"
