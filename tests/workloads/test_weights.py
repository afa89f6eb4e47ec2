from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("diffusers")

from huggingface_hub.errors import GatedRepoError, OfflineModeIsEnabled, RepositoryNotFoundError  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402
from tracekit.workloads.weights import load_pretrained  # noqa: E402


class Failing:
    """A pipeline whose weights cannot be had."""

    def __init__(self, error: BaseException, cause: BaseException | None = None) -> None:
        self._error, self._cause = error, cause

    def from_pretrained(self, source: str, **_: Any) -> None:
        raise self._error from self._cause


def hub_error(kind: type[Exception]) -> Exception:
    # Their constructors want an HTTP response; only their kind matters here.
    return kind.__new__(kind)


@pytest.mark.parametrize(
    ("error", "cause", "message"),
    [
        (hub_error(GatedRepoError), None, "is gated: accept its licence"),
        (OSError("no file"), hub_error(GatedRepoError), "is gated: accept its licence"),
        (hub_error(RepositoryNotFoundError), None, "is no repository that you can read"),
        (OSError("no file"), OfflineModeIsEnabled("offline"), "HF_HUB_OFFLINE is set"),
        (OSError("No route to host (stack trace above)\nmore"), None, "No route to host; check the network"),
    ],
)
def test_weights_that_cannot_be_had_are_one_line_with_what_to_do(
    error: Exception, cause: Exception | None, message: str
) -> None:
    with pytest.raises(TracekitError) as caught:
        load_pretrained(Failing(error, cause), "owner/model", torch.float32)
    assert message in str(caught.value)
    assert "owner/model" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("source", ["/no/such/folder", "model", "a/b/c"])
def test_what_is_neither_folder_nor_repository_is_refused_at_once(source: str) -> None:
    with pytest.raises(TracekitError, match="neither a folder here nor a repository's name"):
        load_pretrained(Failing(AssertionError()), source, torch.float32)
