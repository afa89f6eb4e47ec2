from __future__ import annotations

import json

from click.testing import CliRunner

from tracekit.cli.main import main


def test_every_workload_is_listed_with_its_sizes_and_scopes() -> None:
    result = CliRunner().invoke(main, ["workloads"])
    assert result.exit_code == 0
    for word in ("flux", "FLUX.1-dev", "--size", "full", "small", "tiny", "GiB", "--scope", "transformer", "regional"):
        assert word in result.output


def test_workloads_are_listed_with_the_options_that_not_every_one_has() -> None:
    result = CliRunner().invoke(main, ["workloads", "--json", "-"])
    takes = {entry["name"]: entry["takes"] for entry in json.loads(result.stdout)["workloads"]}
    assert takes == {
        "flux": ["height", "width", "steps", "prompt", "pretrained"],
        "qwen2.5-vl": [
            "height",
            "width",
            "prompt",
            "pretrained",
            "max_new_tokens",
            "use_fast",
            "cache",
            "phase",
        ],
        "vit": ["pretrained"],
        "causal-lm": ["pretrained"],
        "mlp": [],
    }


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
