"""Options of a user's `build()`, its arguments, and whose what a call raised is."""

from collections.abc import Callable
from typing import Any, Literal

import pytest
from msgspec.structs import replace
from tests.sides import make_settings

from tracekit.errors import DoesNotFitError, TheirCodeError, TracekitError
from tracekit.model.run import UserModel
from tracekit.numbers import percent
from tracekit.workloads.own_errors import their_calls
from tracekit.workloads.own_function import arguments_of, parse_options, taken

COMMON = {"batch_size": 3, "dtype": "d", "device": "cpu", "seed": 7}


def build(
    layers: int = 2, rate=0.5, kind: Literal["a", "b"] = "a", causal: bool = False, depth: int | None = 1, free=None
):
    """As a user writes one, some of it without annotations."""


def arguments(*options: str, function: Any = build) -> dict[str, Any]:
    return arguments_of(function, "m.py:build", options, COMMON)


def test_the_three_ways_to_write_an_option_are_the_same() -> None:
    assert parse_options(["layers=3", "--width=4", "--d-model", "5"]) == ("layers=3", "width=4", "d_model=5")


@pytest.mark.parametrize("words", [["layers"], ["--layers"], ["3=4"], ["a=1", "--a", "2"], ["=x"]])
def test_what_is_no_option_is_refused(words: list[str]) -> None:
    with pytest.raises(TracekitError, match="after --"):
        parse_options(words)


def test_values_become_what_the_annotation_or_the_default_says() -> None:
    found = arguments("layers=3", "rate=1", "kind=b", "causal=true", "depth=null", "free=2")
    assert found == {"layers": 3, "rate": 1.0, "kind": "b", "causal": True, "depth": None, "free": 2}
    assert isinstance(found["rate"], float)
    assert arguments("free=two")["free"] == "two"


def test_annotations_as_text_are_understood_and_unknown_ones_give_the_word_as_it_is() -> None:
    def other(layers: "int", path: "Nowhere" = None):  # type: ignore[name-defined]  # noqa: F821
        ...

    assert arguments("layers=3", "path=x", function=other)["path"] == "x"


WANTED = {
    "layers=two": "a whole number",
    "rate=x": "a number",
    "kind=c": "a or b",
    "causal=yes": "true or false",
    "depth=x": "a whole number or null",
}


@pytest.mark.parametrize("option", WANTED)
def test_a_value_of_another_type_is_refused(option: str) -> None:
    with pytest.raises(TracekitError, match=f"{option} .*: pass {WANTED[option]}$"):
        arguments(option)


def test_a_wrong_name_is_met_with_the_nearest_and_all_that_there_are() -> None:
    def other(depth, seed): ...

    with pytest.raises(
        TracekitError, match=r"takes no layrs: did you mean layers\? its options: layers \(int, 2\), rate"
    ):
        arguments("layrs=3")
    with pytest.raises(TracekitError, match=r"^m\.py:build takes no layrs: its options: depth$"):
        arguments("layrs=3", function=other)


def test_a_missing_argument_is_named() -> None:
    def needs(layers: int, *rest, **more): ...

    with pytest.raises(TracekitError, match="needs layers: pass it after --"):
        arguments(function=needs)
    assert arguments("layers=1", "other=2", function=needs) == {"layers": 1, "other": 2}


def test_a_function_is_given_what_it_names_of_the_common_arguments_which_go_before_the_dashes() -> None:
    def some(batch_size, seed=0): ...

    assert arguments(function=some) == {"batch_size": 3, "seed": 7}
    assert taken(some) == ("batch_size", "seed")
    assert arguments() == {}
    with pytest.raises(TracekitError, match="pass --batch-size before the --"):
        arguments("batch_size=4", function=some)
    with pytest.raises(TracekitError, match="takes no dtype"):
        arguments("dtype=float16", function=some)


OWN = replace(make_settings(), workload="my_model.py:build", own=UserModel())
IN_PROGRAM = replace(OWN, own=UserModel(in_program=True))


def raising(error: Exception) -> Callable[[], None]:
    def theirs() -> None:
        raise error

    return theirs


def ours() -> None:
    percent("many")  # type: ignore[arg-type]


def is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError)


def test_what_their_code_raised_is_theirs_with_its_line() -> None:
    with pytest.raises(TheirCodeError, match="raised ValueError: told to fail") as said, their_calls(OWN, is_memory):
        raising(ValueError("told to fail"))()
    assert "my_model.py:build()" in str(said.value) and str(said.value).endswith("in theirs")
    assert "tracekit/workloads" not in said.value.traceback.replace("tests/workloads", "")
    assert said.value.traceback.splitlines()[-1] == "ValueError: told to fail"


@pytest.mark.parametrize(
    ("settings", "call", "kind"),
    [
        (OWN, raising(MemoryError()), MemoryError),
        (OWN, ours, ValueError),
        (OWN, raising(DoesNotFitError("said already")), DoesNotFitError),
        (IN_PROGRAM, raising(ValueError()), ValueError),
        (make_settings(), raising(ValueError()), ValueError),
    ],
)
def test_all_else_is_passed_on(settings: object, call: Callable[[], None], kind: type[Exception]) -> None:
    with pytest.raises(kind) as passed, their_calls(settings, is_memory):  # type: ignore[arg-type]
        call()
    assert type(passed.value) is kind
