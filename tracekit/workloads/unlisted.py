"""Workloads without a name in the list: any model by its configuration (`hf:ORG/NAME`, `diffusers:ORG/NAME`), and a
user's own (`my_model.py:build`, `package.module:build`). What are they made of that their owners may change? Nothing
here needs torch, or runs the user's code."""

import difflib
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path

from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.model.cell import Source
from tracekit.model.option import OWN_WEIGHTS
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.workloads.own_errors import OURS

HF = "hf:"
DIFFUSERS = "diffusers:"
FULL = "as its configuration says"
#: The one size of a user's own model.
OWN_SIZE = "own"
#: Where a model's repository says what it is made of.
CONFIGURATIONS = (
    "config.json model_index.json preprocessor_config.json transformer/config.json unet/config.json vae/config.json"
).split()
#: Code that its user has installed and not written.
INSTALLED = ("site-packages", "dist-packages")

ANY_TRANSFORMERS = WorkloadInfo(
    name="hf:ORG/NAME",
    title="any model of transformers, built from its configuration: from the cache, a folder, or with --download",
    module="tracekit.workloads.hub",
    sizes={"full": FULL, "small": "full width, 2 layers of each stack"},
    memory_gib={},
    scopes={"model": "the whole model"},
    # Of most models nobody knows whether they are one graph.
    fullgraph=False,
    takes=("height", "width", "seq_length", "pretrained", "download"),
    inputs="token ids, images, spectrograms or waveforms, generated from the configuration",
)
ANY_DIFFUSERS = replace(
    ANY_TRANSFORMERS,
    name="diffusers:ORG/NAME",
    title="one denoising step of a known transformer or UNet of diffusers, built from its configuration",
    module="tracekit.workloads.diffusers_model",
    sizes={"full": FULL},
    scopes={"model": "the denoiser"},
    inputs="latents and embeddings, generated from the configuration",
)
ANY = {HF: ANY_TRANSFORMERS, DIFFUSERS: ANY_DIFFUSERS}


def find_on_hub(name: str) -> WorkloadInfo | None:
    """The workload that a name with such a prefix stands for; None for other names."""
    for prefix, info in ANY.items():
        if name.startswith(prefix):
            return replace(info, name=name, title=f"{source_of(name)}: {info.title}")
    return None


def source_of(name: str) -> str:
    """The folder, file or repository that is named after the prefix. Raises TracekitError where none is."""
    prefix, _, source = name.partition(":")
    if not source:
        example = "google/vit-base-patch16-224" if prefix == "hf" else "black-forest-labs/FLUX.1-dev"
        raise TracekitError(f"{name} names no model: write {name}{example}, or {name}FOLDER")
    return source


def may_download(request: Request) -> bool:
    """Whoever asks for real weights asks for the configuration too."""
    return bool(request.download or request.pretrained)


def weights_of(request: Request) -> str | None:
    """Where real weights come from; None for random ones."""
    return source_of(request.workload) if request.pretrained == OWN_WEIGHTS else request.pretrained


def is_own(name: str) -> bool:
    """Whether the name is of a user's own model: a Python file or a dotted module, a colon, a function."""
    where, colon, _ = name.rpartition(":")
    if not colon:
        return is_file(name)
    return is_file(where) or (f"{where}:" not in ANY and all(part.isidentifier() for part in where.split(".")))


def is_file(where: str) -> bool:
    """Whether a file is meant, and not a module."""
    return where.endswith(".py")


def check_module(name: str) -> None:
    """Raises TracekitError where the named package or module is not here. What is in it shows once it is loaded."""
    where, _, function = name.rpartition(":")
    top = where.partition(".")[0]
    if is_file(where) or top in {*sys.builtin_module_names, *sys.modules}:
        return
    if PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is None:
        near = difflib.get_close_matches(f"{where}:", ANY, n=1)
        if near:
            raise TracekitError(f"no module {where} found: did you mean {near[0]}{function}?")
        raise no_such_module(where)


def no_such_module(module: str) -> TracekitError:
    """The error for a module that is not there."""
    return TracekitError(
        f"no module {module} in {Path.cwd()} nor installed: pass a file as my_model.py:build, or run in the folder that"
        " holds the package"
    )


def find_own(name: str) -> WorkloadInfo:
    """What is known of the model before its code is run. Raises TracekitError for a file that is not there, and where
    no function is named."""
    where, _, function = name.rpartition(":")
    if not function.isidentifier():
        where = where or name
        raise TracekitError(f"{name}: add the function that builds the model, as in {where}:build")
    if is_file(where) and not Path(where).is_file():
        # Of a folder that is not there nothing is found.
        near = difflib.get_close_matches(str(Path(where)), map(str, Path(where).parent.glob("*.py")), n=1)
        hint = f"did you mean {near[0]}:{function}?" if near else "pass one as my_model.py:build"
        raise TracekitError(f"no file {where} in {Path.cwd()}: {hint}")
    return own_info(name, f"as built by {function}()")


def own_info(name: str, size: str) -> WorkloadInfo:
    """A model of the user's own; `size` says in words how large it is."""
    return WorkloadInfo(
        name=name,
        title="a model of your own",
        module="tracekit.workloads.own",
        sizes={OWN_SIZE: size},
        memory_gib={},
        scopes={"model": "all that it hands over"},
        fullgraph=False,
        takes=("options", "nproc"),
        resizes=True,
        needs_only_torch=True,
    )


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
