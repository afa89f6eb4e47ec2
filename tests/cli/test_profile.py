"""`tracekit profile` as a user runs it: a small model on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.runs import make_run_folder, tracekit

from tracekit import store
from tracekit.cli.main import main
from tracekit.cli.profile import _next_command, profile_workload
from tracekit.model.run import FormResult
from tracekit.model.workload import Request
from tracekit.tracefile import read_trace
from tracekit.walks.plan import Plan
from tracekit.workloads import registry

from ..sides import make_form, make_run

ROOT = Path(__file__).parents[2]


COMMAND = [sys.executable, "-m", "tracekit", "profile"]


def environment() -> dict[str, str]:
    # Without a GPU even where there is one: what is tested here is the CPU's path.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""}


def profile(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options], cwd=folder, env=environment(), capture_output=True, text=True, timeout=400, check=False
    )


@pytest.mark.slow
def test_both_forms_are_run_recorded_and_reported(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = profile(tmp_path, "mlp", "--compiled", "--iterations", "5", "--json", "-")
    assert found.returncode == 0, found.stderr
    run = store.load(tmp_path / "traces" / "mlp-compiled")
    assert (run.status, [form.name for form in run.forms]) == ("complete", ["eager", "compiled"])
    assert all(len(form.wall_us) == 5 and form.device_us is None for form in run.forms)
    assert sorted(run.order) == ["compiled"] * 5 + ["eager"] * 5
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["mlp-compiled"]
    comparison = json.loads(found.stdout)
    assert comparison["schema"] == "tracekit.comparison/1"
    assert comparison["verdict"]["result"] in ("faster", "slower", "inconclusive")
    assert comparison["deltas"] == {"kernels": None, "launches": None, "busy_us": None, "idle_us": None}
    assert comparison["waterfall"] is None
    # What a run on a CPU cannot show is said.
    assert "mlp at size tiny: there is no GPU here" in found.stderr and "This is a CPU run" in found.stderr
    page = (tmp_path / "reports" / "mlp-compiled.html").read_text()
    assert "CPU run" in page and ("no kernel" in page or "no GPU kernels" in page)
    assert (tmp_path / "reports" / "mlp-compiled.md").is_file()
    phases = ["building mlp (tiny)", "eager warm-up", "compiling", "timing", "recording eager (light)"]
    positions = [found.stderr.index(phase) for phase in phases]
    assert positions == sorted(positions) and "USDT" not in found.stderr
    for form, fused in (("eager", False), ("compiled", True)):
        trace = read_trace(tmp_path / "traces" / "mlp-compiled" / f"{form}-light.json.gz")
        assert trace.host["name"].str.contains("cpp_fused").any() is fused
        assert trace.metadata["form"] == form


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        *((["mlp", option, value], 2, option) for option in ("--target", "--time-budget") for value in ("nan", "inf")),
        (["flx"], 1, "did you mean flux?"),
        (["flux", "--no-baseline"], 1, "--no-baseline says how to compile: pass --compiled too"),
        (["flux", "--mode", "max-autotune", "--no-fullgraph"], 1, "--mode, --fullgraph says how to compile"),
        (["flux", "--size", "huge"], 1, "has no size 'huge'"),
        (["flux", "--height", "100"], 1, "multiples of 16"),
        (["mlp", "--height", "224", "--steps", "2"], 1, "mlp has no --height and no --steps: leave them out"),
        (["hf:owner/model", "--steps", "2"], 1, "hf:owner/model has no --steps: leave it out"),
        (["nowhere.py:build"], 1, "there is no file nowhere.py here"),
        (["flux", "--compiled", "--warmup", "hight=256"], 1, "did you mean height?"),
        (["mlp", "--compiled", "--warmup", "steps=2"], 1, "mlp has no steps to warm up at"),
        (["flux", "--warmup", "batch=2"], 1, "--warmup says how to compile"),
        *(
            (["mlp", "--compiled", "--warmup", "batch=2", *other], 1, f"{other[0]} in others that warm up as usual")
            for other in (["--repeat-process", "2"], ["--verify-advice"], ["--startup"])
        ),
        (["flux", "--json", "."], 1, "--json '.' is a folder"),
        (
            ["flux", "--compiled", "--json", "reports/flux-compiled.html"],
            1,
            "--json and the page would both be",
        ),
        (["a.b:c", "--compiled", "--out", "x/y", "--json", "x/reports/y.md"], 1, "--json and its twin would both be"),
        (["flux", "--pretrained", "a/b", "--size", "tiny"], 1, "real weights have a size of their own"),
        (["flux", "--compiled", "--out", "there"], 1, "already there; pass --force"),
    ],
)
def test_a_wrong_request_is_one_line_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    # Whatever is built or measured would be asked of it.
    monkeypatch.setattr("tracekit.walks.profiling.load_builder", None)
    make_run_folder(tmp_path, "there")
    before = sorted(tmp_path.rglob("*"))
    found = CliRunner().invoke(main, ["profile", *options])
    assert (found.exit_code, message in found.stderr) == (code, True), found.output
    assert code == 2 or len(found.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


def test_a_size_that_does_not_fit_is_one_error_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    found = profile(tmp_path, "flux", "--size", "full")
    (error,) = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    assert found.returncode == 1 and "needs about 76 GiB of memory" in error
    assert "Traceback" not in found.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.slow
def test_ctrl_c_while_timing_keeps_the_calls_that_were_timed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = [*COMMAND, "mlp", "--iterations", "20000"]
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    told: list[str] = []
    assert process.stderr is not None
    for line in process.stderr:
        told.append(line)
        if line.startswith("timing"):
            break
    rest = threading.Thread(target=lambda: told.extend(process.stderr or ()))
    rest.start()
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130, "".join(told)
    rest.join()
    run = store.load(tmp_path / "traces" / "mlp-eager.incomplete")
    assert run.status == "incomplete"
    assert len(run.forms[0].wall_us) > 0
    assert not (tmp_path / "traces" / "mlp-eager").exists()
    assert "what was measured until now is in" in "".join(told)
    assert "Traceback" not in "".join(told)


MODEL = """
import torch
from torch import nn

print("hello from my model")


def build(width: int = 16, fail: bool = False, batch_size: int = 1):
    if fail:
        raise ValueError("told to fail")
    return nn.Linear(width, width).eval(), (torch.randn(batch_size, width),)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    (tmp_path / "my_model.py").write_text(MODEL)
    return tmp_path


def test_what_a_file_raises_is_shown_as_theirs_with_exit_code_1(place: Path) -> None:
    found = tracekit("profile", "my_model.py:build", "--", "fail=true", folder=place)
    assert found.returncode == 1
    lines = [line for line in found.stderr.splitlines() if not line.startswith(("loading", "building"))]
    assert lines[0] == "Traceback (most recent call last):"
    assert "my_model.py" in lines[1]
    assert "tracekit" not in "".join(lines[:-1]).replace(str(place), "")
    assert lines[-1] == "error: my_model.py:build() raised ValueError: told to fail, at my_model.py:10 in build"
    assert not (place / "traces").exists() or not list((place / "traces").iterdir())


LATER = """
import torch

CALLS = []


def build(last: int = 6):
    layer = torch.nn.Linear(4, 4)

    def call():
        CALLS.append(1)
        if len(CALLS) > last:
            raise ValueError("one call too many")
        return layer(torch.ones(4))

    return call
"""


@pytest.mark.parametrize("last", [1, 6, 20])
def test_what_any_later_call_raises_is_shown_as_theirs_too(last: int, tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text(LATER)
    found = tracekit("profile", "later.py:build", "--iterations", "3", "--", f"last={last}", folder=tmp_path)
    assert found.returncode == 1
    progress, _, shown = found.stderr.partition("Traceback (most recent call last):")
    assert {1: "eager warm-up", 6: "timing", 20: "recording eager"}[last] in progress
    lines = shown.splitlines()
    assert "later.py" in lines[1] and "tracekit" not in "".join(lines[:-1]).replace(str(tmp_path), "")
    assert lines[-1].startswith("error: a call of what later.py:build() returned raised ValueError: one call too many")


@pytest.mark.slow
def test_an_own_model_is_profiled_reported_and_built_again_in_fresh_processes(place: Path) -> None:
    options = ("--compiled", "--iterations", 3, "--repeat-process", 1, "--json", "-", "--batch-size", 2)
    found = tracekit(
        "profile", "my_model.py:build", *options, "--", "--width", 8, folder=place, CUDA_VISIBLE_DEVICES=""
    )
    assert found.returncode == 0, found.stderr
    comparison = json.loads(found.stdout)
    assert comparison["a"]["settings"]["own"] == {"options": ["width=8"], "takes": ["batch_size"], "in_program": False}
    folder = place / "traces" / "my_model-build-compiled"
    run = store.load(folder)
    assert run.command.endswith("--batch-size 2 -- --width 8")
    assert all(form.timing is not None and len(form.timing.processes) == 1 for form in run.forms)
    assert "hello from my model" in (folder / store.OUTPUT).read_text()
    report = (place / "reports" / "my_model-build-compiled.md").read_text()
    assert "width=8" in report and "random weights" not in report
    for command in ("analyze", "compare", "export"):
        more = ("--csv", "kernels.csv") if command == "export" else ()
        again = tracekit(command, folder, *more, folder=place)
        assert again.returncode == 0, again.stderr


#: What is asked where kernels come from, too.
WITH_PROVENANCE = ("vit", "causal-lm", "mlp")


#: From an empty cache Inductor's C++ takes up to a minute for each of the others. They are compiled as far as
#: AOTAutograd, where every break is found by then, unless this is set in the environment.
EVERY_KERNEL = "TRACEKIT_TEST_EVERY_KERNEL"


WITH_INDUCTOR = (*WITH_PROVENANCE, "bert", "beit")


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without a GPU even where there is one: what is tested here is the CPU's path."""
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    pytest.importorskip("scipy")
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


def without_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    from tracekit.capture import forms

    options = forms.compile_options
    if not os.environ.get(EVERY_KERNEL):
        monkeypatch.setattr(forms, "compile_options", lambda settings: {**options(settings), "backend": "aot_eager"})


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("name", [info.name for info in registry.all_workloads()])
def test_both_forms_of_every_workload_are_run_recorded_compared_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    if name not in WITH_INDUCTOR:
        without_inductor(monkeypatch)
    request = Request(name, size="tiny", iterations=2)
    asked = name in WITH_PROVENANCE
    folder = tmp_path / "traces" / f"{name}-compiled"
    profile_workload(Plan(request, ("eager", "compiled"), folder, False, f"profile {name}", provenance=asked))
    run = store.load(folder)
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.size, run.settings.dtype) == (name, "tiny", "float32")
    assert [form.name for form in run.forms] == ["eager", "compiled"]
    assert all(len(form.wall_us) == 2 and min(form.wall_us) > 0 for form in run.forms)
    assert all(bool(form.provenance) is asked for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    if registry.find(name).fullgraph:
        assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    else:
        assert facts.graphs > 1 and facts.graph_breaks > 0
    _are_finite_and_near(run.forms[1])
    for form in run.forms:
        for recording in form.recordings:
            assert read_trace(folder / recording.path).host.height > 0
    assert not [note for note in run.notes if "provenance" in note or "not compared" in note]
    assert (tmp_path / "reports" / f"{name}-compiled.html").is_file()


def _are_finite_and_near(compiled: FormResult) -> None:
    assert compiled.numerics is not None and compiled.numerics.against_eager is not None
    for output in compiled.numerics.against_eager.tensors:
        assert output.problem is None
        if output.max_abs is None or output.other_max is None:
            # Tokens, the first of which are the prompt.
            assert output.equal_share is not None and output.equal_share > 0.5
        else:
            assert not output.nonfinite
            assert output.max_abs <= 1e-3 * max(output.other_max, 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
def test_a_decoding_step_of_qwen_is_one_graph_and_told_as_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_inductor(monkeypatch)
    options = ("--compiled", "--phase", "decode", "--cache", "static", "--iterations", "3", "--no-provenance")
    found = CliRunner().invoke(main, ["profile", "qwen2.5-vl", *options, "--json", "-"])
    assert found.exit_code == 0, found.stderr
    run = store.load(tmp_path / "traces" / "qwen2.5-vl-compiled-decode-static")
    assert run.settings.generation is not None
    assert (run.settings.generation.phase, run.settings.generation.cache) == ("decode", "static")
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert "decode, static cache" in found.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize(
    ("workload", "options", "run_name"),
    [
        ("hf:./model", ("--seq-length", 8), "hf-model-compiled"),
        ("diffusers:model", ("--height", 64, "--width", 64), "diffusers-model-compiled"),
    ],
)
def test_a_model_by_its_configuration_is_run_recorded_and_reported(
    workload: str, options: tuple[object, ...], run_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.workloads.configurations import save

    if workload.startswith("hf"):
        save("BertForMaskedLM", tmp_path / "model")
    else:
        save("FluxTransformer2DModel", tmp_path / "model")
        without_inductor(monkeypatch)
    asked = ("profile", workload, "--compiled", "--iterations", "3", *map(str, options))
    monkeypatch.setattr("sys.argv", ["tracekit", *asked])
    found = CliRunner().invoke(main, asked)
    assert found.exit_code == 0, found.output
    run = store.load(tmp_path / "traces" / run_name)
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.dtype, run.settings.scope) == (workload, "float32", "model")
    assert all(len(form.recordings) == 2 for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert (tmp_path / "reports" / f"{run_name}.html").is_file()
    if workload.startswith("hf"):
        assert run.settings.seq_length == 8
        assert all(form.provenance for form in run.forms)
        told = (tmp_path / "reports" / f"{run_name}.md").read_text()
        assert " · 8 tokens · " in told and "--seq-length 8" in told


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            ("hf:owner/model",),
            (
                "the configuration of owner/model is not in the local Hugging Face cache and nothing is downloaded"
                " unasked: pass --download to fetch it (a few kB), or the folder that holds it instead of the name"
            ),
        ),
        (
            ("diffusers:owner/model", "--download"),
            "owner/model is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder",
        ),
    ],
)
def test_a_configuration_that_is_not_here_is_one_line(asked: tuple[str, ...], line: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("diffusers")
    empty = {"HF_HUB_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    found = tracekit("profile", *asked, folder=tmp_path, **empty)
    assert found.returncode == 1
    assert found.stderr.splitlines()[-1] == f"error: {line}"
    assert not (tmp_path / "traces").exists() or list((tmp_path / "traces").iterdir()) == []


@pytest.mark.parametrize(
    ("folder", "form", "out"),
    [
        ("traces/flux-eager", "eager", None),
        ("traces/flux-compiled", "compiled", "traces/flux-compiled-compared"),
        ("elsewhere/mine", "compiled", "elsewhere/mine-compared"),
        ("elsewhere/mine", "eager", "elsewhere/mine-compared"),
    ],
)
def test_the_next_command_keeps_the_settings_and_overwrites_no_run(folder: str, form: str, out: str | None) -> None:
    run = make_run(forms=(make_form(form),))  # type: ignore[arg-type]
    run = replace(run, settings=replace(run.settings, batch_size=4))
    command = _next_command(Path(folder), run)
    assert "--batch-size 4" in command and "--force" not in command
    assert command.endswith(f"--out {out}") if out else "--out" not in command
