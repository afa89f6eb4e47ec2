from __future__ import annotations

from dataclasses import replace

import pytest
from tests.sides import make_environment, make_form, make_settings, make_side

from tracekit.errors import TracekitError
from tracekit.walks.pairs import refuse_side_by_side, refuse_to_gate, short_names

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
