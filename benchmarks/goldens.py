"""Do two commits say the same of the committed recordings?

    python -m benchmarks.goldens BEFORE [AFTER]

The code of either commit (of the working tree where AFTER is not given) reads four runs, a sweep and three jobs, in
folders of the same names, and what it says is compared line by line: JSON in any order of its keys, the text of the
page, the markdown twin, and the terminal in short and in full. Prints the differences; the exit status is 1 where there
are any. The recordings are those of either commit: the same ones, unless what is beside them in a run folder was
written anew.
"""

from __future__ import annotations

import argparse
import difflib
import html
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import zstandard

ROOT = Path(__file__).parents[1]
RUNS = ("h100-flux-compiled", "h100-qwen2.5-vl-decode", "h100-vit", "h100-vit-reduce-overhead")
SWEEP = "h200-qwen2.5-vl"
#: Jobs by their archive in tests/data/ranks, and the folder of one within it.
JOBS = {"dlrm": "", "fsdp2": "", "shared_gpu": "tp-graphed-gpu_250"}
#: Of each text so many differing lines are shown.
SHOWN = 40


def commands() -> Iterator[tuple[str, list[str]]]:
    """What is read, by the name of its results, and how."""
    for run in RUNS:
        report = ["--out", f"reports/{run}.html", "--force"]
        yield run, ["compare", f"traces/{run}", *report, "--json", f"reports/{run}.json", "--verbose"]
        yield f"{run}-short", ["compare", f"traces/{run}", *report]
        yield f"{run}-trace", ["analyze", f"traces/{run}/eager-light.json.zst", "--json", f"reports/{run}-trace.json"]
    yield SWEEP, ["sweep", "--show", f"sweeps/{SWEEP}", "--json", f"reports/{SWEEP}.json", "--verbose", "--force"]
    yield f"{SWEEP}-short", ["sweep", "--show", f"sweeps/{SWEEP}", "--force"]
    for job, folder in JOBS.items():
        place = f"jobs/{job}/{folder}".rstrip("/")
        told = ["--no-cache", "--force", "--json", f"reports/{job}.json", "--verbose", "--html", f"reports/{job}.html"]
        yield job, ["ranks", place, *told]
        yield f"{job}-short", ["ranks", place, "--no-cache"]


def unpack_inputs(code: Path, place: Path) -> None:
    """Everything that is read, as it lies beside the code; paths in what is said are the same for both."""
    for kind, names in (("traces", RUNS), ("sweeps", (SWEEP,))):
        for name in names:
            shutil.copytree(code / kind / name, place / kind / name)
    for job in JOBS:
        packed = (code / "tests" / "data" / "ranks" / f"{job}.tar.zst").read_bytes()
        with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(packed))) as archive:
            archive.extractall(place / "jobs" / job, filter="data")


def read_all(code: Path, place: Path) -> dict[str, str]:
    """What this code says of everything, by name. Raises CalledProcessError where a command fails."""
    unpack_inputs(code, place)
    own = {"PYTHONPATH": str(code), "COLUMNS": "100", "HOME": str(place), "XDG_CACHE_HOME": str(place / "cache")}
    told = {}
    for name, words in commands():
        command = [sys.executable, "-m", "tracekit", *words]
        ran = subprocess.run(command, cwd=place, env={**os.environ, **own}, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"{code}: tracekit {' '.join(words)} ended with {ran.returncode}:\n{ran.stderr}")
        told[f"{name}.terminal"] = ran.stdout
    for path in sorted((place / "reports").rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            shown = {".html": page_text, ".json": lambda text: json.dumps(json.loads(text), indent=1, sort_keys=True)}
            told[path.relative_to(place).as_posix()] = shown.get(path.suffix, str)(text)
    return told


def page_text(page: str) -> str:
    """What a reader sees of it, a line for each element."""
    page = re.sub(r"<(script|style|svg)\b.*?</\1>", "", page, flags=re.DOTALL)
    page = re.sub(r'<wbr>|<span class="whole">([^<]*)</span>', r"\1", page)
    lines = (html.unescape(each).strip() for each in re.split(r"<[^>]*>", page))
    return "\n".join(filter(None, lines))


def differences(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    """Of each text that differs its first differing lines."""
    for name in sorted({*before, *after}):
        one, other = (each.get(name, "").splitlines() for each in (before, after))
        lines = [*difflib.unified_diff(one, other, f"before/{name}", f"after/{name}", lineterm="", n=0)]
        yield from lines[:SHOWN]
        if len(lines) > SHOWN:
            yield f"... {len(lines) - SHOWN} more lines of {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", help="a commit")
    parser.add_argument("after", nargs="?", help="another one; the working tree if not given")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, name) for name in ("before", "after")]
        codes = []
        for commit, place in zip((asked.before, asked.after), places, strict=True):
            code = ROOT
            if commit:
                code = place / "code"
                subprocess.run(["git", "worktree", "add", "--quiet", "--detach", code, commit], cwd=ROOT, check=True)
            codes.append(code)
        try:
            # The same name for both, whichever paths are told.
            rooms = [place / "read" for place in places]
            with ThreadPoolExecutor() as pool:
                before, after = pool.map(read_all, codes, rooms)
        finally:
            for code in codes:
                if code != ROOT:
                    subprocess.run(["git", "worktree", "remove", "--force", code], cwd=ROOT, check=True)
    found = [*differences(before, after)]
    print("\n".join(found) or f"the same: {len(before)} texts, {sum(map(len, before.values())):,} characters")  # noqa: T201
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
