from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tracekit.cli.profile import _next_command

from ..sides import make_form, make_run


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
