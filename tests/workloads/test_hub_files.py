"""Folders, the cache, what Hugging Face answers, and what files of weights say of their size; without a network."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

pytest.importorskip("huggingface_hub")
torch = pytest.importorskip("torch")

from huggingface_hub import errors as hub  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads import hub_files  # noqa: E402
from tracekit.workloads.building import load_pretrained  # noqa: E402
from tracekit.workloads.hub_files import count_saved, find_file, find_optional  # noqa: E402

CONFIG = ("config.json",)


def hub_error(kind: type[Exception]) -> Exception:
    # Their constructors want an HTTP response; only their kind matters here.
    return kind.__new__(kind)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache that holds the configuration of owner/model, and knows that it has no preprocessor."""
    folder = tmp_path / "cache"
    repository = folder / "models--owner--model"
    snapshot = repository / "snapshots" / "abc"
    for each in (snapshot, repository / "refs", repository / ".no_exist" / "abc"):
        each.mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (snapshot / "config.json").write_text("{}")
    (repository / ".no_exist" / "abc" / "preprocessor_config.json").touch()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(folder))
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def hugging_face(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Answers with its `side_effect`, beside that cache."""
    asked = Mock()
    monkeypatch.setattr(hub_files, "hf_hub_download", asked)
    return asked


def test_a_cached_configuration_is_found_and_nobody_is_asked(hugging_face: Mock) -> None:
    for download in (False, True):
        assert find_file("owner/model", CONFIG, download=download).name == "config.json"
        assert find_optional("owner/model", "preprocessor_config.json", download=download) is None
    hugging_face.assert_not_called()


def test_what_is_not_cached_is_not_downloaded_unasked(hugging_face: Mock) -> None:
    with pytest.raises(TracekitError, match=r"owner/other is not in the local .* cache: pass --download") as caught:
        find_file("owner/other", CONFIG, download=False)
    assert "\n" not in str(caught.value)
    assert find_optional("owner/other", "preprocessor_config.json", download=False) is None
    hugging_face.assert_not_called()


def test_with_download_the_first_file_that_there_is_is_fetched(hugging_face: Mock) -> None:
    missing = hub_error(hub.RemoteEntryNotFoundError)
    hugging_face.side_effect = [missing, "fetched.json", missing]
    names = ["model_index.json", "config.json"]
    assert find_file("owner/other", names, download=True) == Path("fetched.json")
    assert [each.args[1] for each in hugging_face.call_args_list] == names
    assert find_optional("owner/other", "preprocessor_config.json", download=True) is None


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (hub_error(hub.GatedRepoError), r"owner/other is gated: accept its licence .* then `hf auth login`"),
        (hub_error(hub.RepositoryNotFoundError), "owner/other .*check the name"),
        (hub.OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set: unset it, or pass a folder"),
        (hub.LocalEntryNotFoundError("nothing"), "huggingface.co cannot be reached: check the network"),
        (hub.HFValidationError("Repo id must be so"), "cannot load owner/other: Repo id must be so"),
        (OSError("No space left on device"), "cannot load owner/other: No space left on device"),
        (hub_error(hub.RemoteEntryNotFoundError), "owner/other holds no config.json"),
    ],
)
def test_a_configuration_that_cannot_be_fetched_is_one_line_with_what_to_do(
    error: Exception, message: str, hugging_face: Mock
) -> None:
    hugging_face.side_effect = error
    with pytest.raises(TracekitError, match=message) as caught:
        find_file("owner/other", CONFIG, download=True)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["./nothing", "/no/such/folder", "a/b/c", "../up"])
def test_what_is_neither_folder_nor_repository_is_refused_at_once(source: str, cache: Path) -> None:
    with pytest.raises(TracekitError, match="owner/model"):
        find_file(source, CONFIG, download=True)


def test_a_folder_comes_before_a_repository_of_that_name_and_says_what_it_lacks(cache: Path) -> None:
    here = cache.parent / "owner" / "model"
    here.mkdir(parents=True)
    with pytest.raises(TracekitError, match=r"holds no model_index.json and no config.json"):
        find_file("owner/model", ("model_index.json", "config.json"), download=False)
    (here / "config.json").write_text("{}")
    assert find_file("owner/model", CONFIG, download=False) == Path("owner/model/config.json")


def safetensors(path: Path, *shapes: tuple[int, ...]) -> None:
    """A file of that format without its numbers."""
    header: dict[str, Any] = {f"t{n}": {"dtype": "BF16", "shape": shape} for n, shape in enumerate(shapes)}
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(len(text).to_bytes(8, "little") + text)


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


def test_what_the_cache_holds_of_a_repository_is_counted(cache: Path) -> None:
    snapshot = cache / "models--owner--model" / "snapshots" / "abc"
    safetensors(snapshot / "model.safetensors", (3, 4), (5,), ())
    safetensors(snapshot / "model.fp16.safetensors", (1000,))
    assert count_saved("owner/model") == 18
    assert count_saved("owner/other") is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("model.safetensors", b""),
        ("model.safetensors", b"\xff" * 16),
        ("model.safetensors", b"\x02" + b"\0" * 7 + b"[}"),
        ("pytorch_model.bin", b"pickled"),
    ],
)
def test_what_is_no_such_file_is_not_known(tmp_path: Path, name: str, content: bytes) -> None:
    assert count_saved(str(tmp_path)) is None
    (tmp_path / name).write_bytes(content)
    assert count_saved(str(tmp_path)) is None
    assert count_saved("no name of a repository!") is None


@pytest.mark.parametrize(
    ("source", "cause", "message"),
    [
        ("owner/model", hub.OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        ("owner/model", None, "No route to host; "),
        ("model", None, "neither a folder"),
        ("a/b/c", None, "neither a folder"),
    ],
)
def test_weights_that_cannot_be_had_are_one_line(source: str, cause: Exception | None, message: str) -> None:
    class Failing:
        def from_pretrained(self, _source: str, **_: Any) -> None:
            raise OSError("No route to host (stack trace above)\nmore") from cause

    with pytest.raises(TracekitError, match=message) as caught:
        load_pretrained(Failing(), source, torch.float32)
    assert "\n" not in str(caught.value)
