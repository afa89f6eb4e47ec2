"""`tracekit profile` as a user runs it: a small model on the CPU."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runs import ROOT, edited, invoke, make_run_folder, tracekit

from tracekit import store
from tracekit.cli.reporting_run import report_run
from tracekit.cli.running_workload import profile_workload
from tracekit.measure.plan import Plan
from tracekit.model.run import FormName
from tracekit.model.workload import Request
from tracekit.tracefile.read import read_trace
from tracekit.workloads import registry

#: In a process of its own, without a GPU even where there is one: what is tested here is the CPU's path.
profile = partial(tracekit, "profile", CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="2")


@pytest.mark.slow
def test_both_forms_are_run_recorded_and_reported(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    found = profile("mlp", "--compiled", "--iterations", 5, "--json", "-", folder=tmp_path)
    assert found.returncode == 0, found.stderr
    folder = tmp_path / "traces" / "mlp-compiled"
    run = store.load(folder)
    check_run(folder, "mlp", provenance=True)
    assert all(len(form.wall_us) == 5 and form.device_us is None for form in run.forms)
    assert sorted(run.order) == ["compiled"] * 5 + ["eager"] * 5
    assert [path.name for path in (tmp_path / "traces").iterdir()] == ["mlp-compiled"]
    comparison = json.loads(found.stdout)
    assert comparison["schema"] == "tracekit.comparison/1"
    assert comparison["verdict"]["result"] in ("faster", "slower", "inconclusive")
    assert comparison["deltas"] == {"kernels": None, "launches": None, "busy_us": None, "idle_us": None}
    assert comparison["waterfall"] is None
    # What a run on a CPU cannot show is said.
    assert "CPU run" in found.stderr
    page = (tmp_path / "reports" / "mlp-compiled.html").read_text()
    assert "CPU run" in page and ("no kernel" in page or "no GPU kernels" in page)
    assert (tmp_path / "reports" / "mlp-compiled.md").is_file()
    phases = ["building mlp (tiny)", "eager warm-up", "compiling", "timing", "recording eager (light)"]
    positions = [found.stderr.index(phase) for phase in phases]
    assert positions == sorted(positions) and "USDT" not in found.stderr
    for form, fused in (("eager", False), ("compiled", True)):
        trace = read_trace(folder / f"{form}-light.json.gz")
        assert trace.host["name"].str.contains("cpp_fused").any() is fused
        assert trace.metadata["form"] == form


WARM = ("mlp", "--compiled", "--warmup", "batch=2")
BOTH = "would both be"


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        *((("mlp", option, value), 2, option) for option in ("--target", "--time-budget") for value in ("nan", "inf")),
        (("flx",), 1, "did you mean flux?"),
        (("flux", "--no-baseline"), 1, "pass --compiled"),
        (("flux", "--mode", "max-autotune", "--no-fullgraph"), 1, "--mode, --fullgraph"),
        (("flux", "--size", "huge"), 1, "has no size 'huge'"),
        (("flux", "--height", "100"), 1, "multiples of 16"),
        (("mlp", "--height", "224", "--steps", "2"), 1, "mlp has no --height and no --steps: leave them out"),
        (("hf:owner/model", "--steps", "2"), 1, "hf:owner/model has no --steps: leave it out"),
        (("nowhere.py:build",), 1, "nowhere.py"),
        (("flux", "--compiled", "--warmup", "hight=256"), 1, "did you mean height?"),
        (("mlp", "--compiled", "--warmup", "steps=2"), 1, "mlp has no steps"),
        (("flux", "--warmup", "batch=2"), 1, "pass --compiled"),
        ((*WARM, "--repeat-process", "2"), 1, "--warmup and --repeat-process"),
        *(((*WARM, each), 1, each) for each in ("--verify-advice", "--startup")),
        (("flux", "--json", "."), 1, "--json '.' is a folder"),
        (("flux", "--compiled", "--json", "reports/flux-compiled.html"), 1, f"--json and the page {BOTH}"),
        (("a.b:c", "--compiled", "--out", "x/y", "--json", "x/reports/y.md"), 1, f"--json and its twin {BOTH}"),
        (("flux", "--compiled", "--html", "x.html", "--json", "x.html"), 1, f"--json and the page {BOTH}"),
        (("flux", "--html", "x.md", "--json", "x.md"), 1, f"--json and its twin {BOTH}"),
        (("flux", "--pretrained", "a/b", "--size", "tiny"), 1, "leave --size out"),
        (("flux", "--compiled", "--out", "there"), 1, "pass --force"),
    ],
)
def test_a_wrong_request_is_one_line_before_anything_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], code: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    # Whatever is built or measured would be asked of it.
    monkeypatch.setattr("tracekit.measure.profiling.load_builder", None)
    make_run_folder(tmp_path, "there")
    before = sorted(tmp_path.rglob("*"))
    found = invoke("profile", *options)
    assert (found.exit_code, message in found.stderr) == (code, True), found.output
    assert code == 2 or len(found.stderr.strip().splitlines()) == 1
    assert sorted(tmp_path.rglob("*")) == before


#: Notes each call, of which so many as are asked for would take minutes.
COUNTED = """
import pathlib, time, torch

class Counted(torch.nn.Module):
    def forward(self, x):
        with pathlib.Path("calls").open("a") as file:
            file.write(".")
        time.sleep(0.01)
        return x

def build():
    return Counted().eval(), (torch.ones(1),)
"""


@pytest.mark.slow
def test_ctrl_c_while_timing_keeps_the_calls_that_were_timed(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "model.py").write_text(COUNTED)
    command = [sys.executable, "-m", "tracekit", "profile", "model.py:build", "--iterations", "20000"]
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(command, cwd=tmp_path, env=surroundings, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.endswith("timing ...\n"):
            break
    calls = tmp_path / "calls"
    before = calls.stat().st_size
    while calls.stat().st_size < before + 5:
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130, told
    run = store.load(tmp_path / "traces" / "model-build-eager.incomplete")
    assert run.status == "incomplete"
    assert len(run.forms[0].wall_us) > 0
    assert not (tmp_path / "traces" / "model-build-eager").exists()
    assert ".incomplete" in told and "Traceback" not in told


@pytest.fixture
def on_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In this process, in a folder of the test's own, without a GPU even where there is one."""
    pytest.importorskip("torch")
    monkeypatch.setattr("tracekit.measure.device.pick_device", lambda: "cpu")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("on_a_cpu")
def test_a_size_that_does_not_fit_is_one_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("diffusers")
    monkeypatch.setattr("tracekit.measure.device.free_memory_bytes", lambda _device: 8 * 2**30)
    found = invoke("profile", "flux", "--size", "full")
    (error,) = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    assert found.exit_code == 1 and "needs about 76 GiB of memory" in error
    assert "Traceback" not in found.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


MODEL = """
import torch
from torch import nn

print("hello from my model")
CALLS = []


def build(width: int = 16, last: int = 1000, recorded: bool = True, batch_size: int = 1):
    if not last:
        raise ValueError("told to fail")
    layer = nn.Linear(width, width).eval()
    if last == 1000 and recorded:
        return layer, (torch.randn(batch_size, width),)

    def call():
        CALLS.append(1)
        if len(CALLS) > last or (torch.autograd.profiler._is_profiler_enabled and not recorded):
            raise ValueError("one call too many")
        return layer(torch.ones(width))

    return call
"""


@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize(
    ("option", "phase", "said"),
    [
        ("last=0", "building", "my_model.py:build() raised ValueError: told to fail, at my_model.py:11 in build"),
        ("last=1", "eager warm-up", "a call of what my_model.py:build() returned raised ValueError: one call too many"),
        ("last=6", "timing", "a call of what my_model.py:build() returned raised ValueError: one call too many"),
        (
            "recorded=false",
            "recording eager",
            "a call of what my_model.py:build() returned raised ValueError: one call too many",
        ),
    ],
)
def test_what_a_file_or_any_later_call_raises_is_shown_as_theirs_with_exit_code_1(
    option: str, phase: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "my_model.py").write_text(MODEL)
    found = invoke("profile", "my_model.py:build", "--iterations", 3, "--", option)
    assert found.exit_code == 1
    progress, _, shown = found.stderr.partition("Traceback (most recent call last):")
    assert phase in progress
    lines = shown.splitlines()
    assert "my_model.py" in lines[1] and "tracekit" not in "".join(lines[:-1]).replace(str(tmp_path), "")
    assert lines[-1].startswith(f"error: {said}")
    assert phase != "building" or not list(tmp_path.glob("traces/*"))


@pytest.mark.slow
def test_an_own_model_is_profiled_reported_and_built_again_in_fresh_processes(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "my_model.py").write_text(MODEL)
    options = ("--compiled", "--iterations", 3, "--repeat-process", 1, "--json", "-", "--batch-size", 2)
    found = profile("my_model.py:build", *options, "--", "--width", 8, folder=tmp_path)
    assert found.returncode == 0, found.stderr
    comparison = json.loads(found.stdout)
    own = {
        "options": ["width=8"],
        "takes": ["batch_size", "width"],
        "in_program": False,
        "as_script": False,
        "training": [],
    }
    assert comparison["a"]["settings"]["own"] == own
    # Of a CPU run operators are matched, told by module and drawn.
    whole, matched = comparison["modules"], comparison["coverage"]
    parts = [each["total_us"] for group in comparison["groups"] for each in group["a"]]
    assert whole["a_us"] == pytest.approx(sum(parts)) and whole["children"]
    assert matched["a_time_matched"] > 0.9 and matched["b_time_matched"] > 0.9
    page = (tmp_path / "reports" / "my_model-build-compiled.html").read_text()
    assert all(
        each in page for each in ("Operator groups", "Outermost operators are coloured", "Operator time by module")
    )
    folder = tmp_path / "traces" / "my_model-build-compiled"
    run = store.load(folder)
    assert run.command.endswith("--batch-size 2 -- --width 8")
    assert all(form.timing is not None and len(form.timing.processes) == 1 for form in run.forms)
    assert "hello from my model" in (folder / store.OUTPUT).read_text()
    report = (tmp_path / "reports" / "my_model-build-compiled.md").read_text()
    assert "width=8" in report and "random weights" not in report
    for command, option in (("analyze", "--html"), ("compare", "--out"), ("export", "--csv")):
        again = invoke(command, folder, option, tmp_path / f"again-{command}.html")
        assert again.exit_code == 0, again.stderr


#: mlp has a test of its own; the others are built and called as one of those that are profiled.
ALIKE = (
    *("mlp", "gpt", "flux-schnell", "detr", "detr-resnet-101", "conditional-detr", "maskformer", "mask2former", "beit"),
    *("resnet", "convnext", "deeplabv3-mobilenet"),
)
#: What makes a call of a workload shorter and leaves its code.
LESS: dict[str, dict[str, Any]] = {
    "flux": {"height": 64, "width": 64},
    "qwen2.5-vl": {"max_new_tokens": 2},
}


def without_inductor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled by Dynamo alone, which finds every break: from an empty cache Inductor's C++ takes up to a minute for
    each of these models. With TRACEKIT_TEST_EVERY_KERNEL in the environment it is Inductor, as it is for mlp."""
    from tracekit.measure import forms

    options = forms.compile_options
    if not os.environ.get("TRACEKIT_TEST_EVERY_KERNEL"):
        monkeypatch.setattr(forms, "compile_options", lambda settings: {**options(settings), "backend": "eager"})


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize("name", [info.name for info in registry.all_workloads() if info.name not in ALIKE])
def test_both_forms_of_every_workload_are_run_recorded_compared_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for package in ("transformers", "diffusers", "scipy"):
        pytest.importorskip(package)
    without_inductor(monkeypatch)
    request = Request(name, size="tiny", iterations=2, **LESS.get(name, {}))
    folder = tmp_path / "traces" / f"{name}-compiled"
    profile_workload(Plan(request, ("eager", "compiled"), folder, False, f"profile {name}", provenance=False))
    check_run(folder, name, provenance=False)
    assert (tmp_path / "reports" / f"{name}-compiled.html").is_file()


def check_run(folder: Path, name: str, *, provenance: bool) -> None:
    """Whether the run holds all that one of both forms of this workload on a CPU can hold."""
    run = store.load(folder)
    assert run.status == "complete"
    assert (run.settings.workload, run.settings.size, run.settings.dtype) == (name, "tiny", "float32")
    assert [form.name for form in run.forms] == ["eager", "compiled"]
    assert all(len(form.wall_us) == run.settings.iterations and min(form.wall_us) > 0 for form in run.forms)
    assert all(bool(form.provenance) is provenance for form in run.forms)
    facts = run.forms[1].compilation
    assert facts is not None
    if registry.find(name).fullgraph:
        assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    else:
        assert facts.graphs > 1 and facts.graph_breaks > 0
    numerics = run.forms[1].numerics
    assert numerics is not None and numerics.against_eager is not None
    for output in numerics.against_eager.tensors:
        assert output.mismatch is None
        if output.max_abs is None or output.other_max is None:
            # Tokens, the first of which are the prompt.
            assert output.equal_share is not None and output.equal_share > 0.5
        else:
            assert not output.nonfinite
            assert output.max_abs <= 1e-3 * max(output.other_max, 1.0)
    for form in run.forms:
        assert len(form.recordings) == 2
        for recording in form.recordings:
            assert read_trace(folder / recording.path).host.height > 0
    codes = {"provenance_failed", "provenance_incomplete", "outputs_not_compared"}
    assert codes.isdisjoint(each.code for each in run.noted)


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
def test_a_decoding_step_of_qwen_is_one_graph_and_told_as_a_phase(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("transformers")
    without_inductor(monkeypatch)
    options = ("--compiled", "--phase", "decode", "--cache", "static", "--iterations", "2", "--no-provenance")
    found = invoke("profile", "qwen2.5-vl", *options)
    assert found.exit_code == 0, found.stderr
    run = store.load(tmp_path / "traces" / "qwen2.5-vl-compiled-decode-static")
    assert run.settings.generation is not None
    assert (run.settings.generation.phase, run.settings.generation.cache) == ("decode", "static")
    facts = run.forms[1].compilation
    assert facts is not None
    assert (facts.graphs, facts.graph_breaks, facts.during_timing) == (1, 0, 0)
    assert "decode" in found.output


@pytest.mark.slow
@pytest.mark.usefixtures("on_a_cpu")
@pytest.mark.parametrize(
    ("workload", "options", "run_name"),
    [
        ("hf:./model", ("--seq-length", "8"), "hf-model-compiled"),
        ("diffusers:model", ("--height", "64", "--width", "64"), "diffusers-model-compiled"),
    ],
)
def test_a_model_by_its_configuration_is_run_recorded_and_reported(
    workload: str, options: tuple[str, ...], run_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("transformers", "diffusers"):
        pytest.importorskip(package)
    from tests.workloads.configurations import save

    if workload.startswith("hf"):
        save("BertForMaskedLM", tmp_path / "model")
    else:
        save("FluxTransformer2DModel", tmp_path / "model")
    without_inductor(monkeypatch)
    asked = ("profile", workload, "--compiled", "--iterations", "3", "--no-provenance", *options)
    monkeypatch.setattr("sys.argv", ["tracekit", *asked])
    found = invoke(*asked)
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
        told = (tmp_path / "reports" / f"{run_name}.md").read_text()
        assert " · 8 tokens · " in told and "--seq-length 8" in told


@pytest.mark.usefixtures("on_a_cpu")
def test_a_configuration_that_is_not_here_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    found = invoke("profile", "hf:owner/model")
    assert found.exit_code == 1
    line = found.stderr.splitlines()[-1]
    assert line.startswith("error: the configuration of owner/model is not in the local Hugging Face cache")
    assert "pass --download to fetch it" in line
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
def test_the_next_command_keeps_the_settings_and_overwrites_no_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    folder: str,
    form: FormName,
    out: str | None,
) -> None:
    monkeypatch.chdir(tmp_path)
    place = make_run_folder(Path(folder).parent, Path(folder).name, forms=(form,))
    with edited(place) as manifest:
        manifest["settings"]["batch_size"] = 4
    report_run(place, None, force=False)
    command = " ".join(capsys.readouterr().out.split()).partition("Compare: ")[2]
    assert "--batch-size 4" in command and "--force" not in command
    assert (f"--out {out}" in command) if out else ("--out" not in command)


def test_a_run_of_one_variant_has_a_page_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = make_run_folder(Path("traces"), "flux-eager", forms=("eager",))
    report_run(place, None, force=False)
    assert not list(Path().rglob("*.html"))
    for page in (Path("pages"), Path("mine/of.html")):
        report_run(place, None, page=page, force=False)
    assert {str(page) for page in Path().rglob("*.html")} == {"pages/flux-eager.html", "mine/of.html"}
