"""What is known to keep a workload from being built, before anything is."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from tests.workloads.configurations import save_transformers

from tracekit.errors import TheirCodeError, TracekitError
from tracekit.model.workload import Request
from tracekit.workloads.checking import check_buildable

OWN = """
raise_now = {raises}
if raise_now:
    raise ValueError("while importing")

def build(layers: int = 2):
    raise AssertionError("nobody builds it")
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_model.py").write_text(OWN.format(raises=False))
    return tmp_path / "my_model.py"


def test_what_can_be_built_passes(own: Path, tmp_path: Path) -> None:
    configuration = save_transformers("BertForMaskedLM", tmp_path)
    for request in (
        Request("mlp"),
        Request("mlp", scope="all"),
        Request(f"hf:{configuration}", seq_length=8, scope="model.bert.encoder"),
        Request("my_model.py:build", options=("layers=3",)),
    ):
        check_buildable(request)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("mlp", scope="nonsense"), "nothing called 'nonsense'"),
        (Request("hf:nobody/has-this"), "pass --download to fetch it"),
        (Request("my_model.py:build", options=("layerz=3",)), "did you mean layers"),
        (Request("my_model.py:build", options=("layers=2,4",)), "layers=2,4 is not what it takes"),
        (Request("my_model.py:build", batch_size=2), "takes no batch_size"),
        (Request("my_model.py:make"), "no function 'make'"),
    ],
)
def test_what_keeps_it_from_being_built_is_an_error(own: Path, request_: Request, message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        check_buildable(request_)


def test_a_part_that_a_configured_model_has_not_is_an_error(tmp_path: Path) -> None:
    configuration = save_transformers("BertForMaskedLM", tmp_path)
    with pytest.raises(TracekitError, match=r"did you mean model\.bert\.encoder"):
        check_buildable(Request(f"hf:{configuration}", seq_length=8, scope="bert.encodr"))


def test_what_a_users_file_raises_is_theirs(own: Path) -> None:
    own.write_text(OWN.format(raises=True))
    with pytest.raises(TheirCodeError, match=r"importing my_model\.py raised ValueError") as caught:
        check_buildable(Request("my_model.py:build"))
    assert "while importing" in caught.value.traceback


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "diffusers", None)
    monkeypatch.delitem(sys.modules, "tracekit.workloads.flux", raising=False)
    with pytest.raises(TracekitError, match="flux needs the package diffusers"):
        check_buildable(Request("flux"))
