"""What models are made of that their owners change."""

import hashlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tracekit.model.cell import Source
from tracekit.workloads.unlisted import find_changed, read_sources


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(monkeypatch: pytest.MonkeyPatch, name: str, path: Path, text: str) -> None:
    """As if the file had been imported."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    module = ModuleType(name)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, name, module)


def test_of_an_own_model_every_file_of_its_users_that_was_loaded(
    here: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(monkeypatch, "own_my_model", here / "my_model.py", "model")
    load(monkeypatch, "blocks.linear", here / "blocks" / "linear.py", "linear")
    load(monkeypatch, "installed", here / "venv" / "lib" / "site-packages" / "installed.py", "library")
    (here / "unused.py").write_text("unused")
    assert read_sources("my_model.py:build") == (
        Source("blocks/linear.py", digest("linear")),
        Source("my_model.py", digest("model")),
    )
    # Files beside a model elsewhere have their whole path.
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    other = tmp_path_factory.mktemp("other")
    load(monkeypatch, "own_far", other / "far.py", "far")
    assert read_sources(f"{other}/far.py:build") == (Source(str(other / "far.py"), digest("far")),)


def test_what_changed_is_named_and_what_is_gone_from_here(here: Path) -> None:
    (here / "same.py").write_text("same")
    (here / "edited.py").write_text("new")
    sources = [Source(name, digest("same")) for name in ("same.py", "edited.py", "gone.py", "/nowhere/far.py")]
    assert find_changed("same.py:build", sources) == ("edited.py", "gone.py")


def test_of_a_configuration_each_file_is_known_by_its_name(here: Path) -> None:
    pytest.importorskip("huggingface_hub")
    (here / "model" / "vae").mkdir(parents=True)
    for name in ("model_index.json", "vae/config.json", "weights.bin"):
        (here / "model" / name).write_text(name)
    found, alone = read_sources("diffusers:model"), read_sources("hf:model/vae/config.json")
    assert [each.name for each in found] == ["model_index.json", "vae/config.json"]
    assert alone == (Source("config.json", digest("vae/config.json")),)
    assert find_changed("diffusers:model", found) == ()
    (here / "model" / "vae" / "config.json").write_text("{}")
    (here / "model" / "config.json").write_text("{}")
    assert find_changed("diffusers:model", found) == ("vae/config.json", "config.json")
    assert find_changed("hf:model/vae/config.json", alone) == ("config.json",)
    assert find_changed("hf:nobody/has-this", alone) == (), "of what is not on this machine nothing is said"


def test_workloads_of_the_list_are_made_of_nobodys_files() -> None:
    assert read_sources("vit") == find_changed("vit", ()) == ()
