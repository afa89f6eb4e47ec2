"""Run folders: where a run lies on disk. The only file that knows their layout.

A run is written into `NAME.incomplete/` and renamed to `NAME/` when it is whole, so a folder without that ending is
always a whole run. While a process writes it, it holds a lock.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.files import read_bounded, unpack_gzip, write_replaced
from tracekit.wire import decode, encode

# Whoever reads a trace imports this file too, to see that it is no run.
if TYPE_CHECKING:
    from tracekit.model.numerics import Picture
    from tracekit.model.provenance import CompiledSites, EagerOps, KernelSources
    from tracekit.model.run import FormName, FormResult, RankOfRun, RecordingKind, Run

MANIFEST = "run.json"
#: Where the work of each form came from.
EAGER_OPS = "eager-ops.json.gz"
COMPILED_SITES = "compiled-sites.json.gz"
#: Inductor's source of the Triton kernels.
COMPILED_TRITON = "compiled-triton.json.gz"
#: What torch and its libraries printed while the run was made.
OUTPUT = "output.log"
INCOMPLETE = ".incomplete"
#: How folders begin in which processes of a run find their jobs; one that was killed leaves them.
CHILD = ".child-"

#: What the files of a run may have at most, ten times and more what was measured: of manifests 0.3 MB (ViT), of
#: provenance 0.3 MB packed and 12 MB unpacked (FLUX.1-dev), of pictures 0.1 MB.
MOST_MANIFEST_BYTES = 16 << 20
MOST_PACKED_BYTES = 32 << 20
MOST_PROVENANCE_BYTES = 128 << 20
#: Four bytes at most for each character that is kept.
MOST_SOURCE_BYTES = 16 << 20
MOST_PICTURE_BYTES = 4 << 20
PNG_MAGIC = b"\x89PNG\r\n\x1a\n"
#: What decoding raises for content that is none of ours, however deep it is nested.
UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Ways(Struct, frozen=True):
    """How whoever asked for a run replaces one that is there, and how they put it elsewhere."""

    force: str
    out: str


ON_THE_COMMAND_LINE = Ways("--force", "another path to --out")
IN_A_PROGRAM = Ways("force=True", "another path as out=")

Decoded = TypeVar("Decoded")

#: What a manifest begins with, after its key.
SCHEMA = b'"tracekit.run/'


@contextmanager
def begun(folder: Path, *, force: bool, ways: Ways = ON_THE_COMMAND_LINE) -> Iterator[Path]:
    """The empty folder in which a run that will become `folder` is written, nobody else's as long as the block lasts.

    Raises TracekitError when the run is there already, or what an interrupted one measured, and `force` is not set;
    when another process is writing it; and for whatever tracekit did not make. They say `ways`.
    """
    if folder.is_symlink() and not folder.exists():
        raise TracekitError(f"{folder} is a broken link; remove it, or pass {ways.out}")
    if folder.exists() and not force:
        raise TracekitError(f"{folder} already exists; pass {ways.force} to record it again, or {ways.out}")
    if folder.exists() and not is_run(folder):
        raise TracekitError(f"{folder} exists and is not a run of tracekit; pass {ways.out}")
    draft = folder.with_name(folder.name + INCOMPLETE)
    if draft.is_symlink():
        # What it leads to would be emptied.
        raise TracekitError(f"{draft} is a link; remove it, or pass {ways.out}")
    try:
        draft.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TracekitError(f"cannot write to {draft.parent}: {error.strerror}; pass {ways.out}") from None
    if not os.access(draft, os.W_OK):
        raise TracekitError(f"cannot write to {draft}; pass {ways.out}")
    with _held(draft, ways):
        there = [path.name for path in draft.iterdir() if path.name != OUTPUT]
        if there and not is_run(draft) and not any(name.startswith(CHILD) for name in there):
            raise TracekitError(f"{draft} exists and was not written by tracekit; move it, or pass {ways.out}")
        if not force and holds_measurements(draft):
            ended = "failed" if load(draft).failure else "was interrupted"
            raise TracekitError(f"{draft} holds a run that {ended}; pass {ways.force} to replace it, or {ways.out}")
        clear(draft)
        try:
            yield draft
        finally:
            # What was measured stays; a folder of nothing goes.
            if draft.is_dir() and not any(draft.iterdir()):
                draft.rmdir()


@contextmanager
def _held(draft: Path, ways: Ways) -> Iterator[None]:
    """No other process of this machine writes the draft meanwhile. The lock lies outside of it and stays, so that
    whoever comes next finds the same."""
    # Only here, because whoever reads a trace imports this file and locks nothing.
    import hashlib

    from filelock import FileLock, Timeout

    name = hashlib.sha256(str(draft.resolve()).encode()).hexdigest()[:32]
    folder = Path(tempfile.gettempdir()) / f"tracekit-locks-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        # Anybody may make folders here, with links in them.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise TracekitError(f"{folder} is owned by another user; remove it, or set TMPDIR to another folder")
        lock = FileLock(folder / f"{name}.lock")
        lock.acquire(blocking=False)
    except Timeout:
        raise TracekitError(f"another tracekit is writing {draft}; wait for it, or pass {ways.out}") from None
    except OSError as error:
        raise TracekitError(f"cannot lock {draft} in {folder}: {error.strerror}") from None
    try:
        yield
    finally:
        lock.release()


def holds_measurements(draft: Path) -> bool:
    """Whether calls were timed or recorded in a draft: what came before, another run does again."""
    return is_run(draft) and any(form.wall_us or form.recordings for form in load(draft).forms)


def mark_failed(draft: Path, error: Exception) -> None:
    """Notes in a draft what ended its run, for whoever comes next."""
    save(replace(load(draft), failure=f"{type(error).__name__}: {error}"), draft)


def clear(draft: Path, *, but_log: bool = False) -> None:
    """Empties a draft of which nothing is worth keeping, or nothing but what was printed."""
    for path in draft.iterdir():
        if but_log and path.name == OUTPUT:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def save(run: Run, draft: Path) -> None:
    """Writes the manifest as far as it is known."""
    write_replaced(draft / MANIFEST, msgspec.json.format(encode(run), indent=1) + b"\n")


def finish(run: Run, draft: Path) -> Path:
    """Marks the run whole and gives it its name; an older run of that name is replaced only now."""
    save(replace(run, status="complete"), draft)
    folder = draft.with_name(draft.name.removesuffix(INCOMPLETE))
    if folder.exists() and not is_run(folder):
        # Made while the run was: nobody else's files are removed.
        raise TracekitError(
            f"{folder} was made meanwhile and is not a run of tracekit; what was measured is in {draft}"
        )
    if folder.exists():
        old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
        os.replace(folder, old / folder.name)
        os.replace(draft, folder)
        shutil.rmtree(old)
    else:
        os.replace(draft, folder)
    return folder


def is_run(path: Path) -> bool:
    """Whether a manifest of ours lies in the folder."""
    manifest = path / MANIFEST
    if not manifest.is_file():
        return False
    with manifest.open("rb") as file:
        return SCHEMA in file.read(len(SCHEMA) + 100)


def is_cut_off(path: Path) -> bool:
    """Whether a manifest lies in the folder that was copied in part: no JSON. A trace may be called like one."""
    manifest = path / MANIFEST
    if not manifest.is_file() or manifest.stat().st_size > MOST_MANIFEST_BYTES:
        return False
    content = manifest.read_bytes()
    try:
        msgspec.json.decode(content)
    except UNDECODABLE:
        return b'"traceEvents"' not in content
    return False


def was_interrupted(folder: Path) -> bool:
    """Whether a run was begun under this name and never finished."""
    return not folder.exists() and is_run(folder.with_name(folder.name + INCOMPLETE))


def load(folder: Path) -> Run:
    """The manifest of a run folder, whole or not."""
    from tracekit.model.run import Run

    path = folder / MANIFEST
    if was_interrupted(folder):
        raise TracekitError(f"{folder} was interrupted: pass {folder}{INCOMPLETE} to see what was measured")
    if not path.is_file():
        # A user may have meant one of those in it.
        runs = sorted(each for each in folder.iterdir() if is_run(each)) if folder.is_dir() else []
        raise TracekitError(
            f"{folder} is not a run folder (no {MANIFEST}): pass one that `tracekit profile` wrote, or a trace file"
            + (f"; it contains {', '.join(map(str, runs[:5]))}" if runs else "")
        )
    content = read_bounded(inside(folder, MANIFEST), MOST_MANIFEST_BYTES)
    return _decoded(path, content, Run)


def inside(folder: Path, name: str) -> Path:
    """Where the file lies that a run or a sweep names: in its own folder, once links are resolved.

    A folder may come from anybody, and what it names is shown, served and read. Raises TracekitError for a file that is
    missing, lies outside, or is no regular file.
    """
    path = folder / name
    try:
        resolved, root = path.resolve(strict=True), folder.resolve(strict=True)
    except FileNotFoundError:
        raise TracekitError(f"{path} is missing; copy the whole run folder, or record the run again") from None
    except (OSError, RuntimeError, ValueError) as error:
        # A loop of links, a name that is too long, one with a zero in it.
        raise TracekitError(f"{folder} names a file that cannot be read ({error})") from None
    if not resolved.is_relative_to(root):
        raise TracekitError(f"{path} leads out of the run folder, to {resolved}; record the run again")
    if not resolved.is_file():
        raise TracekitError(f"{path} is not a regular file; record the run again")
    return path


def rank_folder(folder: Path, rank: RankOfRun) -> Path:
    """Where the run folder of a rank lies: in that of the job's run, which is its first rank's. Raises TracekitError
    where it leads out of it."""
    if rank.folder is None:
        return folder
    return inside(folder, f"{rank.folder}/{MANIFEST}").parent


def recording_path(folder: Path, form: FormResult, kind: RecordingKind) -> Path:
    """The trace file of a form's light or rich recording."""
    recording = next((each for each in form.recordings if each.kind == kind), None)
    if recording is None:
        raise TracekitError(f"{folder} has no {kind} recording of {form.name}; record the run again")
    return inside(folder, recording.path)


def save_provenance(found: EagerOps | CompiledSites, draft: Path) -> str:
    """Writes where a form's work came from; returns the file's name in the folder."""
    from tracekit.model.provenance import EagerOps

    return _save_packed(found, draft, EAGER_OPS if isinstance(found, EagerOps) else COMPILED_SITES)


def save_kernel_sources(found: KernelSources, draft: Path) -> str:
    """Writes the source of a form's Triton kernels; returns the file's name in the folder."""
    return _save_packed(found, draft, COMPILED_TRITON)


def _save_packed(found: object, draft: Path, name: str) -> str:
    # No time in it: the same content is the same file.
    write_replaced(draft / name, gzip.compress(encode(found), mtime=0))
    return name


def save_picture(png: bytes, form: FormName, kind: str, draft: Path) -> str:
    """Writes a picture of what a form made; returns the file's name in the folder."""
    name = f"{form}-{kind}.png"
    write_replaced(draft / name, png)
    return name


def load_pictures(folder: Path, form: FormResult) -> tuple[Picture, ...]:
    """The pictures of what a form made, with the words under them; none where the run has none."""
    from tracekit.model.numerics import Picture

    found: list[Picture] = []
    for file in form.numerics.pictures if form.numerics else ():
        path = inside(folder, file.path)
        content = read_bounded(path, MOST_PICTURE_BYTES)
        if not content.startswith(PNG_MAGIC):
            raise TracekitError(f"{path} is not a PNG image; record the run again")
        scale = f", times {file.scale:,.0f}" if file.scale > 1 else ""
        found.append(Picture(form.name if file.kind == "output" else f"{form.name} less eager{scale}", content))
    return tuple(found)


def load_provenance(folder: Path, form: FormResult) -> EagerOps | CompiledSites | None:
    """Where the form's work came from; None where the run does not tell."""
    from tracekit.model.provenance import CompiledSites, EagerOps

    if form.provenance is None:
        return None
    kind: type[EagerOps | CompiledSites] = EagerOps if form.name == "eager" else CompiledSites
    path = inside(folder, form.provenance)
    return _decoded(path, unpack_gzip(path, MOST_PACKED_BYTES, MOST_PROVENANCE_BYTES), kind)


def load_kernel_sources(folder: Path, form: FormResult) -> KernelSources | None:
    """The source of the form's Triton kernels; None where the run does not hold it."""
    from tracekit.model.provenance import KernelSources

    if form.kernel_sources is None:
        return None
    path = inside(folder, form.kernel_sources)
    return _decoded(path, unpack_gzip(path, MOST_PACKED_BYTES, MOST_SOURCE_BYTES), KernelSources)


def _decoded(path: Path, content: bytes, kind: type[Decoded]) -> Decoded:
    try:
        return decode(content, kind)
    except UNDECODABLE as error:
        raise TracekitError(f"{path} cannot be read ({error}); record the run again") from None
