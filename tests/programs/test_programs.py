"""Ten programs that know nothing of tracekit, unchanged, at tiny size on a CPU."""

import json
import os
from pathlib import Path

import pytest
from tests.programs.running import PROGRAMS, run

from tracekit import store

pytestmark = pytest.mark.slow
#: The others take two minutes together, of compiling: ALL_PROGRAMS=1 runs them too.
ALWAYS = ("train", "story")


@pytest.mark.parametrize(
    ("name", "steps", "step", "kind", "last"),
    [
        ("train", "400", None, "ended by an optimizer's step", "trained"),
        ("accumulate", "400", None, "ended by an optimizer's step", "trained"),
        ("hf_trainer", "400", None, "ended by an optimizer's step", "trained"),
        ("accelerate_loop", "900", None, "ended by an optimizer's step", "trained"),
        ("story", "400", "function:__main__:Painter.batch_infer", "a call of that function", "painted"),
        ("generate", "50", None, "a call of what is compiled", "generated"),
        ("regional", "2500", None, "a call of what is compiled", "inferred"),
        ("compiled_step", "1200", None, "a call of what is compiled", "trained"),
        ("shapes", "1500", None, "a call of what is compiled", "inferred"),
        ("server", "2500", None, "a call of what is compiled", "answered"),
    ],
)
def test_a_program_is_run_and_measured(
    name: str, steps: str, step: str | None, kind: str, last: str, tmp_path: Path
) -> None:
    if name not in ALWAYS and not os.environ.get("ALL_PROGRAMS"):
        pytest.skip("ALL_PROGRAMS=1 runs it")
    options = ("--json", "it.json", *(("--step", step) if step else ()))
    ended = run(tmp_path, PROGRAMS / f"{name}.py", steps, options=options)
    assert ended.returncode == 0, ended.stderr[-2000:]
    # Standard output is the program's alone, to its end.
    assert "tracekit" not in ended.stdout and ended.stdout.splitlines()[-1].startswith(last)
    assert f", each {kind}; step 1 took " in ended.stderr
    measured = store.load(tmp_path / "traces" / "it")
    assert measured.status == "complete"
    assert [form.name for form in measured.forms] == ["eager", "compiled"]
    for form in measured.forms:
        assert len(form.wall_us) >= 5
        assert {recording.kind for recording in form.recordings} == {"light", "rich"}
    compiled = measured.form("compiled")
    assert compiled is not None and compiled.compilation is not None and compiled.compilation.graphs >= 1
    verdict = json.loads((tmp_path / "it.json").read_text())["verdict"]
    assert verdict["speedup"] > 0
    assert (tmp_path / "reports" / "it.html").is_file()
