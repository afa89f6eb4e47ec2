"""What a sweep may not be asked for is refused before anything is written."""

from pathlib import Path

import pytest

from ...test_asked import REFUSED_OPTIONS, assert_option_is_refused


@pytest.mark.parametrize(
    ("option", "value", "allowed"), [*REFUSED_OPTIONS, ("--cell-timeout", "1e300", "above 0 to 10,000,000")]
)
def test_what_it_is_asked_for_has_bounds(option: str, value: str, allowed: str, tmp_path: Path) -> None:
    assert_option_is_refused(("sweep", "--mode=default"), option, value, allowed, tmp_path)
