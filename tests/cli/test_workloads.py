import itertools
import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.runs import assert_refused, invoke, tracekit

from tracekit.workloads.registry import all_workloads


@pytest.fixture(scope="module")
def listed() -> Result:
    """All of them, as text on standard error and as JSON on standard output."""
    return invoke("workloads", "-v", "--json", "-")


def test_every_workload_is_listed_with_its_sizes_scopes_and_the_options_that_not_every_one_has(listed: Result) -> None:
    for word in ("flux", "FLUX.1-dev", "--size", "full", "small", "tiny", "GiB", "--scope", "transformer", "regional"):
        assert word in listed.stderr
    document = json.loads(listed.stdout)
    assert document["schema"] == "tracekit.workloads/1"
    entries = {entry["name"]: entry for entry in document["workloads"]}
    flux = entries["flux"]
    assert set(flux["sizes"]) == {"full", "small", "tiny"} and "transformer" in flux["scopes"]
    assert flux["memory_gib"]["full"] > flux["memory_gib"]["small"]
    takes = {name: entry["takes"] for name, entry in entries.items()}
    assert takes["flux"] == ["height", "width", "steps", "prompt", "pretrained", "nproc", "parallel"]
    assert takes["causal-lm"] == ["pretrained", "cache", "phase", "nproc", "parallel"]
    assert takes["vit"] == takes["whisper"] == ["pretrained"]
    assert {name: entry["parallel"] for name, entry in entries.items() if entry["parallel"]} == {
        "flux": ["ulysses", "ring"],
        "flux-schnell": ["ulysses", "ring"],
        "causal-lm": ["tp"],
        "gpt": ["ddp", "fsdp2", "tp"],
    }
    assert takes["mlp"] == takes["sdxl"] == []
    assert {"max_new_tokens", "use_fast", "cache", "phase"} < set(takes["qwen2.5-vl"])


def test_what_stands_for_any_model_is_listed_apart(listed: Result) -> None:
    document = json.loads(listed.stdout)
    assert [entry["name"] for entry in document["any"]] == ["hf:ORG/NAME", "diffusers:ORG/NAME"]
    assert not any(":" in entry["name"] for entry in document["workloads"])
    assert "memory computed from" in " ".join(listed.stderr.split())


def test_the_list_fits_80_columns(tmp_path: Path) -> None:
    for options in ((), ("-v",)):
        found = tracekit("workloads", *options, folder=tmp_path, COLUMNS="80")
        assert max(map(len, found.stdout.splitlines())) <= 80
        for name in ("qwen2.5-vl", "vit", "mask2former", "deeplabv3-mobilenet", "sdxl", "bert"):
            assert f"\n{name}  " in found.stdout


def test_of_all_there_is_a_line_each_and_of_a_named_one_everything() -> None:
    lines = invoke("workloads").stdout.splitlines()
    rows = [*itertools.takewhile(str.strip, lines)]
    assert [row.split()[0] for row in rows[:-2]] == [info.name for info in all_workloads()]
    assert [row.split()[0] for row in rows[-2:]] == ["hf:ORG/NAME", "diffusers:ORG/NAME"]
    assert rows[0].endswith("full small tiny") and len(lines) < len(rows) + 5
    named = invoke("workloads", "flux").stdout
    assert "--scope" in named and named in invoke("workloads", "-v").stdout


def test_a_name_that_is_unknown_or_missing_is_one_line() -> None:
    assert_refused(invoke("workloads", "flx"), "did you mean flux?")
    assert_refused(invoke("workloads", "--parts"), "tracekit workloads vit --parts")


def test_every_workload_says_its_inputs_parameters_and_breaks() -> None:
    result = invoke("workloads", "vit", "qwen2.5-vl")
    for words in ("pixel_values 1x3x224x224", "86,567,656", "none: one graph", "in the vision tower"):
        assert words in result.output


def test_a_model_by_its_configuration_is_described_without_reading_it() -> None:
    result = invoke("workloads", "hf:owner/model")
    assert (result.exit_code, result.output.startswith("hf:owner/model")) == (0, True)


def test_the_parts_of_a_workload_are_listed_with_their_share_as_scope_takes_them() -> None:
    pytest.importorskip("transformers")
    result = invoke("workloads", "vit", "--parts")
    assert result.exit_code == 0, result.output
    rows = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()[1:] if line.strip()}
    assert result.stdout.splitlines()[0] == "vit  full: 86.6 M parameters"
    assert rows["model.vit.layers.*"] == ["85.1", "M", "98", "%", "12", "ViTLayer"]
    assert next(iter(rows)) == "model.vit.embeddings"
