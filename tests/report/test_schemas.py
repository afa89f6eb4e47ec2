"""What tracekit writes keeps to the schemas it publishes: real runs, and sides with every kind of gap in them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from tracekit.cli.schema import NAMES
from tracekit.comparison.judging.gate import check, parse_conditions
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Comparison
from tracekit.model.compilation import NotCompiled
from tracekit.model.provenance import SourceLines
from tracekit.model.single_run import NothingCompiled, Remedy
from tracekit.report.contract import UNITS, analysis_json, comparison_json, schema

from ..sides import make_analysis, make_cpu_analysis, make_side
from ..traces import ROOT, RUNS, VIT
from .conftest import bare_comparison, cpu_comparison, hostile_comparison, timed_comparison

FOLDERS = [ROOT / each for each in RUNS]
every_schema = pytest.mark.parametrize("name", NAMES)


def closed(told: Any) -> Any:
    """The schema with no other keys allowed: whatever is written must be in it."""
    if isinstance(told, list):
        return [closed(each) for each in told]
    if not isinstance(told, dict):
        return told
    more = {"additionalProperties": False} if told.get("type") == "object" and "properties" in told else {}
    return {**{key: closed(value) for key, value in told.items()}, **more}


def faults(name: str, text: str) -> list[str]:
    validator = Draft202012Validator(closed(schema(name)))
    return [f"{error.json_path}: {error.message[:200]}" for error in validator.iter_errors(json.loads(text))]


@every_schema
def test_each_is_a_schema_of_its_own_name(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$id"] == f"tracekit.{name}/1"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_manifests_of_the_committed_runs_keep_to_theirs(folder: Path) -> None:
    validator = Draft202012Validator(schema("run"))
    assert list(validator.iter_errors(json.loads((folder / "run.json").read_text(encoding="utf-8")))) == []


def test_a_real_comparison_with_a_gate_keeps_to_its_schema(compared: Callable[[Path], Comparison]) -> None:
    comparison = compared(VIT)
    sides = comparison.a, comparison.b
    gated = replace(comparison, gate=check(comparison, parse_conditions("wall<=+3%,kernels<=500")))
    for each in (comparison, gated):
        assert faults("comparison", comparison_json(each)) == []
    for side in sides:
        assert faults("analysis", analysis_json(look_at(side))) == []
    assert look_at(sides[1]).findings


def test_what_is_not_known_is_allowed_for() -> None:
    for comparison in (timed_comparison(), bare_comparison(), cpu_comparison(), hostile_comparison()):
        assert faults("comparison", comparison_json(comparison)) == []
    for analysis in (make_analysis(), make_cpu_analysis(fused=2)):
        assert faults("analysis", analysis_json(look_at(make_side(analysis=analysis)))) == []
    reason = NotCompiled("scalar_read", "item", "m.py:3", inside="loop")
    nothing = NothingCompiled((reason,), (Remedy("compile_body"),), SourceLines(2, 3, ("a", "b"), changed=False))
    single = replace(look_at(make_side(analysis=make_analysis())), nothing_compiled=nothing)
    assert faults("analysis", analysis_json(single)) == []


@pytest.mark.parametrize(
    ("key", "value"), [("schema", "tracekit.analysis/2"), ("window", None), ("launches", {"count": 1}), ("other", 1)]
)
def test_what_breaks_the_contract_is_found(key: str, value: object) -> None:
    told = {**json.loads(analysis_json(look_at(make_side(analysis=make_analysis())))), key: value}
    assert faults("analysis", json.dumps(told))


def test_what_a_field_says_of_itself_stands_with_its_key() -> None:
    nouns = schema("comparison")["$defs"]
    assert nouns["PerStep"]["properties"]["slowdown"]["description"] == "Recorded wall time over unprofiled wall time."
    # A unit that stands in the name is said where nothing else is.
    assert nouns["KernelTime"]["properties"]["mean_us"]["description"] == UNITS["us"]


@every_schema
def test_every_figure_with_a_unit_in_its_name_has_a_description(name: str) -> None:
    told = schema(name)
    objects = [told, *told["$defs"].values()]
    keys = [(each.get("title"), *told) for each in objects for told in each.get("properties", {}).items()]
    figures = [each for each in keys if each[1].rsplit("_", 1)[-1] in UNITS]
    assert len(figures) > 10
    assert [(noun, key) for noun, key, told in figures if not told.get("description")] == []
