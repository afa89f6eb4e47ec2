from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads import registry
from tracekit.workloads.listed import FLUX


def test_a_misspelt_workload_is_met_with_the_nearest_name() -> None:
    with pytest.raises(TracekitError, match="did you mean flux"):
        registry.find("flx")


def test_an_unknown_workload_is_met_with_the_list() -> None:
    with pytest.raises(TracekitError, match="there is flux"):
        registry.find("qqqqqq")


def test_names_of_a_scope_are_cleared_of_spaces_and_repetition() -> None:
    assert registry.check_scope(FLUX, "transformer, vae.decoder,transformer") == "transformer,vae.decoder"


def test_a_scope_with_an_empty_name_is_refused() -> None:
    with pytest.raises(TracekitError, match="names nothing at one place"):
        registry.check_scope(FLUX, "transformer,,vae")


def test_the_default_scope_is_the_first() -> None:
    assert registry.check_scope(FLUX, None) == "transformer"


def test_a_missing_package_names_the_extra_to_install() -> None:
    broken = replace(FLUX, module="a_package_that_is_not_there.flux")
    with pytest.raises(TracekitError, match=r"pip install -c constraints.txt '\.\[profile\]'"):
        registry.load_builder(broken)


def test_listing_imports_no_torch() -> None:
    code = "import sys, tracekit.workloads.registry as r; r.all_workloads(); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("fluxx", "did you mean flux?"),
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
    assert f"no workload is called {asked!r}: {meant}" in str(caught.value)


@pytest.mark.parametrize("name", ["hf:google/vit-base-patch16-224", "diffusers:./folder"])
def test_a_prefix_stands_for_any_model(name: str) -> None:
    info = registry.find(name)
    assert info.name == name
    assert {"pretrained", "download", "seq_length"} <= set(info.takes)
    assert info.memory_gib == {}


@pytest.mark.parametrize("name", ["hf:", "diffusers:"])
def test_a_prefix_alone_names_no_model(name: str) -> None:
    with pytest.raises(TracekitError, match=f"{name} names no model: write {name}"):
        registry.find(name)


def test_the_docs_name_every_workload() -> None:
    text = (Path(__file__).parents[2] / "docs" / "workloads.md").read_text(encoding="utf-8")
    assert [info.name for info in registry.all_workloads() if f"`{info.name}`" not in text] == []
