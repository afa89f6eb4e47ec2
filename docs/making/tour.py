"""What README and docs/getting-started.md show of commands, as these print it now: `python -m docs.making.tour`."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
COMPARE = "compare traces/h100-vit"
GATE = 'compare traces/h100-vit traces/h100-vit-reduce-overhead --gate "wall<=+3%"'
#: The blocks of output of each page, and the commands that print them.
SHOWN = {"README.md": (COMPARE,), "docs/getting-started.md": (COMPARE, GATE)}
BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", flags=re.DOTALL | re.MULTILINE)


def printed(command: str) -> list[str]:
    """The lines of `tracekit COMMAND` at 100 columns, the first not empty."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "traces").symlink_to(ROOT / "traces")
        environment = {**os.environ, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
        line = f"{sys.executable} -m tracekit {command}"
        done = subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return [each.rstrip() for each in done.stdout.strip("\n").splitlines()]


def renewed(block: str, lines: list[str]) -> str:
    """The whole output, or of a block that shows some lines of it, or leaves some out (`...`), those most like them."""
    shown = block.splitlines()
    if shown[0].strip() == lines[0].strip() and "..." not in shown:
        return "\n".join(lines) + "\n"
    like = (line if line == "..." else (difflib.get_close_matches(line, lines, 1, 0.4) or ["?"])[0] for line in shown)
    return "".join(f"{line}\n" for line in like)


def page_now(text: str, outputs: Iterator[list[str]]) -> str:
    """The page with its blocks of output as they are now."""
    return BLOCK.sub(lambda found: renewed(found[0], next(outputs)), text)


def main() -> None:
    lines = {command: printed(command) for commands in SHOWN.values() for command in commands}
    for name, commands in SHOWN.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        (ROOT / name).write_text(page_now(text, (lines[each] for each in commands)), encoding="utf-8")


if __name__ == "__main__":
    main()
