"""What is a model made of that its owner may change: their own files, a configuration. And is that still so?

Workloads of the list are tracekit's own, and have none. Nothing here needs torch.
"""

import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.model.cell import Source
from tracekit.workloads.own_errors import OURS
from tracekit.workloads.unlisted import ANY, is_file, is_own, source_of

#: Where a model's repository says what it is made of.
CONFIGURATIONS = (
    "config.json model_index.json preprocessor_config.json transformer/config.json unet/config.json vae/config.json"
).split()
#: Code that its user has installed and not written.
INSTALLED = ("site-packages", "dist-packages")


def read_sources(workload: str) -> tuple[Source, ...]:
    """What the workload built in this process is made of: its user's loaded files, or the configuration."""
    if workload.startswith(tuple(ANY)):
        return tuple(Source(name, _digest(path)) for name, path in _configurations(workload))
    if is_own(workload):
        here = Path.cwd()
        where = workload.rpartition(":")[0]
        # The Python files that were loaded from the model's folder or from here, but for what is installed there.
        roots = [here, *([Path(where).resolve().parent] if is_file(where) else [])]
        files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
        near = (p for p in {Path(file).resolve() for file in files if file} if any(map(p.is_relative_to, roots)))
        library = (OURS, sysconfig.get_path("stdlib"))
        loaded = sorted(
            p for p in near if p.is_file() and not {*INSTALLED} & {*p.parts} and not str(p).startswith(library)
        )
        names = {path: path.relative_to(here) if path.is_relative_to(here) else path for path in loaded}
        return tuple(Source(str(name), _digest(path)) for path, name in names.items())
    return ()


def find_changed(workload: str, sources: Sequence[Source]) -> tuple[str, ...]:
    """The names of files that are otherwise now, in order; none of what is not on this machine."""
    if not workload.startswith(tuple(ANY)):
        files = [(each, Path(each.name)) for each in sources]
        # A file beside the model is gone; an absolute path may be another machine's.
        return tuple(
            each.name
            for each, path in files
            if (_digest(path) != each.sha256 if path.is_file() else not path.is_absolute())
        )
    now = {name: _digest(path) for name, path in _configurations(workload)}
    then = {each.name: each.sha256 for each in sources}
    # In the cache of another machine there may be nothing at all.
    return tuple(name for name in dict.fromkeys((*then, *now)) if now and now.get(name) != then.get(name))


def _configurations(workload: str) -> Iterator[tuple[str, Path]]:
    """Those that are on this machine, by their names in the repository."""
    source = source_of(workload)
    here = Path(source).expanduser()
    if here.is_file():
        yield here.name, here
        return
    with suppress(ImportError, TracekitError, ValueError):
        from tracekit.workloads.hub_files import find_optional

        for name in CONFIGURATIONS:
            if found := find_optional(source, name, download=False):
                yield name, found


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
