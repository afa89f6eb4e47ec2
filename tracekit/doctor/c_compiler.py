"""Is there a compiler for what torch.compile generates? Inductor takes a C++ one, Triton's launcher a C one."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tracekit.doctor.check import Check, ok, problem

SECONDS = 60
PROGRAM = "int answer() { return 42; }\n"


def check_cpp_compiler() -> Check:
    """The one Inductor takes: $CXX, else g++ (clang++ on a Mac)."""
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    fix = "apt install g++" if shutil.which("clang++") is None else "export CXX=clang++"
    return _check("c++ compiler", compiler, "c++", fix)


def check_c_compiler() -> Check:
    """The one Triton takes: $CC, else gcc, else clang."""
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("gcc", "clang")), "gcc")
    return _check("c compiler", compiler, "c", "apt install gcc")


def _check(name: str, compiler: str, language: str, fix: str) -> Check:
    command = shlex.split(compiler)
    if shutil.which(command[0]) is None:
        return problem(name, f"{compiler} is not there; torch.compile cannot build its code", fix)
    failure = _failure([*command, "-x", language, "-shared", "-fPIC"])
    if failure:
        return problem(name, f"{compiler} does not work: {failure}", fix)
    return ok(name, _version(command))


def _failure(command: list[str]) -> str | None:
    """What the compiler complains of when it builds three words; None if it builds them."""
    with tempfile.TemporaryDirectory(prefix="tracekit-doctor-") as folder:
        arguments = [*command, "-", "-o", str(Path(folder) / "answer.so")]
        try:
            built = subprocess.run(
                arguments, input=PROGRAM, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
    if built.returncode == 0:
        return None
    return (built.stderr.strip() or f"exit code {built.returncode}").splitlines()[0]


def _version(command: list[str]) -> str:
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, timeout=SECONDS, check=False).stdout
    return said.splitlines()[0] if said.strip() else command[0]
