import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.cli.runs import invoke

import tracekit
from tracekit.asked import without_numpy
from tracekit.errors import TracekitError
from tracekit.model.option import MOST_CALLS

MODULE = torch.nn.Linear(2, 2).eval()
LONG = "a" * (2**20 + 1)
#: Options of a program, with a piece of what is said of each.
REFUSED: tuple[tuple[dict[str, Any], str], ...] = (
    *(({"time_budget": value}, "above 0 to 10,000,000") for value in (-1, 0, 1e8, math.nan, math.inf, "3", True)),
    *(({"target": value}, "from 1e-06 to 100") for value in (0, -1, 1e-9, 101, math.nan)),
    *(({"iterations": value}, f"from 1 to {MOST_CALLS:,}") for value in (0, 2.5, True, MOST_CALLS + 1, "3")),
    *(({"seed": value}, "whole number from -9,223") for value in (2**63, -(2**63) - 1, 2**70, 1.0, None)),
    *(({"name": value}, "without NUL") for value in ("\ud800", "a\0b", "-x", LONG, 3)),
    *(({"out": value}, "without control characters") for value in ("traces/\udcff", "a\0b", "a\nb")),
    *(({"scope": value}, "without NUL") for value in ("\ud800", LONG, 3)),
    *(({"compile": {name: "no"}}, "True or False") for name in ("fullgraph", "dynamic")),
    *(({"compile": value}, "True, False, or") for value in (0, "no", None, MODULE)),
    *(({name: np.array([1, 2])}, "True or False") for name in ("force", "provenance", "numerics", "quiet")),
    # What Python takes for a number or a text, and no file.
    *(({"target": value}, "a number") for value in (Path("2"), "\ud800")),
    *(({"seed": value}, "a whole number") for value in (Path("2"), "\ud800")),
    *(({"name": value}, "text of") for value in (np.str_("mine"), Path("mine"))),
)


@pytest.mark.parametrize(("options", "allowed"), REFUSED)
def test_what_no_run_can_hold_is_refused_before_a_model_is_called(
    options: dict[str, Any], allowed: str, tmp_path: Path
) -> None:
    def never_called() -> None:
        raise AssertionError

    with pytest.raises(TracekitError) as refused:
        tracekit.profile(never_called, **{"out": tmp_path / "run", "quiet": True, **options})
    compiling = options.get("compile")
    (name,) = compiling if isinstance(compiling, dict) else options
    assert str(refused.value).startswith(f"{name}=") and allowed in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1 and len(str(refused.value)) < 250
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    "more", [{"title": "\ud800"}, {"notes": ("a\0",)}, {"notes": (3,)}, {"modules": {"\ud800": MODULE}}]
)
def test_so_is_what_a_workload_says_of_itself(more: dict[str, Any], tmp_path: Path) -> None:
    def never_called() -> None:
        raise AssertionError

    workload = tracekit.Workload(**{"call": never_called, "modules": {"model": MODULE}, **more})
    with pytest.raises(TracekitError, match=r"(Workload's \w+|name)=.* without NUL"):
        tracekit.profile(workload, out=tmp_path / "run", quiet=True)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "allowed"),
    [
        *(({"steps": value}, "a whole number from") for value in (0, 2.5, True, "\ud800")),
        *(({"skip": value}, "a whole number from") for value in (-1, "1")),
        *(({name: np.array([1, 2])}, "True or False") for name in ("force", "digest")),
        *(({"out": value}, "without control characters") for value in ("\ud800", "a\0b", "a\nb")),
    ],
)
def test_so_is_what_a_recording_is_asked_for(options: dict[str, Any], allowed: str, tmp_path: Path) -> None:
    (name,) = options
    with (
        pytest.raises(TracekitError, match=f"{name}=.*{allowed}"),
        tracekit.record(**{"out": tmp_path / "a", **options}),
    ):
        raise AssertionError
    assert not any(tmp_path.iterdir())


def test_so_is_a_variable_that_steers_torch_and_is_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_OF_A_TEST", "a\udcff")
    with pytest.raises(TracekitError, match=r"^environment='TORCHINDUCTOR_OF_A_TEST=.*as UTF-8"):
        tracekit.profile(MODULE, torch.ones(1, 2), compile=False, out=tmp_path / "run", iterations=1, quiet=True)
    assert not (tmp_path / "run").exists()


#: Of commands that measure: an option, what it does not take, and what it does.
REFUSED_OPTIONS = (
    ("--seed", str(2**63), "to 9,223,372,036,854,775,807"),
    ("--time-budget", "1e8", "above 0 to 10,000,000"),
    ("--target", "1e-9", "from 1e-06 to 100"),
    ("--batch-size", str(2**53 + 1), "to 9,007,199,254,740,992"),
    ("--timeout", "1e300", "above 0 to 10,000,000"),
    ("--out", "traces/\udcff", "as UTF-8"),
)


@pytest.mark.parametrize(("option", "value", "allowed"), [*REFUSED_OPTIONS, ("--scope", "\udcff", "without NUL")])
def test_so_is_what_a_command_is_asked_for(option: str, value: str, allowed: str, tmp_path: Path) -> None:
    assert_option_is_refused(("profile", "--compiled"), option, value, allowed, tmp_path)


def assert_option_is_refused(command: tuple[str, ...], option: str, value: str, allowed: str, folder: Path) -> None:
    """In one line, before anything is written."""
    workload = ("gpt", "--nproc", "1") if option == "--timeout" else ("vit",)
    result = invoke(*command, *workload, "--out", str(folder / "a"), option, value)
    assert result.exit_code == 1, result.output
    assert result.output.startswith(f"error: {option} ") and allowed in result.output
    assert len(result.output.splitlines()) == 1 and not any(folder.iterdir())


def test_the_ends_of_what_is_allowed_are_kept_and_read_again(tmp_path: Path) -> None:
    for number, seed in enumerate((-(2**63), 2**63 - 1)):
        place = tmp_path / f"run{number}"
        tracekit.profile(MODULE, torch.ones(1, 2), compile=False, out=place, seed=seed, iterations=1, quiet=True)
        assert tracekit.load(place).settings.seed == seed


def test_a_number_of_numpy_is_one_of_python() -> None:
    assert [(type(each), each) for each in map(without_numpy, (np.int64(3), np.float32(0.5), 3, None, "3"))] == [
        (int, 3),
        (float, 0.5),
        (int, 3),
        (type(None), None),
        (str, "3"),
    ]
