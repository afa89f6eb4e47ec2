from __future__ import annotations

import pytest

from tracekit.doctor.versions import is_older


@pytest.mark.parametrize(
    ("version", "than", "older"),
    [
        ("2.13.0+cpu", "2.9", False),
        ("2.8.1", "2.9", True),
        ("2.9", "2.9.0", False),
        ("2.9.0rc1", "2.9", False),
        ("0.35.2", "0.35", False),
        ("0.9.9", "0.35", True),
        ("10", "9.9", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, than: str, older: bool) -> None:
    assert is_older(version, than) is older


def test_what_is_no_version_is_refused() -> None:
    with pytest.raises(ValueError, match="does not begin with a number"):
        is_older("unknown", "2.9")
