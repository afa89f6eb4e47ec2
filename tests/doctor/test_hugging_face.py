from __future__ import annotations

import pytest

from tracekit.doctor.hugging_face import check_token

huggingface_hub = pytest.importorskip("huggingface_hub")


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def test_the_token_itself_is_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_thisIsSecret")
    found = check_token()
    assert found.status == "ok"
    assert "thisIsSecret" not in repr(found)


def test_no_token_limits_only_gated_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    found = check_token()
    assert (found.status, found.fix) == ("warning", "hf auth login")


def test_being_offline_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert check_token().fix == "unset HF_HUB_OFFLINE"
