"""Which values that are read from tensors decide what runs next."""

from pathlib import Path

import pytest

from tracekit.measure.branches import steers_branch

HELPER = """
def helped(x):
    return x.sum().item()  # read in helped

def kept(x):
    v = x.sum().item()  # read in kept
    return x * v
"""


@pytest.mark.parametrize(
    ("body", "steers"),
    [
        ("if x.sum().item() > 0: x = -x", True),
        ("while bool(x.any().item()): x = -x", True),
        ("y = x if x.max().item() else -x", True),
        ("assert x.max().item() < 9", True),
        ("for _ in range(x.max().item()): x = -x", True),
        ("n = int(x.max())\n    if n > 3: x = -x", True),
        ("n = x.max().item()\n    for _ in range(n): x = -x", True),
        # What is reckoned from the value is a tensor.
        ("x = x * x.max().item()\n    if x.ndim > 1: x = -x", False),
        ("n = x.max().item()\n    if x.ndim > 1: x = x * n", False),
        ("x = x / x.max().item()", False),
        ("if x.ndim > 1:\n        x = x / x.max().item()", False),
    ],
)
def test_a_value_steers_where_a_test_has_it(tmp_path: Path, body: str, steers: bool) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"def forward(x):\n    {body}\n    return x\n")
    text = file.read_text().splitlines()
    line = next(number for number, each in enumerate(text, 1) if "max()" in each or "any()" in each or "sum()" in each)
    assert steers_branch([(str(file), line, "forward")]) == steers


@pytest.mark.parametrize(
    ("helper", "call", "steers"),
    [
        ("helped", "if helped(x) > 0: pass", True),
        ("helped", "v = helped(x)", False),
        ("kept", "if kept(x) is None: pass", False),
    ],
)
def test_what_a_helper_returns_is_looked_for_where_it_is_called(
    tmp_path: Path, helper: str, call: str, steers: bool
) -> None:
    file = tmp_path / "model.py"
    file.write_text(f"{HELPER}\ndef forward(x):\n    {call}\n    return x\n")
    text = file.read_text().splitlines()
    read = next(number for number, each in enumerate(text, 1) if f"read in {helper}" in each)
    called = next(number for number, each in enumerate(text, 1) if call in each)
    assert steers_branch([(str(file), called, "forward"), (str(file), str(read), helper)]) == steers


def test_of_code_that_is_not_there_nothing_is_known() -> None:
    assert not steers_branch([])
    assert not steers_branch([("/nowhere/model.py", 3, "forward")])
