"""`tracekit profile` as a user runs it: a small model on the CPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tracekit import store
from tracekit.tracefile import read_trace

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tracekit", "profile"]


def environment() -> dict[str, str]:
    # Without a GPU even where there is one: what is tested here is the CPU's path.
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2", "CUDA_VISIBLE_DEVICES": ""}


def profile(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *options], cwd=folder, env=environment(), capture_output=True, text=True, timeout=400, check=False
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("compiled")
    return folder, profile(folder, "mlp", "--compiled", "--iterations", "5", "--json", "-")


@pytest.mark.slow
def test_both_forms_are_run_recorded_and_reported(compiled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, found = compiled
    assert found.returncode == 0, found.stderr
    run = store.load(folder / "traces" / "mlp-compiled")
    assert run.status == "complete"
    assert [form.name for form in run.forms] == ["eager", "compiled"]
    assert all(len(form.wall_us) == 5 and form.device_us is None for form in run.forms)
    assert sorted(run.order) == ["compiled"] * 5 + ["eager"] * 5
    assert (folder / "reports" / "mlp-compiled.html").is_file()
    assert (folder / "reports" / "mlp-compiled.md").is_file()
    assert [path.name for path in (folder / "traces").iterdir()] == ["mlp-compiled"]


@pytest.mark.slow
def test_standard_output_holds_the_json_alone(compiled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _folder, found = compiled
    comparison = json.loads(found.stdout)
    assert comparison["schema"] == "tracekit.comparison/1"
    assert comparison["verdict"]["result"] in ("faster", "slower", "inconclusive")
    assert comparison["deltas"] == {"kernels": None, "launches": None, "busy_us": None, "idle_us": None}
    assert comparison["waterfall"] is None


@pytest.mark.slow
def test_what_a_cpu_run_cannot_show_is_said(compiled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, found = compiled
    assert "mlp at size tiny: there is no GPU here" in found.stderr
    assert "This is a CPU run" in found.stderr
    page = (folder / "reports" / "mlp-compiled.html").read_text()
    assert "CPU run" in page
    assert "no kernel" in page or "no GPU kernels" in page


@pytest.mark.slow
def test_progress_names_every_phase(compiled: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    _folder, found = compiled
    phases = ["building mlp (tiny)", "eager warm-up", "compiling", "timing", "recording eager (light)"]
    positions = [found.stderr.index(phase) for phase in phases]
    assert positions == sorted(positions)
    assert "USDT" not in found.stderr


@pytest.mark.slow
def test_compiled_recordings_show_fused_kernels_and_eager_ones_do_not(
    compiled: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _found = compiled
    for form, fused in (("eager", False), ("compiled", True)):
        trace = read_trace(folder / "traces" / "mlp-compiled" / f"{form}-light.json.gz")
        assert trace.host["name"].str.contains("cpp_fused").any() is fused
        assert trace.metadata["form"] == form


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


@pytest.mark.parametrize("option", ["--target", "--time-budget"])
@pytest.mark.parametrize("value", ["nan", "inf"])
def test_what_is_no_number_is_no_target_and_no_budget(tmp_path: Path, option: str, value: str) -> None:
    found = profile(tmp_path, "mlp", option, value)
    assert found.returncode == 2
    assert option in found.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["flx"], "did you mean flux?"),
        (["flux", "--no-baseline"], "--no-baseline says how to compile: pass --compiled too"),
        (["flux", "--mode", "max-autotune", "--no-fullgraph"], "--mode, --fullgraph says how to compile"),
        (["flux", "--size", "huge"], "has no size 'huge'"),
        (["flux", "--height", "100"], "multiples of 16"),
        (["flux", "--compiled", "--warmup", "hight=256"], "did you mean height?"),
        (["mlp", "--compiled", "--warmup", "steps=2"], "mlp has no steps to warm up at"),
        (["flux", "--warmup", "batch=2"], "--warmup says how to compile"),
        (
            ["mlp", "--compiled", "--warmup", "batch=2", "--repeat-process", "2"],
            "--repeat-process in others that warm up as usual",
        ),
        (
            ["mlp", "--compiled", "--warmup", "batch=2", "--verify-advice"],
            "--verify-advice in others that warm up as usual",
        ),
        (["mlp", "--compiled", "--warmup", "batch=2", "--startup"], "--startup in others that warm up"),
        (["flux", "--json", "."], "--json '.' is a folder"),
        (
            ["flux", "--compiled", "--json", "reports/flux-compiled.html"],
            "--json and the page would both be written to",
        ),
        (["a.b:c", "--compiled", "--out", "x/y", "--json", "x/reports/y.md"], "--json and its twin would both be"),
        (["flux", "--pretrained", "a/b", "--size", "tiny"], "real weights have a size of their own"),
    ],
)
def test_a_wrong_request_is_one_line_before_anything_is_loaded(
    tmp_path: Path, options: list[str], message: str
) -> None:
    found = profile(tmp_path, *options)
    assert found.returncode == 1
    assert message in found.stderr
    assert len(found.stderr.strip().splitlines()) == 1
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["flux", "--size", "full"], "needs about 76 GiB of memory"),
    ],
)
def test_a_request_the_workload_refuses_is_one_error_and_leaves_nothing(
    tmp_path: Path, options: list[str], message: str
) -> None:
    pytest.importorskip("diffusers")
    found = profile(tmp_path, *options)
    assert found.returncode == 1
    errors = [line for line in found.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert message in errors[0]
    assert "Traceback" not in found.stderr
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_run_that_is_there_is_kept_before_anything_is_loaded(tmp_path: Path) -> None:
    from tests.cli.runs import make_run_folder

    (tmp_path / "traces").mkdir()
    make_run_folder(tmp_path / "traces", "flux-compiled")
    found = profile(tmp_path, "flux", "--compiled")
    assert found.returncode == 1
    assert "already there; pass --force" in found.stderr
