import json
from pathlib import Path

import pytest
from click.testing import Result
from tests.cli.runs import invoke, tracekit_without

from tracekit.doctor import Check, checks


def doctor(monkeypatch: pytest.MonkeyPatch, found: dict[str, Check], *options: object) -> Result:
    """What the command says where the checks find this."""
    monkeypatch.setattr(checks, "CHECKS", {name: lambda check=check: check for name, check in found.items()})
    return invoke("doctor", *options)


def test_a_machine_that_is_well_exits_with_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {
        "python": Check("ok", "3.12.1"),
        "token": Check("warning", "none", "hf auth login"),
        "gpu": Check("skipped", "no GPU"),
    }
    result = doctor(monkeypatch, found)
    assert result.exit_code == 0
    assert result.output == (
        "ok      python              3.12.1\n"
        "warning token               none\n"
        "        hf auth login\n"
        "-       gpu                 no GPU\n"
        "\n"
        "no problems, 1 warning\n"
    )


def test_long_fixes_stay_on_one_line_and_brackets_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    fix = "pip install 'something[profile]' " + "x" * 200
    result = doctor(monkeypatch, {"torch": Check("problem", "not [there]", fix)})
    lines = result.output.splitlines()
    assert lines[:2] == ["problem torch               not [there]", f"        {fix}"]
    assert (result.exit_code, lines[-1]) == (1, "1 problem, no warnings")


def test_json_has_standard_output_to_itself_or_goes_to_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = {"python": Check("ok", "3.12.1"), "torch": Check("problem", "not installed", "pip install torch")}
    result = doctor(monkeypatch, found, "--json", "-")
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {
        "schema": "tracekit.doctor/1",
        "checks": [
            {"name": "python", "status": "ok", "message": "3.12.1", "fix": None},
            {"name": "torch", "status": "problem", "message": "not installed", "fix": "pip install torch"},
        ],
    }
    assert "not installed" in result.stderr
    doctor(monkeypatch, found, "--json", tmp_path / "doctor.json")
    assert (tmp_path / "doctor.json").read_text() == result.stdout


def test_a_machine_without_torch_is_told_which_extra_to_install(tmp_path: Path) -> None:
    packages = {"torch", "triton", "diffusers", "transformers", "huggingface_hub", "pynvml"}
    result = tracekit_without(packages, "doctor", "--json", "-", folder=tmp_path)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    found = {check["name"]: check for check in json.loads(result.stdout)["checks"]}
    assert (found["torch"]["status"], found["torch"]["message"]) == ("problem", "not installed")
    assert found["torch"]["fix"].startswith("pip install -c constraints.txt '.[profile]'")
    for name in ("gpu", "gpu memory", "triton", "profiler", "inductor cache"):
        assert found[name]["status"] == "skipped", name
