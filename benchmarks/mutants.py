"""How many planted faults do a room's own tests catch?

    python -m benchmarks.mutants --out results/mutants.json [--seed 41] [--rooms report comparison] [--faults 40]

Each fault changes one expression of a room: a comparison turned, a sum made a difference, `and` made `or`, a number one
more, a condition's branches swapped. Which, the seed draws among all places where that can be done. The fault is caught
where the tests of that room alone, without those that take a browser or long, no longer pass. Works in a copy of the
last commit.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TURNED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
SECONDS = 600


def turned(node: ast.AST) -> ast.expr | None:
    """The expression with a fault in it; None where none is planted."""
    match node:
        case ast.Compare(left=left, ops=[op], comparators=right):
            return ast.Compare(left, [TURNED[type(op)]()], right)  # type: ignore[list-item]
        case ast.BinOp(left=ast.Constant(value=str()) | ast.JoinedStr()) | ast.BinOp(right=ast.JoinedStr()):
            return None
        case ast.BinOp(left=left, op=op, right=right) if type(op) in TURNED:
            return ast.BinOp(left, TURNED[type(op)](), right)  # type: ignore[arg-type]
        case ast.BoolOp(op=op, values=values):
            return ast.BoolOp(TURNED[type(op)](), values)  # type: ignore[arg-type]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.IfExp(test=test, body=body, orelse=other):
            return ast.IfExp(test, other, body)
        case ast.Constant(value=bool(value)):
            return ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            return ast.Constant(value + 1)
    return None


def places(source: str) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions of functions and of tables that a fault can be planted in, each with the fault."""
    tree = ast.parse(source)
    skipped: set[int] = set()
    for node in ast.walk(tree):
        annotations = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        for each in (*annotations, *getattr(node, "decorator_list", ())):
            skipped |= {id(below) for below in ast.walk(each)} if each is not None else set()
        if isinstance(node, ast.JoinedStr):
            # Their parts have no places of their own in every Python.
            skipped |= {id(below) for below in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.expr) and id(node) not in skipped and (fault := turned(node)) is not None:
            yield node, fault


def planted(source: str, node: ast.expr, fault: ast.expr) -> str:
    """The source with the fault in place of the node."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    begin = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    whole = b"".join(lines)
    return (whole[:begin] + f"({ast.unparse(fault)})".encode() + whole[end:]).decode()


def draw(rooms: list[str], faults: int, seed: int) -> list[dict[str, Any]]:
    """As many faults of each room, in the order of their places."""
    drawn: list[dict[str, Any]] = []
    for room in rooms:
        every = []
        for path in sorted((ROOT / "tracekit" / room).rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            every += [(path.relative_to(ROOT).as_posix(), *each, source) for each in places(source)]
        chosen = random.Random(f"{seed} {room}").sample(range(len(every)), faults // len(rooms))
        for at in sorted(chosen):
            path, node, fault, source = every[at]
            was = ast.get_source_segment(source, node)
            drawn.append({"room": room, "file": path, "line": node.lineno, "was": was, "is": ast.unparse(fault)})
            drawn[-1]["text"] = planted(source, node, fault)
    return drawn


def is_caught(copy: Path, fault: dict[str, Any]) -> dict[str, Any]:
    """The fault, whether the room's tests tell, and how long they took."""
    path = copy / fault["file"]
    sound = path.read_text(encoding="utf-8")
    path.write_text(fault["text"], encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", f"tests/{fault['room']}"]
    chosen = ("-m", "not browser and not slow and not gpu")
    own = {**os.environ, "PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    began = time.monotonic()
    try:
        ran = subprocess.run([*command, *chosen], cwd=copy, env=own, capture_output=True, timeout=SECONDS, check=False)
        caught = ran.returncode != 0
    except subprocess.TimeoutExpired:
        caught = True
    finally:
        path.write_text(sound, encoding="utf-8")
    told = {key: value for key, value in fault.items() if key != "text"}
    return {**told, "caught": caught, "seconds": round(time.monotonic() - began)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=41)
    parser.add_argument("--rooms", nargs="+", default=["report", "comparison"])
    parser.add_argument("--faults", type=int, default=40)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    faults = draw(asked.rooms, asked.faults, asked.seed)
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as folder:
        copies = [Path(folder, str(number)) for number in range(asked.workers)]
        for copy in copies:
            subprocess.run(["git", "worktree", "add", "--quiet", "--detach", copy, "HEAD"], cwd=ROOT, check=True)
        try:
            with ThreadPoolExecutor(asked.workers) as pool:
                parts = pool.map(
                    lambda number: [is_caught(copies[number], each) for each in faults[number :: asked.workers]],
                    range(asked.workers),
                )
            found = [each for part in parts for each in part]
        finally:
            for copy in copies:
                subprocess.run(["git", "worktree", "remove", "--force", copy], cwd=ROOT, check=True)
    found.sort(key=lambda each: (each["room"], each["file"], each["line"]))
    caught = {room: sum(each["caught"] for each in found if each["room"] == room) for room in asked.rooms}
    told = {"commit": commit.stdout.strip(), "seed": asked.seed, "caught": caught, "faults": found}
    rows = ",\n".join(f"  {json.dumps(each)}" for each in told.pop("faults"))
    head = json.dumps(told)[1:-1]
    asked.out.write_text(f'{{\n {head},\n "faults": [\n{rows}\n ]\n}}\n', encoding="utf-8")
    print(", ".join(f"{room}: {count} of {asked.faults // len(asked.rooms)}" for room, count in caught.items()))  # noqa: T201


if __name__ == "__main__":
    main()
