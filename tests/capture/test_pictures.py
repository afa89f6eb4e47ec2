from __future__ import annotations

import io

import pytest

torch = pytest.importorskip("torch")
image_library = pytest.importorskip("PIL.Image")

from tracekit.capture.output_check import draw_difference, draw_image, find_images  # noqa: E402
from tracekit.capture.outputs import keep_output  # noqa: E402


def size_of(png: bytes) -> tuple[int, int]:
    return image_library.open(io.BytesIO(png)).size  # type: ignore[no-any-return]


def test_three_channels_from_0_to_1_are_images() -> None:
    images = torch.rand(2, 3, 32, 48)
    found = find_images(keep_output({"logits": torch.rand(2, 9), "images": images}))
    assert found is not None
    assert torch.equal(found, images)


@pytest.mark.parametrize("shape", [(2, 4, 32, 32), (2, 3, 8, 8), (3, 32, 32)])
def test_other_shapes_are_none(shape: tuple[int, ...]) -> None:
    assert find_images(keep_output(torch.rand(shape))) is None


def test_other_values_are_none() -> None:
    assert find_images(keep_output(torch.randn(1, 3, 32, 32))) is None
    assert find_images(keep_output(torch.full((1, 3, 32, 32), float("nan")))) is None


def test_large_images_are_made_small_in_their_proportion() -> None:
    assert size_of(draw_image(torch.rand(1, 3, 512, 1024))) == (192, 96)
    assert size_of(draw_image(torch.rand(1, 3, 64, 32))) == (32, 64)


def test_a_picture_shows_the_first_image() -> None:
    images = torch.stack((torch.ones(3, 16, 16), torch.zeros(3, 16, 16)))
    assert image_library.open(io.BytesIO(draw_image(images))).getpixel((0, 0)) == (255, 255, 255)


def test_a_difference_is_scaled_until_its_largest_value_is_white() -> None:
    one, other = torch.zeros(1, 3, 16, 16), torch.zeros(1, 3, 16, 16)
    one[0, 0, 0, 0] = 0.25
    png, scale = draw_difference(one, other)
    assert scale == 4
    picture = image_library.open(io.BytesIO(png))
    assert [picture.getpixel((0, 0)), picture.getpixel((1, 0))] == [(255, 0, 0), (0, 0, 0)]


def test_tiny_differences_are_not_blown_up_and_equal_images_stay_black() -> None:
    images = torch.zeros(1, 3, 16, 16)
    assert draw_difference(images + 1e-4, images)[1] == 64
    assert draw_difference(images, images)[1] == 1
