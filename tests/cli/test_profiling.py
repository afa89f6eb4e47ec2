"""The walk of `tracekit profile`, with a model of one layer in place of a real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.capture.conftest import Block, make_settings  # noqa: E402

from tracekit import store  # noqa: E402
from tracekit.capture import recording  # noqa: E402
from tracekit.cli import profiling  # noqa: E402
from tracekit.cli.profiling import Plan, profile_workload  # noqa: E402
from tracekit.model.workload import BuiltWorkload, CompileTarget, Request  # noqa: E402
from tracekit.workloads.flux_info import FLUX  # noqa: E402


def build(request: Request, _size: str, _device: str, _progress: Any) -> BuiltWorkload:
    block, x = Block().eval(), torch.randn(4, 8)
    return BuiltWorkload(FLUX, make_settings(), lambda: block(x), (CompileTarget("block", block),), (), ())


def plan(folder: Path, *, force: bool = False) -> Plan:
    request = Request(workload="flux", size="tiny", mode="default", batch_size=1, seed=0)
    return Plan(request, ("eager", "compiled"), folder, force, None, "tracekit profile flux --compiled")


@pytest.fixture(autouse=True)
def one_layer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(profiling, "load_builder", lambda _info: build)
    monkeypatch.setattr("tracekit.capture.device.pick_device", lambda: "cpu")
    monkeypatch.chdir(tmp_path)


def test_an_interrupt_while_recording_keeps_the_recordings_that_were_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = recording.record

    def interrupted(form: Any, kind: Any, steps: int, path: Path, progress: Any) -> Any:
        if kind == "light":
            return real(form, kind, steps, path, progress)
        path.write_text('{"half": ')
        raise KeyboardInterrupt

    monkeypatch.setattr(recording, "record", interrupted)
    with pytest.raises(KeyboardInterrupt):
        profile_workload(plan(tmp_path / "run"))
    draft = tmp_path / "run.incomplete"
    kept = store.load(draft).forms[0]
    assert [each.kind for each in kept.recordings] == ["light"]
    assert store.recording_path(draft, kept, "light").is_file()
    left = {path.name for path in draft.iterdir()} - {store.OUTPUT}
    assert left == {"run.json", "eager-light.json.gz"}


def test_a_whole_run_holds_every_recording_and_nothing_hidden(tmp_path: Path) -> None:
    profile_workload(plan(tmp_path / "run"))
    run = store.load(tmp_path / "run")
    assert [[each.kind for each in form.recordings] for form in run.forms] == [["light", "rich"]] * 2
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith(".")]
