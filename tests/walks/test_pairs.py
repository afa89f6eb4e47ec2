from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sequences import make_sequence, product
from tests.sides import make_environment, make_form, make_settings, make_side

from tracekit.errors import TracekitError
from tracekit.walks import pairs
from tracekit.walks.pairs import refuse_side_by_side, refuse_to_gate, short_names, with_operators_of
from tracekit.walks.reading import Reading

PATHS = ("one", "other")
ONE = make_side("eager", form=make_form())


@pytest.mark.parametrize("change", [{"batch_size": 4}, {"workload": "vit"}, {"dtype": "float16"}, {"height": 1024}])
def test_other_work_is_refused_and_both_runs_are_named(change: dict[str, object]) -> None:
    other = replace(ONE, settings=make_settings(**change))
    refuse_side_by_side([ONE, ONE], PATHS)
    with pytest.raises(TracekitError, match=r"one and other cannot stand side by side: The sides differ in"):
        refuse_side_by_side([ONE, other], PATHS)
    refuse_to_gate(ONE, ONE)
    with pytest.raises(TracekitError, match=next(iter(change.values())).__str__()):
        refuse_to_gate(ONE, other)


def test_another_gpu_is_refused_and_other_software_is_not() -> None:
    other = replace(ONE, environment=make_environment(gpu="NVIDIA A100"))
    with pytest.raises(TracekitError, match="GPU"):
        refuse_side_by_side([ONE, other], PATHS)
    with pytest.raises(TracekitError, match="NVIDIA H200, B has NVIDIA A100"):
        refuse_to_gate(ONE, other)
    newer = replace(ONE, environment=make_environment(packages={"torch": "2.14.0", "triton": "3.7.0"}))
    refuse_side_by_side([ONE, newer], PATHS)
    refuse_to_gate(ONE, newer)


def test_folders_of_one_name_are_told_apart_by_those_they_lie_in() -> None:
    assert short_names(["/x/vit", "/x/flux"]) == ("vit", "flux")
    assert short_names(["/x/vit", "/y/vit"]) == ("x/vit", "y/vit")
    assert short_names(["/x/a/vit", "/y/a/vit", "/y/bert"]) == ("x/a/vit", "y/a/vit", "/y/bert")


@pytest.mark.parametrize("graphed_first", [False, True])
def test_operators_are_lent_by_runs_of_the_same_sizes_alone(
    monkeypatch: pytest.MonkeyPatch, graphed_first: bool
) -> None:
    activities = [product(64, 32 * at, 16, call=at) for at in range(1, 7)]
    own = replace(make_side("own"), sequence=make_sequence(activities, "own"), settings=make_settings())
    without = [replace(each, operator=None, within=()) for each in activities]
    graphed = replace(own, label="graphed", sequence=make_sequence(without, "none"))
    sides = (graphed, own) if graphed_first else (own, graphed)

    def lent(batch_size: int) -> list[str]:
        lender = replace(own, settings=make_settings(batch_size=batch_size))
        monkeypatch.setattr(pairs, "load_side", lambda *_, **__: lender)
        borrowed = with_operators_of("lender", *sides, Reading())
        return sorted(side.sequence.operators for side in borrowed if side.sequence)

    assert lent(own.settings.batch_size if own.settings else 0) == ["lent", "own"]
    with pytest.raises(TracekitError, match="pass one of the same sizes"):
        lent(4)
