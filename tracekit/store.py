"""Run folders: where a run lies on disk. The only file that knows their layout.

A run is written into `NAME.incomplete/` and renamed to `NAME/` when it is whole, so a folder without that ending is
always a whole run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec

from tracekit.errors import TracekitError
from tracekit.model.run import FormResult, RecordingKind, Run

MANIFEST = "run.json"
#: What torch and its libraries printed while the run was made.
OUTPUT = "output.log"
INCOMPLETE = ".incomplete"


def write_text(path: Path, text: str) -> None:
    """Writes a whole file or nothing: readers never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        # mkstemp makes private files; a report is for others to read.
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def begin(folder: Path, *, force: bool) -> Path:
    """The empty folder in which a run that will become `folder` is written."""
    if folder.exists() and not force:
        raise TracekitError(f"{folder} is already there; pass --force to record it again, or --out for another place")
    if folder.exists() and not is_run(folder):
        raise TracekitError(f"{folder} is there and is no run of tracekit; pass --out for another place")
    draft = folder.with_name(folder.name + INCOMPLETE)
    if draft.exists():
        shutil.rmtree(draft)
    try:
        draft.mkdir(parents=True)
    except OSError as error:
        raise TracekitError(f"cannot write to {draft.parent}: {error.strerror}; pass --out for another place") from None
    return draft


def save(run: Run, draft: Path) -> None:
    """Writes the manifest as far as it is known."""
    text = msgspec.json.format(msgspec.json.encode(run), indent=1).decode()
    write_text(draft / MANIFEST, text + "\n")


def finish(run: Run, draft: Path) -> Path:
    """Marks the run whole and gives it its name; an older run of that name is replaced only now."""
    save(replace(run, status="complete"), draft)
    folder = draft.with_name(draft.name.removesuffix(INCOMPLETE))
    if folder.exists():
        old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
        os.replace(folder, old / folder.name)
        os.replace(draft, folder)
        shutil.rmtree(old)
    else:
        os.replace(draft, folder)
    return folder


def is_run(path: Path) -> bool:
    return (path / MANIFEST).is_file()


def was_interrupted(folder: Path) -> bool:
    """Whether a run was begun under this name and never finished."""
    return not folder.exists() and is_run(folder.with_name(folder.name + INCOMPLETE))


def load(folder: Path) -> Run:
    """The manifest of a run folder, whole or not."""
    path = folder / MANIFEST
    if was_interrupted(folder):
        raise TracekitError(f"{folder} was never finished: what was measured of it is in {folder}{INCOMPLETE}")
    if not path.is_file():
        raise TracekitError(
            f"{folder} is no run folder, it has no {MANIFEST}: name one that `tracekit profile` wrote, or a trace file"
        )
    try:
        return msgspec.json.decode(path.read_bytes(), type=Run)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise TracekitError(f"{path} cannot be read ({error}); record the run again") from None


def recording_path(folder: Path, form: FormResult, kind: RecordingKind) -> Path:
    """The trace file of a form's light or rich recording."""
    recording = next((each for each in form.recordings if each.kind == kind), None)
    if recording is None:
        raise TracekitError(f"{folder} has no {kind} recording of the {form.name} form; record the run again")
    path = folder / recording.path
    if not path.is_file():
        raise TracekitError(f"{path} is missing; record the run again")
    return path
