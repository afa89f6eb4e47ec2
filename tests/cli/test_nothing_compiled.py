"""A model of which torch.compile compiles nothing, and the run of it, as a user meets them."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.runs import edited, invoke, make_run_folder

from tracekit import store
from tracekit.model.compilation import NotCompiled
from tracekit.model.run import UserModel

LINES = 30
MODEL = """
import torch
from torch import nn


class Layers(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))
        self.kind = kind

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            if self.kind == "reads":
                x = x * x.max().item()
            if self.kind == "prints":
                print("a layer is done")
            if self.kind == "branches" and x.sum() > 0:
                x = -x
        return x


def build(kind: str = "reads"):
    return Layers(kind).eval(), (torch.randn(4, 8),)
"""
WHY = NotCompiled(
    "scalar_read", "Unsupported Tensor.item() call", "model.py:3", "forward", "x = x.item()", "outer.py:40", "loop"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In a folder of the test's own, without a GPU even where there is one; the terminal has 100 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.mark.parametrize(
    ("kind", "code", "line", "options"),
    [
        ("reads", "scalar_read", "x = x * x.max().item()", ()),
        ("prints", "untraceable_call", 'print("a layer is done")', ("--no-baseline",)),
        ("branches", "data_dependent_branch", 'if self.kind == "branches" and x.sum() > 0:', ("--strict",)),
    ],
)
def test_a_model_of_which_nothing_is_compiled_is_a_run_and_a_page(
    kind: str, code: str, line: str, options: tuple[str, ...], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr("tracekit.measure.device.pick_device", lambda: "cpu")
    (here / "my_model.py").write_text(MODEL)
    asked = ("--compiled", "--iterations", 3, "--json", "found.json", *options, "--", f"kind={kind}")
    found = invoke("profile", "my_model.py:build", *asked)
    assert found.exit_code == (1 if options == ("--strict",) else 0), found.output
    # What the model itself prints stays off a terminal, which this is not.
    assert len([each for each in found.stdout.splitlines() if each != "a layer is done"]) <= LINES
    folder = here / "traces" / "my_model-build-compiled"
    run = store.load(folder)
    (form,) = run.forms
    assert (form.name, len(form.wall_us), [each.kind for each in form.recordings]) == ("eager", 3, ["light", "rich"])
    assert run.status == "complete" and not any(part.compiled for part in run.components)
    assert run.not_compiled is not None
    reason = run.not_compiled[0]
    at = MODEL.splitlines().index(next(each for each in MODEL.splitlines() if each.strip() == line)) + 1
    assert (reason.code, reason.where, reason.line, reason.inside) == (code, f"my_model.py:{at}", line, "loop")
    told = json.loads((here / "found.json").read_text())["nothing_compiled"]
    assert told["reasons"][0]["code"] == code and "\n" not in told["because"]
    assert told["source"]["line"] == at and len(told["source"]["lines"]) == 3
    page, twin = (here / "reports" / f"my_model-build-compiled.{ending}" for ending in ("html", "md"))
    assert 'id="nothing-compiled"' in page.read_text()
    assert line in found.stdout and reason.where in found.stdout and line in twin.read_text()


@pytest.fixture
def run(here: Path) -> Path:
    """A run of eager calls alone that was to have a compiled form."""
    folder = make_run_folder(here / "traces", "run", forms=("eager",))
    (here / "model.py").write_text("def forward(x):\n    for _ in range(2):\n        x = x.item()\n    return x\n")
    with edited(folder) as told:
        told["not_compiled"] = msgspec.to_builtins((WHY,))
        told["settings"] |= {"workload": "model.py:build", "own": msgspec.to_builtins(UserModel())}
    return folder


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("compare", "{run}"), 0),
        (("compare", "{run}", "-v"), 0),
        (("compare", "{run}", "-q"), 0),
        (("analyze", "{run}", "--html"), 0),
        (("analyze", "{run}", "--form", "compiled"), 1),
        (("compare", "{run}", "--gate", "wall<=+3%"), 1),
        (("compare", "{run}", "--form-b", "compiled"), 1),
        (("compare", "{run}", "{other}", "{other}"), 1),
        (("compare", "{run}", "{other}"), 0),
        (("open", "{run}", "--form", "compiled"), 1),
        (("export", "{run}", "--groups", "-"), 1),
    ],
)
def test_every_command_ends_in_a_result_or_in_one_plain_line(
    arguments: tuple[str, ...], code: int, run: Path, here: Path
) -> None:
    other = make_run_folder(here / "traces", "other")
    found = invoke(*(each.format(run=run, other=other) for each in arguments))
    assert found.exit_code == code, found.output
    if code:
        assert len(found.stderr.splitlines()) == 1 and found.stderr.startswith("error: ")


def test_what_is_shown_fits_one_screen_and_says_why_where_and_what_to_change(run: Path, here: Path) -> None:
    found = invoke("compare", run, "--json", "found.json")
    lines = found.stdout.splitlines()
    assert len(lines) <= LINES and max(map(len, lines[:-3])) <= 100
    for told in ("no verdict", "model.py:3, called from outer.py:40", ">"):
        assert any(told in line for line in lines), told
    told = json.loads((here / "found.json").read_text())["nothing_compiled"]
    assert [each["code"] for each in told["remedies"]] == ["compute_on_gpu", "capture_in_graph", "compile_body"]
    assert told["source"]["lines"][1].strip() == WHY.line
    (here / "model.py").write_text("changed\n" * 9)
    assert "changed" not in invoke("compare", run).stdout


def many(reason: dict[str, Any]) -> list[dict[str, Any]]:
    texts = ("reason", "where", "function", "line", "called_from", "hint")
    hostile = {**reason, **dict.fromkeys(texts, "\x1b[31m<b>\n" * 500), "inside": "loop"}
    return [{**hostile, "code": code} for code in ("scalar_read", "generator", "other") * 40]


@pytest.mark.parametrize("reasons", [many, lambda _: []])
def test_whatever_a_run_says_of_itself_is_shown_within_bounds(reasons: Any, run: Path, here: Path) -> None:
    with edited(run) as told:
        told["not_compiled"] = reasons(told["not_compiled"][0])
    found = invoke("compare", run)
    assert found.exit_code == 0, found.output
    assert len(found.stdout.splitlines()) <= LINES and "\x1b[31m" not in found.stdout
    assert "<b>" not in (here / "reports" / "run.html").read_text()
