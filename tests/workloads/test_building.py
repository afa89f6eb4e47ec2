"""Real weights that cannot be had."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("huggingface_hub")

from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled, RepositoryNotFoundError  # noqa: E402
from tests.workloads.test_hub_files import hub_error  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads.building import load_pretrained  # noqa: E402


class Failing:
    """A pipeline whose weights cannot be had."""

    def __init__(self, error: BaseException, cause: BaseException | None = None) -> None:
        self._error, self._cause = error, cause

    def from_pretrained(self, source: str, **_: Any) -> None:
        raise self._error from self._cause


@pytest.mark.parametrize(
    ("error", "cause", "message"),
    [
        (hub_error(GatedRepoError), None, "owner/model is gated"),
        (OSError("no file"), hub_error(GatedRepoError), "owner/model is gated"),
        (hub_error(RepositoryNotFoundError), None, "owner/model is no repository"),
        (OSError("no file"), OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        (OSError("No route to host (stack trace above)\nmore"), None, "No route to host; "),
    ],
)
def test_weights_that_cannot_be_had_are_one_line(error: Exception, cause: Exception | None, message: str) -> None:
    with pytest.raises(TracekitError, match=message) as caught:
        load_pretrained(Failing(error, cause), "owner/model", torch.float32)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["/no/such/folder", "model", "a/b/c"])
def test_what_is_neither_folder_nor_repository_is_refused_at_once(source: str) -> None:
    with pytest.raises(TracekitError, match="neither a folder"):
        load_pretrained(Failing(AssertionError()), source, torch.float32)
