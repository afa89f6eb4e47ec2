"""The examples of docs/contributing.md, added to a copy of the package as its text says, with the tests they name."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest

from .texts import DOCS, ROOT

PAGE = DOCS / "contributing.md"
#: A file that a paragraph names, and the code below it.
EXAMPLE = re.compile(r"([^\n]+(?:\n[^\n]+)*)\n\n```python\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`((?:tracekit|tests)/\w+(?:/\w+)*\.py)`")
#: The row of a workload.
ROW = re.compile(r"^```python\n(OneForward\(\n.*?^\))\n```$", flags=re.DOTALL | re.MULTILINE)

#: What the numbered lines of the page name, and where: a module of tracekit, and what is imported from it.
IMPORTS = {
    "model/analysis.py": ("model.short_kernels", "ShortKernels"),
    "analysis/analyzing.py": ("analysis.short_kernels", "measure_short_kernels"),
    "report/composition/shared.py": ("report.sections.short_kernels", "short_kernel_table"),
    "comparison/findings/__init__.py": ("comparison.findings.short_kernels", "find_short_kernels"),
}
#: A file, a line that is there, and what is put in front of it.
LINES = (
    (
        "analysis/analyzing.py",
        "        queue=queue.measure_queues",
        "        short_kernels=measure_short_kernels(scope),",
    ),
    ("report/composition/shared.py", "        doc.Part(family_table", "        short_kernel_table(sides),"),
    ("comparison/findings/__init__.py", "    launch_bound.find_fewer_kernels,", "    find_short_kernels,"),
)
#: The last field of the last class of its file.
FIELD = "    short_kernels: ShortKernels | None = None"


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, its tests and schemas, with the page's examples in them."""
    folder = tmp_path_factory.mktemp("checkout")
    for part in ("tracekit", "tests", "docs/schemas"):
        # With what Python has compiled of them, which holds for every file that stays as it is.
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("data", "gpu"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "traces").symlink_to(ROOT / "traces")
    for name, code in examples():
        assert not (folder / name).exists(), name
        (folder / name).write_text(code, encoding="utf-8")
    for name, (module, noun) in IMPORTS.items():
        put_before(folder / "tracekit" / name, "from tracekit.", f"from tracekit.{module} import {noun}")
    for name, line, new in LINES:
        put_before(folder / "tracekit" / name, line, new)
    analysis = folder / "tracekit" / "model" / "analysis.py"
    analysis.write_text(analysis.read_text(encoding="utf-8").rstrip("\n") + f"\n{FIELD}\n", encoding="utf-8")
    row = ROW.search(PAGE.read_text(encoding="utf-8"))
    assert row is not None
    table = folder / "tracekit/workloads/one_forward_table.py"
    put_before(table, '    OneForward(\n        name="mlp"', indent(f"{row[1]},", "    "))
    return folder


def examples() -> list[tuple[str, str]]:
    """Each file that the page prints, and its text."""
    found = [(FILE.search(words), code) for words, code in EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))]
    return [(named[1], code) for named, code in found if named]


def put_before(path: Path, line: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    at = text.index(f"\n{line}") + 1
    path.write_text(f"{text[:at]}{new}\n{text[at:]}", encoding="utf-8")


#: Commands of tracekit and pytest's own, one after another in one process, which imports once; ends where one fails.
RUN = """
import json, sys
import pytest
from tracekit.cli.main import main
for program, *words in json.loads(sys.argv[1]):
    code = pytest.main(words) if program == "pytest" else main(words, standalone_mode=False)
    if code:
        sys.exit(f"{program} {words} ended with {code}")
"""


def run(folder: Path, *commands: tuple[str, ...]) -> str:
    """What these commands print in the copy, which must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    words = [sys.executable, "-c", RUN, json.dumps(commands)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_page_prints_seven_files() -> None:
    assert len(examples()) == 7


def test_each_line_that_is_added_is_on_the_page() -> None:
    said = PAGE.read_text(encoding="utf-8")
    named = {new.strip().rstrip(",") for *_, new in LINES} | {FIELD.strip()}
    assert [each for each in named if each not in said] == []


@pytest.mark.slow
def test_the_workload_the_question_and_the_finding_pass_their_tests_and_reach_reports(copy: Path) -> None:
    pytest.importorskip("transformers")
    of_workloads = ("tests/workloads/test_one_forward.py", "tests/workloads/test_workloads.py")
    of_kernels = ("tests/analysis/test_short_kernels.py", "tests/comparison/findings/test_short_kernels.py")
    files, asked = (
        (*of_workloads, *of_kernels, "tests/report/test_schemas.py"),
        "distilbert or short_kernels or schemas_in_docs",
    )
    told = run(
        copy,
        ("tracekit", "workloads"),
        ("tracekit", "schema", "--out", "docs/schemas"),
        ("tracekit", "compare", "traces/h100-vit", "--out", "out.html", "-v"),
        ("pytest", "-v", "-p", "no:cacheprovider", *files, "-k", asked),
    )
    listed, _, tests = told.partition("test session starts")
    assert "distilbert" in listed and "Nearly all kernels of compiled are short" in listed
    assert [tests.count(f"{name}::") for name in of_kernels] == [1, 2] and "test_workloads.py::" in tests
    for report in ("out.html", "out.md"):
        text = (copy / report).read_text(encoding="utf-8")
        assert "Kernels under 10 µs, per call" in text
        assert "Nearly all kernels of compiled are short" in text
