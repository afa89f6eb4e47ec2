from __future__ import annotations

from tracekit.shell import split_variables, variable_words, with_variables


def test_variables_stand_before_the_command_as_a_shell_takes_them() -> None:
    assert with_variables("tracekit doctor", {}) == "tracekit doctor"
    assert with_variables("tracekit doctor", {"A": "1", "B": "a b"}) == "A=1 B='a b' tracekit doctor"
    assert (variable_words({"A": "1"}), variable_words({})) == ("A=1", "")


def test_what_was_put_before_a_command_is_found_again() -> None:
    variables = {"A": "1=2", "B": "a b"}
    assert split_variables(with_variables("tracekit doctor", variables)) == (variables, ["tracekit", "doctor"])
    assert split_variables("tracekit sweep vit -- width=4") == ({}, ["tracekit", "sweep", "vit", "--", "width=4"])
