"""What builds the code that torch.compile writes: C and C++ compilers, Python's headers, setuptools, Triton."""

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

from tracekit.doctor import Check
from tracekit.doctor.environment import find_torch, why_no_gpu

COMPILER_SECONDS = 60
PROGRAM = "int answer() { return 42; }\n"
#: Python brings setuptools no more since 3.12, and torch.compile still asks for it.
SETUPTOOLS_NEEDED: bool = sys.version_info >= (3, 12)


def check_cpp_compiler() -> Check:
    """The one Inductor takes: $CXX, else g++ (clang++ on a Mac)."""
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    fix = "apt install g++" if shutil.which("clang++") is None else "export CXX=clang++"
    return _check_compiler(compiler, "c++", fix)


def check_c_compiler() -> Check:
    """The one Triton takes for its launcher: $CC, else gcc, else clang."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("gcc", "clang")), "gcc")
    return _check_compiler(compiler, "c", "apt install gcc")


def _check_compiler(compiler: str, language: str, fix: str) -> Check:
    command = shlex.split(compiler)
    if shutil.which(command[0]) is None:
        return Check("problem", f"{compiler} not found; torch.compile cannot build its code", fix)
    with tempfile.TemporaryDirectory(prefix="tracekit-doctor-") as folder:
        arguments = [*command, "-x", language, "-shared", "-fPIC", "-", "-o", str(Path(folder) / "answer.so")]
        try:
            built = subprocess.run(
                arguments, input=PROGRAM, capture_output=True, text=True, timeout=COMPILER_SECONDS, check=False
            )
            failure = (built.stderr.strip() or f"exit code {built.returncode}") if built.returncode else ""
        except (OSError, subprocess.TimeoutExpired) as error:
            failure = str(error)
    if failure:
        return Check("problem", f"{compiler} failed: {failure.splitlines()[0]}", fix)
    asked = [*command, "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, timeout=COMPILER_SECONDS, check=False).stdout
    return Check("ok", said.splitlines()[0] if said.strip() else command[0])


def check_python_headers() -> Check:
    """Triton's launcher and Inductor's C++ code include `Python.h`."""
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if header.is_file():
        return Check("ok", str(header))
    package = f"python{sys.version_info.major}.{sys.version_info.minor}-dev"
    return Check("problem", f"{header} is missing; torch.compile cannot build its code", f"apt install {package}")


def check_setuptools() -> Check:
    try:
        return Check("ok", metadata.version("setuptools"))
    except metadata.PackageNotFoundError:
        if not SETUPTOOLS_NEEDED:
            return Check("ok", "not installed; not needed before Python 3.12")
        return Check("problem", "not installed; torch.compile needs it", "pip install setuptools")


def check_triton_kernel() -> Check:
    """Whether Triton builds and runs a kernel; if not, torch.compile says `Cannot find a working triton
    installation`."""
    if missing := why_no_gpu():
        return Check("skipped", f"{missing}: torch.compile uses the C++ compiler" if find_torch() else missing)
    try:
        import triton
    except ImportError as error:
        message = f"cannot be imported: {error}; torch.compile fails on the GPU"
        return Check("problem", message, f"pip install '{triton_requirement()}'")
    version = str(triton.__version__)
    try:
        _run_kernel()
    # A build may fail in the compiler, the linker, the assembler or the driver, each with errors of its own.
    except Exception as error:  # noqa: BLE001
        if isinstance(error, subprocess.CalledProcessError):
            # Its own text is the whole command line; what the compiler complained of is on the terminal already.
            reason = f"{error.cmd[0]} ended with exit code {error.returncode}"
        else:
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1]
        fix = f"fix the compilers and headers below; if they are ok: pip install --force-reinstall triton=={version}"
        return Check("problem", f"{version} cannot build a kernel: {reason}", fix)
    return Check("ok", f"{version} built and ran a kernel")


def triton_requirement() -> str:
    """The one version of triton that torch is tied to, as its requirement names it."""
    required = (each.partition(";")[0].strip() for each in metadata.requires("torch") or ())
    return next((each for each in required if each.startswith("triton")), "triton")


def _run_kernel() -> None:
    """Builds the smallest kernel in an empty cache and runs it: one built before would be found again and prove
    nothing."""
    import torch

    before = os.environ.get("TRITON_CACHE_DIR")
    with tempfile.TemporaryDirectory(prefix="tracekit-doctor-") as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        try:
            # Its kernel is defined at import, which needs triton.
            from tracekit.doctor import small_kernel

            values = torch.arange(64, device="cuda", dtype=torch.float32)
            wanted = values + 1
            small_kernel.launch(values)
            if not torch.equal(values, wanted):
                raise ArithmeticError("the kernel computed wrong numbers")
        finally:
            if before is None:
                del os.environ["TRITON_CACHE_DIR"]
            else:
                os.environ["TRITON_CACHE_DIR"] = before
