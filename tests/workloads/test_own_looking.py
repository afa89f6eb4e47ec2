"""What is told of a user's file before torch is loaded and any of it is run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads.own_info import own_info
from tracekit.workloads.own_looking import look_at


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def look(code: str, *options: str, name: str = "mine.py:build") -> None:
    Path("mine.py").write_text(f"raise SystemExit('nobody runs this')\n{code}\n")
    look_at(name, options)


def refused(code: str, *options: str, name: str = "mine.py:build") -> str:
    with pytest.raises(TracekitError) as caught:
        look(code, *options, name=name)
    return str(caught.value)


def test_a_function_that_is_not_there_is_met_with_the_nearest_or_all() -> None:
    assert refused("def biuld(): ...") == "mine.py has no function 'build': did you mean biuld?"
    assert refused("def one(): ...\ndef two(): ...").endswith("it has one, two")
    assert "it has none at all" in refused("x = 1")
    assert refused("def build(:").startswith("mine.py, line 2 is no Python")


@pytest.mark.parametrize(
    "code",
    [
        "async def build(): ...",
        "from elsewhere import made as build",
        "import build",
        "build = make(3)",
        "one, (build, *rest) = make()",
        "if x:\n  def build(): ...",
        "try:\n  pass\nexcept OSError:\n  build = 3",
        "from elsewhere import *",
        "def __getattr__(name): ...",
        "globals()['build'] = 3",
        "class build: ...",
    ],
)
def test_what_may_be_there_once_the_file_is_run_is_left_for_then(code: str) -> None:
    look(code, "any=1")


def test_options_that_it_does_not_take_are_told_with_those_that_it_does() -> None:
    code = "def build(layers: int = 2, *, width: 'int' = WIDE * 2, path: Path = None, batch_size=1): ..."
    told = refused(code, "layrs=3")
    assert told == (
        "mine.py:build takes no layrs: did you mean layers? It takes layers (int, 2), width (int, WIDE * 2), path"
        " (Path, None)"
    )
    look(code, "layers=3", "width=4", "path=x")
    assert "layers=two is not what it takes: say a whole number" in refused(code, "layers=two")
    assert "pass --batch-size before the --" in refused(code, "batch_size=2")
    assert "needs depth: pass it after --" in refused("def build(depth, seed): ...")
    look("def build(**options): ...", "any=1")
    look("@decorated\ndef build(): ...", "any=1")


def test_a_module_is_found_without_importing_what_holds_it() -> None:
    for folder in (Path("pkg"), Path("pkg/sub")):
        folder.mkdir()
        (folder / "__init__.py").write_text("raise SystemExit('nobody imports this')")
    Path("pkg/sub/net.py").write_text("def build(): ...")
    look_at("pkg.sub.net:build", ())
    assert refused("", name="pkg.sub.net:buid").startswith("pkg.sub.net has no function 'buid': did you mean build?")
    assert "there is no module pkg.sub.nett here" in refused("", name="pkg.sub.nett:build")
    assert refused("", name="hff:gpt2") == "there is no module hff here: did you mean hf:gpt2?"
    # What is written in C cannot be read.
    look_at("math:sqrt", ())
    look_at("sys:exit", ())


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


def test_looking_loads_no_torch_and_comes_before_what_lies_in_the_run_s_folder() -> None:
    Path("mine.py").write_text("def build(width: int = 2): ...")
    Path("traces/mine-build-eager").mkdir(parents=True)
    code = (
        "import sys\nfrom tracekit.cli.main import main\n"
        "try:\n    main(['profile', 'mine.py:build', '--', 'widht=3'])\n"
        "except SystemExit as end:\n    print(end.code, 'torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "takes no widht: did you mean width?" in found.stderr
    assert found.stdout == "1 False\n"
