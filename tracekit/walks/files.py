"""Writing a file to the place that a user named."""

from __future__ import annotations

from pathlib import Path

from tracekit import store
from tracekit.errors import TracekitError


def write_file(path: Path, text: str) -> None:
    """Writes a whole file. Raises TracekitError when the place cannot be written to."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a whole file. Raises TracekitError when the place cannot be written to."""
    try:
        store.write_bytes(path, content)
    except OSError as error:
        raise TracekitError(f"cannot write {path}: {error.strerror}; name another place") from error
