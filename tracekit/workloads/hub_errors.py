"""What Hugging Face's many errors mean, in one line each."""

from __future__ import annotations

from huggingface_hub.errors import (
    GatedRepoError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
)


def explain(source: str, error: BaseException, instead: str) -> str:
    """What is wrong with `source` and what to do. `instead` is what to do without it, if nothing else helps."""
    if _was_caused_by(error, GatedRepoError):
        return (
            f"{source} is gated: accept its licence on its Hugging Face page (https://huggingface.co/{source}), then"
            f" `hf auth login` (or {instead})"
        )
    if _was_caused_by(error, RepositoryNotFoundError):
        return f"{source} is no repository that you can read: check the name, or `hf auth login`"
    if _was_caused_by(error, OfflineModeIsEnabled):
        return f"{source} is not in the cache and HF_HUB_OFFLINE is set: unset it, or pass a folder"
    if _was_caused_by(error, LocalEntryNotFoundError):
        return f"{source} is not in the cache, and huggingface.co cannot be reached: check the network or pass a folder"
    lines = str(error).strip().splitlines() or [type(error).__name__]
    reason = lines[0].partition(" (")[0].rstrip(".")
    return f"cannot load {source}: {reason}; check the network or pass a folder, or {instead}"


def _was_caused_by(error: BaseException | None, kind: type[BaseException]) -> bool:
    while error is not None:
        if isinstance(error, kind):
            return True
        error = error.__cause__ or error.__context__
    return False
