"""What is advised where torch.compile compiled nothing."""

import pytest
from msgspec.structs import replace
from tests.sides import make_run, make_settings

from tracekit.comparison.findings.compilation import find_remedies
from tracekit.model.compilation import NotCompiled

READ = NotCompiled("scalar_read", "Unsupported Tensor.item() call", inside="loop")


def advised(*reasons: NotCompiled, blocks: tuple[str, ...] = ("model.blocks.*",), **settings: object) -> list[str]:
    run = make_run(settings=make_settings(**{"scope": "model", "fullgraph": False, **settings}), repeated_parts=blocks)
    found = find_remedies(replace(run, not_compiled=reasons))
    assert all((each.option is None) == (each.command is None) for each in found)
    return [f"{each.code} {each.option}" if each.option else each.code for each in found]


CAPTURE = "capture_in_graph TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1"


def test_each_thing_is_advised_once() -> None:
    assert advised(READ, READ) == ["compute_on_gpu", CAPTURE, "compile_body --scope regional"]


@pytest.mark.parametrize("known", [{"scope": "regional"}, {"blocks": ()}])
def test_blocks_are_compiled_one_by_one_where_there_are_some_and_they_are_not_yet(known: dict[str, object]) -> None:
    assert advised(READ, **known)[-1] == "compile_body"  # type: ignore[arg-type]


def test_no_option_is_advised_that_meets_the_same_line() -> None:
    assert advised(replace(READ, in_block=True)) == ["compute_on_gpu", CAPTURE, "compile_body"]
    assert advised(replace(READ, reason="Tensor.tolist() with non-integer tensor", inside=None)) == ["compute_on_gpu"]


def test_where_nothing_is_known_torch_s_own_error_is_asked_for() -> None:
    assert advised() == advised(NotCompiled("other", "Observed exception")) == ["name_line --fullgraph"]
    assert advised(fullgraph=True) == []
