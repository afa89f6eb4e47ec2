from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tracekit.errors import TracekitError
from tracekit.model.sweep import Cell
from tracekit.model.workload import Request
from tracekit.walks.sweep_cells import expand, make_cell

SWEEPS = Path(__file__).parents[2] / "sweeps"


def told(*workloads: str, **axes: tuple[object, ...]) -> list[tuple[object, ...]]:
    cells = expand(workloads, axes, {})
    return [
        (cell.request.workload, cell.form, cell.request.mode, cell.request.scope, cell.request.batch_size)
        for cell in cells
    ]


def test_every_combination_is_a_cell_and_eager_is_one_for_all_modes_and_scopes() -> None:
    found = told(
        "flux", mode=("eager", "default", "reduce-overhead"), scope=("transformer", "regional"), batch_size=(1, 5)
    )
    assert [row[1:] for row in found if row[4] == 1] == [
        ("eager", "default", None, 1),
        ("compiled", "default", "transformer", 1),
        ("compiled", "reduce-overhead", "transformer", 1),
        ("compiled", "default", "regional", 1),
        ("compiled", "reduce-overhead", "regional", 1),
    ]
    assert len(found) == 10


def test_the_default_scope_named_and_unnamed_is_one_cell() -> None:
    assert len(told("flux", scope=("transformer",))) == 1
    named, unnamed = (expand(["flux"], axes, {}) for axes in ({"scope": ("transformer",)}, {}))
    assert named == unnamed


@pytest.mark.parametrize("fixed", [{"fullgraph": True}, {"fullgraph": False}, {"dynamic": True}, {"dynamic": False}])
def test_an_eager_cell_hears_nothing_of_how_others_are_compiled(fixed: dict[str, bool]) -> None:
    axes = {"mode": ("eager", "default")}
    plain, other = expand(["vit"], axes, {}), expand(["vit"], axes, fixed)
    assert plain[0] == other[0]
    assert plain[1].key != other[1].key
    assert plain[1].work == other[1].work


def test_a_wrong_scope_is_told_where_nothing_is_compiled_too() -> None:
    pytest.importorskip("torch")
    with pytest.raises(TracekitError, match="nothing called 'transfomer'"):
        expand(["flux"], {"mode": ("eager",), "scope": ("transfomer",)}, {})


def test_what_may_be_fetched_makes_no_other_cell_and_options_of_an_own_model_do() -> None:
    plain, fetched = (make_cell("eager", Request("hf:a/b", download=download)) for download in (None, True))
    assert plain.key == fetched.key
    few, many = (make_cell("eager", Request("m.py:build", options=(f"layers={n}",))) for n in (2, 4))
    assert few.work != many.work


def test_images_are_square_unless_a_width_is_named() -> None:
    square = expand(["flux"], {"height": (512, 1024)}, {})
    assert [(cell.request.height, cell.request.width) for cell in square] == [(512, 512), (1024, 1024)]
    other = expand(["flux"], {"height": (512,), "width": (256,)}, {})
    assert [(cell.request.height, cell.request.width) for cell in other] == [(512, 256)]


@pytest.mark.parametrize(
    ("workload", "axes", "message"),
    [
        ("vit", {"height": (512,)}, "vit has no --height"),
        ("flux", {"height": (500,)}, "multiples of 16"),
        ("flux", {"scope": ("transfomer",)}, "nothing called 'transfomer'"),
        ("flux", {"size": ("huge",)}, "no size 'huge'"),
        ("flix", {}, "did you mean flux"),
    ],
)
def test_what_a_workload_has_not_is_refused_before_anything_runs(
    workload: str, axes: dict[str, tuple[object, ...]], message: str
) -> None:
    with pytest.raises(TracekitError, match=message):
        expand([workload], axes, {})


def test_a_key_is_of_the_settings_alone_and_good_for_a_file() -> None:
    cell = make_cell("compiled", Request("./models/my net.py:build", scope="a/b", mode="default", batch_size=4))
    assert "/" not in cell.key
    assert not cell.key.startswith(".")
    again = replace(cell.request, seed=7, iterations=300)
    assert make_cell("compiled", again).key == cell.key
    others = {
        make_cell("compiled", Request("vit", mode=mode, scope=scope, batch_size=batch, dtype=dtype)).key
        for mode in ("default", "reduce-overhead")
        for scope in ("model", None)
        for batch in (1, 4)
        for dtype in (None, "float16")
    }
    assert len(others) == 16


def test_cells_that_differ_in_how_they_compile_do_the_same_work() -> None:
    cells = expand(["flux"], {"mode": ("eager", "default"), "scope": ("regional", "vae"), "batch_size": (1, 2)}, {})
    works = {cell.work for cell in cells}
    assert len(works) == 2
    assert len({cell.key for cell in cells}) == len(cells) == 6


def test_keys_stay_as_they_are_from_version_to_version() -> None:
    # Folders of older versions go on only as long as these do not change.
    assert make_cell("eager", Request("vit")).key == EAGER_KEY
    assert make_cell("compiled", Request("vit", scope="model", mode="reduce-overhead", batch_size=4)).key == OTHER_KEY


EAGER_KEY = "vit-b1-eager-6ed5ffb9"
OTHER_KEY = "vit-b4-model-reduce-overhead-79b35a9e"


@pytest.mark.parametrize("asked", sorted(SWEEPS.glob("*/sweep.json")), ids=lambda path: path.parent.name)
def test_cells_of_committed_sweeps_are_the_same_cells_today(asked: Path) -> None:
    cells = [msgspec.convert(each, Cell) for each in json.loads(asked.read_bytes())["cells"]]
    assert cells
    assert [make_cell(cell.form, cell.request) for cell in cells] == cells
