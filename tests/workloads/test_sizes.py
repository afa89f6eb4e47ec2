from __future__ import annotations

import pytest

from tracekit.errors import TracekitError
from tracekit.model.workload import Request
from tracekit.workloads.flux_info import FLUX
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
