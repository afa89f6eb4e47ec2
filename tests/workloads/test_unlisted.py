"""Names of models that are not in the list, before torch is loaded and any of a user's code is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads.unlisted import check_module, find_own, is_own


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_module_that_is_not_here_is_found_without_importing_anything() -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("raise SystemExit('nobody imports this')")
    for name in ("pkg.net:build", "math:sqrt", "sys:exit", "mine.py:build"):
        check_module(name)
    with pytest.raises(TracekitError, match=r"there is no module pkk\.net here \(.*\) nor among what is installed"):
        check_module("pkk.net:build")
    with pytest.raises(TracekitError, match=r"^there is no module hff here: did you mean hf:gpt2\?$"):
        check_module("hff:gpt2")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_modle.py:build", r"did you mean my_model\.py:build\?"),
        ("inner/othr.py:build", r"did you mean inner/other\.py:build\?"),
        ("nowhere.py:build", r"there is no file nowhere\.py .*: name one as my_model\.py:build"),
        ("my_model.py", r"as in my_model\.py:build"),
    ],
)
def test_the_nearest_file_is_named(name: str, message: str) -> None:
    Path("my_model.py").touch()
    Path("inner").mkdir()
    Path("inner/other.py").touch()
    with pytest.raises(TracekitError, match=message):
        find_own(name)


def test_names_of_own_models_are_known_from_others() -> None:
    assert all(map(is_own, ("my_model.py:build", "a/b.py:f", "package.module:build", "package:build", "my_model.py")))
    assert not any(map(is_own, ("flux", "qwen2.5-vl", "hf:gpt2", "hf:org/name", "diffusers:org/name")))


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
