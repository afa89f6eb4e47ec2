"""What a shell makes of commands that a reader pastes into it."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

BASH = shutil.which("bash")
#: What would be run prints the variables that are set for it and its words, each after a letter and before a NUL.
SPIES = """
spy() {
    local name
    for name in ${!TRITON_*} ${!TORCH*}; do printf 'w%s\\0' "$name=${!name}"; done
    printf 'w%s\\0' "$@"
}
tracekit() { spy tracekit "$@"; }
python() { spy python "$@"; }
"""


def words_of(commands: Sequence[str], empty: Path) -> list[list[str]]:
    """The words of each of the commands, variables that it sets as `NAME=value`, as bash takes them. Fails where one
    does anything but run tracekit or python; `empty` is a folder in which none may leave anything."""
    assert BASH is not None
    script = SPIES + "".join(f"{command}\nprintf 'e\\0'\n" for command in commands)
    for way in (["-n"], []):
        told = subprocess.run(
            [BASH, "--norc", *way, "-s"],
            input=script.encode("utf-8", "surrogateescape"),
            cwd=empty,
            env={"PATH": ""},
            capture_output=True,
            check=False,
        )
        assert (told.returncode, told.stderr) == (0, b""), told.stderr.decode(errors="replace")
    assert not any(empty.iterdir())
    found: list[list[str]] = [[]]
    for piece in told.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        if piece == "e":
            found.append([])
        else:
            found[-1].append(piece[1:])
    assert len(found) == len(commands) + 1 and found.pop() == []
    return found
