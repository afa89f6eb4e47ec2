from __future__ import annotations

from pathlib import Path

import pytest
from tests.traces import DATA, make_kernel, make_op, write_trace

from tracekit.model.trace import HOST_COLUMNS, INPUT_COLUMNS
from tracekit.tracefile import cache, read_trace

from .test_cache import no_reading, read_and_keep, same


def test_operators_have_their_inputs_as_the_file_writes_them(tmp_path: Path) -> None:
    shaped = make_op(0, 1, **{"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]})
    path = write_trace(tmp_path, [shaped, make_op(2, 3), make_kernel(4, 5)])
    host = read_trace(path, shapes=True).host
    assert host.columns == [*HOST_COLUMNS, *INPUT_COLUMNS]
    assert host["dims"].to_list() == ["[[2, 3], []]", None]
    assert host["dtypes"].to_list() == ['["float", "Scalar"]', None]


def test_without_being_asked_for_there_are_none(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_op(0, 1, **{"Input Dims": [[2]]})])
    assert read_trace(path).host.columns == list(HOST_COLUMNS)


@pytest.mark.parametrize("name", ["aten::_scaled_dot_product_flash_attention", "aten::cudnn_convolution"])
def test_values_and_strides_are_kept_of_attention_and_convolutions_alone(tmp_path: Path, name: str) -> None:
    inputs = {"Input Dims": [[2, 3], []], "Concrete Inputs": ["", "[2, 2]"], "Input Strides": [[3, 1], []]}
    events = [make_op(0, 1, name=name, **inputs), make_op(2, 3, **inputs), make_kernel(4, 5)]
    host = read_trace(write_trace(tmp_path, events), shapes=True).host
    assert host["values"].to_list() == ['["", "[2, 2]"]', None]
    assert host["strides"].to_list() == ["[[3, 1], []]", None]


@pytest.mark.parametrize("dims", ["text", 7, None, {"a": 1}, True, 1.5])
def test_what_is_no_list_is_none(tmp_path: Path, dims: object) -> None:
    trace = read_trace(write_trace(tmp_path, [make_op(0, 1, **{"Input Dims": dims})]), shapes=True)
    assert trace.host["dims"].to_list() == [None]
    assert trace.skipped == {}


def test_in_a_damaged_file_what_is_left_has_its_inputs(tmp_path: Path) -> None:
    path = write_trace(tmp_path, [make_op(0, 1, **{"Input Dims": [[2]], "Input type": ["float"]}), make_op(2, 3)])
    text = path.read_text().replace('"ts": 2', '"ts": NaN')
    path.write_text(text[:-3])
    host = read_trace(path, shapes=True).host
    assert host["dims"].to_list() == ["[[2]]"]
    assert host["dtypes"].to_list() == ['["float"]']


def test_in_an_event_that_holds_what_it_should_not_the_inputs_are_still_read(tmp_path: Path) -> None:
    told = {"Input Dims": [[2, 3]], "Input type": ["float"], "Concrete Inputs": [""], "Input Strides": [[3, 1]]}
    path = write_trace(tmp_path, [make_op(0, 1, name="aten::convolution", odd=7.5, **told), make_kernel(4, 5)])
    path.write_text(path.read_text().replace('"odd": 7.5', '"odd": NaN'))
    host = read_trace(path, shapes=True).host
    assert host.select(INPUT_COLUMNS).rows() == [("[[2, 3]]", '["float"]', '[""]', "[[3, 1]]")]


def test_all_else_is_read_alike() -> None:
    path = DATA / "vit_default.json.gz"
    plain, shaped = read_trace(path), read_trace(path, shapes=True)
    assert shaped.host.drop(INPUT_COLUMNS).equals(plain.host)
    assert shaped.activities.equals(plain.activities) and shaped.calls.equals(plain.calls)
    assert shaped.skipped == plain.skipped


def test_readings_with_and_without_shapes_are_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SMALLEST_BYTES", 0)
    path = write_trace(tmp_path, [make_op(0, 1, **{"Input Dims": [[2]]}), make_kernel(0, 1)])
    folder = tmp_path / "cache"
    plain, shaped = read_and_keep(path, folder), read_and_keep(path, folder, shapes=True)
    no_reading(monkeypatch)
    assert same(read_trace(path, cache_folder=folder), plain)
    assert same(read_trace(path, cache_folder=folder, shapes=True), shaped)
    assert plain.host.columns != shaped.host.columns
