"""Which workload is meant, and what is known to keep it from being built before anything is."""

import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads import registry
from tracekit.workloads.registry import FLUX
from tracekit.workloads.unlisted import check_module, is_own

OWN = """
def build(layers: int = 2):
    raise AssertionError("nobody builds it")
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my_model.py").write_text(OWN)


def test_names_of_a_scope_are_cleared_of_spaces_and_repetition() -> None:
    assert registry.check_scope(FLUX, "transformer, vae.decoder,transformer") == "transformer,vae.decoder"
    assert registry.check_scope(FLUX, None) == "transformer"
    with pytest.raises(TracekitError, match="--scope"):
        registry.check_scope(FLUX, "transformer,,vae")


@pytest.mark.parametrize(("name", "package"), [("flux", "diffusers"), ("mask2former", "scipy")])
def test_a_package_that_is_missing_is_named(name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tracekit.workloads.transformers_forward")
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "tracekit.workloads.flux", raising=False)
    with pytest.raises(TracekitError, match=rf"{name} needs the package {package}, .*constraints.txt '\.\[profile\]'"):
        registry.load_builder(registry.find(name))
    raised = Mock(side_effect=ModuleNotFoundError("no sound\nwithout it"))
    monkeypatch.setattr(registry.importlib, "import_module", raised)
    with pytest.raises(TracekitError, match=r"needs a package \(ModuleNotFoundError: no sound without it\), which"):
        registry.load_builder(registry.find(name))


def test_listing_imports_no_torch() -> None:
    code = "import sys, tracekit.workloads.registry as r; r.all_workloads(); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("flx", "did you mean flux?"),
        ("qqqqqq", "pass one of flux, "),
        ("schnell", "did you mean flux-schnell?"),
        ("qwen", "did you mean qwen2.5-vl?"),
        ("Qwen2-VL", "did you mean qwen2.5-vl?"),
        ("gemma-2b", "did you mean causal-lm?"),
        ("llama", "did you mean causal-lm?"),
        ("detr-101", "did you mean detr or detr-resnet-101?"),
        ("deeplabv3", "did you mean deeplabv3-mobilenet?"),
        ("stable-diffusion-xl", "did you mean sdxl?"),
        ("google/vit-base", "did you mean hf:google/vit-base or diffusers:google/vit-base?"),
    ],
)
def test_what_was_meant_is_guessed(asked: str, meant: str) -> None:
    with pytest.raises(TracekitError) as caught:
        registry.find(asked)
    assert f"{asked!r}: {meant}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hf:", "hf: names no model: write hf:"),
        ("diffusers:", "diffusers: names no model: write diffusers:"),
        ("my_modle.py:build", "did you mean my_model.py:build?"),
        ("inner/othr.py:build", "did you mean inner/other.py:build?"),
        ("nowhere.py:build", "pass one as my_model.py:build"),
        ("my_model.py", "as in my_model.py:build"),
    ],
)
def test_half_a_name_and_a_file_that_is_not_there_are_met_with_what_to_write(name: str, message: str) -> None:
    Path("inner").mkdir()
    Path("inner/other.py").touch()
    with pytest.raises(TracekitError) as caught:
        registry.find(name)
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["hf:google/vit-base-patch16-224", "diffusers:./folder"])
def test_a_prefix_stands_for_any_model(name: str) -> None:
    info = registry.find(name)
    assert (info.name, info.memory_gib) == (name, {})
    assert {"pretrained", "download", "seq_length"} <= set(info.takes)


def test_the_docs_name_every_workload() -> None:
    text = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")
    assert [info.name for info in registry.all_workloads() if f"`{info.name}`" not in text] == []


def test_a_module_that_is_not_here_is_found_without_importing_anything() -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("raise SystemExit('nobody imports this')")
    for name in ("pkg.net:build", "math:sqrt", "sys:exit", "mine.py:build"):
        check_module(name)
    with pytest.raises(TracekitError, match=r"pkk\.net"):
        check_module("pkk.net:build")
    with pytest.raises(TracekitError, match=r"did you mean hf:gpt2\?$"):
        check_module("hff:gpt2")


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
    assert found.stderr.startswith("error: ") and name.partition(":")[0] in found.stderr
    assert found.stderr.count("\n") == 1
    assert found.stdout == "1 False\n"
