from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import tracekit

from tracekit.cli.main import main


def test_every_workload_is_listed_with_its_sizes_and_scopes() -> None:
    result = CliRunner().invoke(main, ["workloads"])
    assert result.exit_code == 0
    for word in ("flux", "FLUX.1-dev", "--size", "full", "small", "tiny", "GiB", "--scope", "transformer", "regional"):
        assert word in result.output


def test_workloads_are_listed_with_the_options_that_not_every_one_has() -> None:
    result = CliRunner().invoke(main, ["workloads", "--json", "-"])
    takes = {entry["name"]: entry["takes"] for entry in json.loads(result.stdout)["workloads"]}
    assert takes["flux"] == ["height", "width", "steps", "prompt", "pretrained"]
    assert takes["vit"] == takes["causal-lm"] == takes["whisper"] == ["pretrained"]
    assert takes["mlp"] == takes["sdxl"] == []
    assert {"max_new_tokens", "use_fast", "cache", "phase"} < set(takes["qwen2.5-vl"])


def test_the_list_fits_80_columns(tmp_path: Path) -> None:
    found = tracekit("workloads", folder=tmp_path, COLUMNS="80")
    assert max(map(len, found.stdout.splitlines())) <= 80
    for name in ("qwen2.5-vl", "vit", "beit", "mask2former", "deeplabv3-mobilenet", "conditional-detr", "sdxl", "bert"):
        assert f"\n{name}  " in found.stdout


def test_json_has_standard_output_to_itself() -> None:
    result = CliRunner().invoke(main, ["workloads", "--json", "-"])
    document = json.loads(result.stdout)
    assert document["schema"] == "tracekit.workloads/1"
    flux = next(entry for entry in document["workloads"] if entry["name"] == "flux")
    assert set(flux["sizes"]) == {"full", "small", "tiny"}
    assert flux["memory_gib"]["full"] > flux["memory_gib"]["small"]
    assert "transformer" in flux["scopes"]
    assert "FLUX.1-dev" in result.stderr


def test_an_unknown_name_gets_the_nearest_one() -> None:
    result = CliRunner().invoke(main, ["workloads", "flx"])
    assert result.exit_code == 1
    assert result.stderr == "error: no workload is called 'flx': did you mean flux? (`tracekit workloads` lists them)\n"


def test_every_workload_says_its_inputs_parameters_and_breaks() -> None:
    result = CliRunner().invoke(main, ["workloads", "vit", "qwen2.5-vl"])
    for words in ("pixel_values 1x3x224x224", "86,567,656", "none: one graph", "the vision tower breaks"):
        assert words in result.output


def test_what_stands_for_any_model_is_listed_apart() -> None:
    result = CliRunner().invoke(main, ["workloads", "--json", "-"])
    document = json.loads(result.stdout)
    assert [entry["name"] for entry in document["any"]] == ["hf:ORG/NAME", "diffusers:ORG/NAME"]
    assert not any(":" in entry["name"] for entry in document["workloads"])
    assert "memory as computed from it" in " ".join(result.stderr.split())


def test_a_model_by_its_configuration_is_described_without_reading_it() -> None:
    result = CliRunner().invoke(main, ["workloads", "hf:owner/model"])
    assert result.exit_code == 0
    assert result.output.startswith("hf:owner/model")


def test_the_parts_of_a_workload_are_listed_with_their_share_as_scope_takes_them() -> None:
    pytest.importorskip("transformers")
    result = CliRunner().invoke(main, ["workloads", "vit", "--parts"])
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()[1:] if line.strip()}
    assert result.stdout.splitlines()[0] == "vit  full: 86.6 M parameters"
    assert rows["model.vit.layers.*"] == ["85.1", "M", "98", "%", "12", "ViTLayer"]
    assert next(iter(rows)) == "model.vit.embeddings"


def test_parts_are_of_workloads_that_are_named() -> None:
    result = CliRunner().invoke(main, ["workloads", "--parts"])
    assert result.exit_code == 1
    assert "--parts lists the modules of the workloads that are named" in result.stderr
