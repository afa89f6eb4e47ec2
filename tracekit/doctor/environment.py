"""What surrounds a run: Python, torch and the libraries that models are made of, the switches of torch.compile, and the
folders that others fill."""

import getpass
import os
import platform
import re
import shutil
import stat
import sys
import tempfile
import warnings
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import ModuleType

from tracekit.doctor import Check
from tracekit.model.run import is_busy

OLDEST_PYTHON = (3, 11)
#: The newest that has been tried.
NEWEST_PYTHON = (3, 14)
SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
#: As `pyproject.toml` has them; a test holds the two together.
OLDEST = {"torch": "2.9", "diffusers": "0.35", "transformers": "5.0"}
INSTALL = "pip install -c constraints.txt '.[profile]'  # in tracekit's checkout"
GIB = 1 << 30


def check_python_version() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        fix = "create an environment with Python 3.12: python3.12 -m venv .venv"
        return Check("problem", f"{version} is too old", fix)
    if sys.version_info[:2] > NEWEST_PYTHON:
        return Check(
            "warning", f"{version} is newer than any tested version", "if torch fails: python3.12 -m venv .venv"
        )
    return Check("ok", f"{version} at {sys.executable}")


def find_torch() -> ModuleType | None:
    """The torch package, or None where it is missing or does not load (the torch check says why)."""
    try:
        import torch
    except (ImportError, OSError):
        return None
    return torch


def why_no_gpu() -> str | None:
    """Why a check that needs a GPU has nothing to look at; None where torch sees a GPU."""
    torch = find_torch()
    if torch is None:
        return "needs torch"
    # A driver too old or a broken one warns here; the GPU check tells of it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return None if torch.cuda.is_available() else "no GPU"


def check_host_load() -> Check:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    told = f"{load:.1f} on {cores} cores"
    if not is_busy(load, cores):
        return Check("ok", told)
    return Check("warning", f"{told}: times will scatter", "stop what else runs here (top)")


def check_torch_build() -> Check:
    try:
        import torch
    except (ImportError, OSError) as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        why = "not installed" if absent else f"does not load: {str(error).splitlines()[0]}"
        return Check("problem", why, INSTALL)
    version, oldest = str(torch.__version__), OLDEST["torch"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = "XPU" if getattr(torch.xpu, "_is_compiled", bool)() else "CPU only"
    cuda, hip = torch.version.cuda, torch.version.hip
    message = f"{version}, built for {f'CUDA {cuda}' if cuda else f'ROCm {hip}' if hip else other}"
    if is_older(version, oldest):
        return Check("warning", f"{message}; older than {oldest}, not tested", f"pip install -U 'torch>={oldest}'")
    return Check("ok", message)


def check_library(name: str) -> Check:
    """Whether a library that models are made of is there, and new enough."""
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check("problem", "not installed; workloads need it", INSTALL)
    if is_older(version, OLDEST[name]):
        return Check("problem", f"{version} is older than {OLDEST[name]}", f"pip install -U '{name}>={OLDEST[name]}'")
    return Check("ok", version)


def is_older(version: str, than: str) -> bool:
    """`2.13.0+cpu` is not older than `2.9`. Only the numbers count, so `2.9.0rc1` is not older than `2.9`."""
    numbers = []
    for text in (version, than):
        release = re.match(r"\d+(\.\d+)*", text)
        if release is None:
            raise ValueError(f"{text!r} does not begin with a number")
        numbers.append([int(part) for part in re.sub(r"(\.0+)+$", "", release[0]).split(".")])
    return numbers[0] < numbers[1]


def check_compile_switches() -> Check:
    """Whether the environment turns torch.compile off."""
    off = [switch for switch in SWITCHES if os.environ.get(switch, "0") == "1"]
    if off:
        return Check("problem", f"{' and '.join(off)} set: compiled would run eager", f"unset {' '.join(off)}")
    return Check("ok", "not disabled by the environment")


def check_hugging_face_cache() -> Check:
    try:
        from huggingface_hub.constants import HF_HUB_CACHE
    except ImportError:
        return Check("skipped", "huggingface_hub is not installed")
    return _check_folder(Path(HF_HUB_CACHE), "HF_HOME")


def check_hugging_face_token() -> Check:
    """Whether there is one for gated models; what it is stays unsaid."""
    try:
        from huggingface_hub import get_token
    except ImportError:
        return Check("skipped", "huggingface_hub is not installed")
    if os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return Check("warning", "HF_HUB_OFFLINE is set: --pretrained loads cached models only", "unset HF_HUB_OFFLINE")
    try:
        token = get_token()
    except OSError as error:
        why = f"cannot be read ({error.strerror}): --pretrained cannot load gated models"
        return Check("warning", why, "export HF_HOME=A-WRITABLE-FOLDER")
    if token is None:
        return Check(
            "warning", "no token: --pretrained cannot load gated models (random weights need no token)", "hf auth login"
        )
    return Check("ok", "found")


def check_inductor_cache() -> Check:
    """Where Inductor keeps what it compiled. A full one makes compilation look shorter than it is the first time."""
    if find_torch() is None:
        return Check("skipped", "needs torch")
    # As Inductor finds it; its own function would make the folder.
    if chosen := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        return _check_folder(Path(chosen).absolute(), "TORCHINDUCTOR_CACHE_DIR")
    try:
        user = getpass.getuser()
    except (KeyError, ModuleNotFoundError, OSError):
        user = f"uid_{os.getuid()}"
    folder = Path(tempfile.gettempdir()) / ("torchinductor_" + re.sub(r'[\\/:*?"<>|]', "_", user))
    return _check_folder(folder, "TORCHINDUCTOR_CACHE_DIR")


def _check_folder(folder: Path, variable: str) -> Check:
    """Whether the folder can be written to or be made, how much it holds and how much still fits."""
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    if not existing.is_dir():
        return Check("problem", f"{existing} is a file, not a folder", f"export {variable}=A-WRITABLE-FOLDER")
    if not os.access(existing, os.W_OK | os.X_OK):
        return Check("problem", f"{folder} is not writable", f"export {variable}=A-WRITABLE-FOLDER")
    held = f"{bytes_held(folder) / GIB:.1f} GiB" if folder.is_dir() else "does not exist yet"
    return Check("ok", f"{folder}: {held}, {shutil.disk_usage(existing).free / GIB:.0f} GiB free on disk")


def bytes_held(folder: Path) -> int:
    """The files' sizes added up; a link counts as itself, not as what it points at."""
    total = 0
    for path in folder.rglob("*"):
        # Caches are tidied by others while they are read.
        with suppress(FileNotFoundError):
            status = path.lstat()
            total += 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return total
