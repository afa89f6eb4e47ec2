"""What the files of real weights say of their size, before they are loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("huggingface_hub")

from tracekit.workloads import saved_weights
from tracekit.workloads.saved_weights import count_saved


def safetensors(path: Path, *shapes: tuple[int, ...]) -> None:
    """A file of that format without its numbers."""
    header: dict[str, Any] = {f"t{n}": {"dtype": "BF16", "shape": shape} for n, shape in enumerate(shapes)}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def test_the_numbers_of_a_model_s_file_are_counted(tmp_path: Path) -> None:
    safetensors(tmp_path / "model.safetensors", (3, 4), (5,), ())
    safetensors(tmp_path / "model.fp16.safetensors", (1000,))
    assert count_saved(str(tmp_path)) == 18


def test_of_several_files_those_of_the_index_count(tmp_path: Path) -> None:
    for number in (1, 2):
        safetensors(tmp_path / f"model-{number}.safetensors", (10,))
    safetensors(tmp_path / "consolidated.safetensors", (1000,))
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors", "c": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert count_saved(str(tmp_path)) == 20
    (tmp_path / "model-2.safetensors").unlink()
    assert count_saved(str(tmp_path)) is None, "half of it is not here"


def test_of_a_pipeline_its_models_count_and_not_the_file_beside_them(tmp_path: Path) -> None:
    (tmp_path / "model_index.json").write_text("{}")
    safetensors(tmp_path / "flux1-dev.safetensors", (1000,))
    safetensors(tmp_path / "transformer" / "diffusion_pytorch_model.safetensors", (7,))
    safetensors(tmp_path / "vae" / "diffusion_pytorch_model.safetensors", (2,))
    (tmp_path / "scheduler").mkdir()
    assert count_saved(str(tmp_path)) == 9


def test_what_the_cache_holds_of_a_repository_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = tmp_path / "snapshots" / "abc"
    safetensors(snapshot / "model.safetensors", (6,))
    monkeypatch.setattr(
        "huggingface_hub.try_to_load_from_cache",
        lambda source, name: str(snapshot / name) if (source, name) == ("owner/model", "config.json") else None,
    )
    assert count_saved("owner/model") == 6
    assert count_saved("owner/other") is None


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, b"\x02" + b"\0" * 7 + b"[}"])
def test_what_is_no_such_file_is_not_known(tmp_path: Path, content: bytes) -> None:
    assert count_saved(str(tmp_path)) is None
    (tmp_path / "model.safetensors").write_bytes(content)
    assert count_saved(str(tmp_path)) is None
    assert saved_weights.count_saved("no name of a repository!") is None


def test_pickles_do_not_tell(tmp_path: Path) -> None:
    (tmp_path / "pytorch_model.bin").write_bytes(b"pickled")
    assert count_saved(str(tmp_path)) is None
