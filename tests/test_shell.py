from __future__ import annotations

from tracekit.shell import with_variables


def test_variables_stand_before_the_command_as_a_shell_takes_them() -> None:
    assert with_variables("tracekit doctor", {}) == "tracekit doctor"
    assert with_variables("tracekit doctor", {"A": "1", "B": "a b"}) == "A=1 B='a b' tracekit doctor"
    assert with_variables("", {"A": "1"}) == "A=1"
