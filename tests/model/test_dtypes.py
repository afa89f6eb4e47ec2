from __future__ import annotations

import pytest

from tracekit.model.dtypes import CPP_TYPES, ELEMENT_BYTES


def test_every_type_is_as_wide_as_torch_has_it() -> None:
    torch = pytest.importorskip("torch")
    assert {name: getattr(torch, name).itemsize for name in ELEMENT_BYTES} == ELEMENT_BYTES


def test_the_names_of_recordings_are_those_of_types_whose_width_is_known() -> None:
    assert set(CPP_TYPES.values()) == set(ELEMENT_BYTES)
