"""What is told of a user's file or module before torch is loaded and any of it is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads.own_info import check_module, own_info


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_module_that_is_not_here_is_told_without_importing_anything() -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("raise SystemExit('nobody imports this')")
    for name in ("pkg.net:build", "math:sqrt", "sys:exit", "mine.py:build"):
        check_module(name)
    with pytest.raises(TracekitError, match=r"there is no module pkk\.net here \(.*\) nor among what is installed"):
        check_module("pkk.net:build")
    with pytest.raises(TracekitError, match=r"^there is no module hff here: did you mean hf:gpt2\?$"):
        check_module("hff:gpt2")


def test_the_nearest_file_is_named() -> None:
    Path("my_model.py").touch()
    Path("inner").mkdir()
    Path("inner/other.py").touch()
    with pytest.raises(TracekitError, match=r"did you mean my_model\.py:build\?"):
        own_info("my_modle.py:build")
    with pytest.raises(TracekitError, match=r"did you mean inner/other\.py:build\?"):
        own_info("inner/othr.py:build")
    with pytest.raises(TracekitError, match=r"name one as my_model\.py:build"):
        own_info("nowhere.py:build")


@pytest.mark.parametrize("name", ["nowhere.py:build", "nowhere.net:build"])
def test_what_is_not_there_loads_no_torch_and_comes_before_what_lies_in_the_run_s_folder(name: str) -> None:
    Path("traces/nowhere-build-eager").mkdir(parents=True)
    code = (
        "import sys\nfrom tracekit.cli.main import main\n"
        f"try:\n    main(['profile', {name!r}])\n"
        "except SystemExit as end:\n    print(end.code, 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.startswith("error: there is no ")
    assert found.stderr.count("\n") == 1
    assert found.stdout == "1 False\n"
