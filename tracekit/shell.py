"""Commands as a shell takes them, and the variables of the environment that a measurement depends on.

What a run says of itself may be a stranger's: in a command that a reader is to type every word is quoted, and only
variables that steer torch are set. Nothing is changed in a command once its words are quoted: pages, markdown and
terminals show what is printable as it is.
"""

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

#: How the names begin of those that steer torch's compiler and the libraries below it, and of single ones the whole.
PREFIXES = (
    *("TORCHINDUCTOR_", "TORCHDYNAMO_", "TORCH_DYNAMO_", "TORCH_COMPILE_", "TORCH_CUDNN_", "TORCH_BLAS_", "TRITON_"),
    "PYTORCH_TUNABLEOP_",
)
NAMES = (
    *("CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING", "CUDA_DEVICE_MAX_CONNECTIONS", "NVIDIA_TF32_OVERRIDE"),
    *("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING"),
    *("CUBLAS_WORKSPACE_CONFIG", "CUBLASLT_WORKSPACE_SIZE", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"),
    *("DISABLE_ADDMM_CUDA_LT", "ATEN_CPU_CAPABILITY", "DIFFUSERS_ATTN_BACKEND", "ENABLE_PERSISTENT_TMA_MATMUL"),
)
#: How the names end, or what they hold, of those that say where something is kept or written, or which job this is:
#: the machine's matter.
PLACE_ENDINGS = ("_DIR", "_PATH", "_HOME", "_FILE", "_JOB_ID")
PLACE_PARTS = ("_REDIS_", "_SERVER_", "_LOG_")
#: What torch sets itself, in a module of its compiler that not every compilation imports
#: (`torch/_inductor/fx_passes/numeric_utils.py`, 2.11 and 2.13): no choice of anybody's.
OF_TORCH = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}

#: A piece of a word that a shell takes as it stands, and last one as `quoted` spells it.
PIECE = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|\$'([^']*)'""", re.DOTALL)
SPELT_BYTE = re.compile(rb"\\([0-7]{3})")


def quoted(word: str) -> str:
    """The word as bash and zsh take it, in printable characters. Others are spelt as bytes, `$'one\\012two'`: not
    every terminal and page shows them as they are. No program can be given a word with a NUL."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_spelt, word))}'"


def _spelt(character: str) -> str:
    if character.isprintable() and character not in "'\\":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))


def joined(words: Iterable[str]) -> str:
    """The command of these words, each `quoted`."""
    return " ".join(map(quoted, words))


def split(command: str) -> list[str]:
    """The words of a command that `joined` or `shlex.join` wrote. Raises ValueError for what no shell would take."""
    return shlex.split(PIECE.sub(_plain, command))


def _plain(piece: re.Match[str]) -> str:
    """The piece as shlex takes it, which knows no `$'...'`."""
    if piece[1] is None:
        return piece[0]
    content = piece[1].encode("utf-8", "surrogateescape")
    spelt = SPELT_BYTE.sub(lambda byte: bytes([int(byte[1], 8) & 0xFF]), content)
    return shlex.quote(spelt.decode("utf-8", "surrogateescape"))


def steering_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Those that are set and change how fast a model runs or what it returns, by name. Places on this machine are none
    of them: they mean nothing on another."""
    return {
        name: value
        for name, value in sorted(environment.items())
        if (name.startswith(PREFIXES) or name in NAMES)
        and not (name.endswith(PLACE_ENDINGS) or any(part in name for part in PLACE_PARTS))
        and "/" not in value
        and OF_TORCH.get(name) != value
    }


def environment_with(variables: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with those in it, for another Python that is to import this tracekit."""
    here = str(Path(__file__).parents[1])
    paths = [path for path in (os.environ.get("PYTHONPATH"), here) if path]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **variables}


def variable_words(variables: Mapping[str, str]) -> str:
    """`ONE=1 OTHER='a b'`; empty where there are none. What no shell takes for a name is left out."""
    return " ".join(f"{name}={quoted(value)}" for name, value in variables.items() if _is_name(name))


def with_variables(command: str, variables: Mapping[str, str]) -> str:
    """The command with those of the variables set for it alone that steer torch: `NAME=value command`."""
    steering = steering_variables(variables)
    words = variable_words({name: value for name, value in variables.items() if name in steering})
    return f"{words} {command}" if words else command


def split_variables(command: str) -> tuple[dict[str, str], list[str]]:
    """The variables that are set before a command of tracekit's, and the command's own words; nothing of what no shell
    would take."""
    try:
        words = split(command)
    except ValueError:
        return {}, []
    if "\0" in "".join(words):
        return {}, []
    variables: dict[str, str] = {}
    while words and "=" in words[0] and _is_name(words[0].partition("=")[0]):
        name, _, value = words.pop(0).partition("=")
        variables[name] = value
    return variables, words


def retyped(command: str) -> str | None:
    """The command of tracekit's with every word quoted anew; None for what is none."""
    variables, words = split_variables(command)
    return with_variables(joined(words), variables) if words[:1] == ["tracekit"] else None


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()
