import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.workload import Request
from tracekit.sweep.cells import Cell
from tracekit.sweep.running.matrix import expand, make_cell

SWEEPS = Path(__file__).parents[3] / "sweeps"


def test_every_combination_is_a_cell_and_eager_is_one_for_all_modes_and_scopes() -> None:
    modes, scopes = ("eager", "default", "reduce-overhead"), ("transformer", "regional")
    found = expand(["flux"], {"mode": modes, "scope": scopes, "batch_size": (1, 5)}, {})
    asked = [(cell.form, cell.request) for cell in found if cell.request.batch_size == 1]
    assert [(form, request.mode, request.scope) for form, request in asked] == [
        ("eager", "default", None),
        ("compiled", "default", "transformer"),
        ("compiled", "reduce-overhead", "transformer"),
        ("compiled", "default", "regional"),
        ("compiled", "reduce-overhead", "regional"),
    ]
    assert len({cell.key for cell in found}) == len(found) == 10
    assert len({cell.work for cell in found}) == 2, "those that differ in how they compile do the same work"


def test_the_default_scope_named_and_unnamed_is_one_cell() -> None:
    (named,), (unnamed,) = (expand(["flux"], axes, {}) for axes in ({"scope": ("transformer",)}, {}))
    assert named == unnamed


@pytest.mark.parametrize("fixed", [{"fullgraph": True}, {"fullgraph": False}, {"dynamic": True}, {"dynamic": False}])
def test_an_eager_cell_hears_nothing_of_how_others_are_compiled(fixed: dict[str, bool]) -> None:
    axes = {"mode": ("eager", "default")}
    plain, other = expand(["vit"], axes, {}), expand(["vit"], axes, fixed)
    assert plain[0] == other[0]
    assert plain[1].key != other[1].key
    assert plain[1].work == other[1].work


def test_what_may_be_fetched_makes_no_other_cell_and_options_of_an_own_model_do() -> None:
    plain, fetched = (make_cell("eager", Request("hf:a/b", download=download)) for download in (None, True))
    assert plain.key == fetched.key
    few, many = (make_cell("eager", Request("m.py:build", options=(f"layers={n}",))) for n in (2, 4))
    assert few.work != many.work


def test_how_many_ranks_and_how_work_is_spread_are_other_work_than_one_process() -> None:
    one = expand(["gpt"], {"mode": ("eager", "default")}, {})
    spread = expand(["gpt"], {"mode": ("eager", "default"), "nproc": (1, 2), "parallel": ("ddp", "fsdp2")}, {})
    assert [(each.request.nproc, each.request.parallel, each.form) for each in spread[:4]] == [
        (1, "ddp", "eager"),
        (1, "ddp", "compiled"),
        (1, "fsdp2", "eager"),
        (1, "fsdp2", "compiled"),
    ]
    assert len({cell.key for cell in (*one, *spread)}) == 10 and len({cell.work for cell in (*one, *spread)}) == 5
    assert "2-ranks-fsdp2" in spread[-1].key
    checkpointed = expand(["gpt"], {"mode": ("eager", "default")}, {"checkpoint": True})
    assert not {cell.work for cell in checkpointed} & {cell.work for cell in one}
    with pytest.raises(TracekitError, match="--parallel tp is for several ranks: pass --nproc"):
        expand(["gpt"], {"parallel": ("tp",)}, {})


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
        ("flux", {"scope": ("transfomer",)}, "'transfomer'"),
        ("flux", {"mode": ("eager",), "scope": ("transfomer",)}, "'transfomer'"),
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


def test_keys_stay_as_they_are_from_version_to_version() -> None:
    # Folders of older versions go on only as long as these do not change.
    assert make_cell("eager", Request("vit")).key == "vit-b1-eager-6ed5ffb9"
    cell = make_cell("compiled", Request("vit", scope="model", mode="reduce-overhead", batch_size=4))
    assert cell.key == "vit-b4-model-reduce-overhead-79b35a9e"


@pytest.mark.parametrize("asked", sorted(SWEEPS.glob("*/sweep.json")), ids=lambda path: path.parent.name)
def test_cells_of_committed_sweeps_are_the_same_cells_today(asked: Path) -> None:
    cells = [msgspec.convert(each, Cell) for each in json.loads(asked.read_bytes())["cells"]]
    assert cells
    assert [make_cell(cell.form, cell.request) for cell in cells] == cells
