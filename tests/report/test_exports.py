import json
from typing import Any

import pytest
from msgspec.structs import replace

from tracekit.model.comparison import Side
from tracekit.model.run import Generation, UserModel
from tracekit.report.exports import benchmark_json

from ..sides import make_environment, make_form, make_settings, make_side

ASKED = Generation("generate", 16, "dynamic", fast_processor=True)
OWN = UserModel(options=("depth=1",), takes=("batch_size",))


def side(**settings: Any) -> Side:
    made = make_side("compiled", form=make_form("compiled"))
    return replace(made, settings=make_settings(**settings), environment=make_environment())


def names(*sides: Side) -> list[str]:
    return [entry["name"] for entry in json.loads(benchmark_json(sides))]


WORK = {"workload": "vit", "size": "tiny", "dtype": "float16", "batch_size": 4, "height": 1024, "width": 1024}
WORK |= {"steps": 4, "seq_length": 128, "pretrained": "org/name"}
WORK |= {"mode": "max-autotune", "scope": "vae", "dynamic": True}


@pytest.mark.parametrize(
    ("base", "change"),
    [
        *(({}, {setting: value}) for setting, value in WORK.items()),
        ({}, {"variables": {"TORCHINDUCTOR_GRAPH_PARTITION": "0"}}),
        ({"dynamic": True}, {"dynamic": False}),
        ({"generation": ASKED}, {"generation": replace(ASKED, max_new_tokens=8)}),
        ({"generation": ASKED}, {"generation": replace(ASKED, phase="decode", max_new_tokens=None)}),
        ({"generation": ASKED, "prompt": "a"}, {"prompt": "another"}),
        ({"own": OWN}, {"own": replace(OWN, options=("depth=2",))}),
        ({"own": OWN}, {"batch_size": 4}),
    ],
    ids=str,
)
def test_other_work_and_another_way_to_compile_are_another_history(base: Any, change: Any) -> None:
    one, other = side(**base), side(**{**base, **change})
    assert not set(names(one)) & set(names(other))
    assert names(one) == names(side(**base, seed=3, iterations=40))


def test_names_are_read_by_people_and_the_eager_form_was_compiled_in_no_way() -> None:
    assert names(side())[0] == (
        "flux, full size, bfloat16, batch 1, 512×512, 2 denoising steps, compiled (default, scope transformer): call"
    )
    eager = replace(side(mode="max-autotune"), label="eager", form=make_form("eager"))
    assert names(eager)[0] == "flux, full size, bfloat16, batch 1, 512×512, 2 denoising steps, eager: call"


def test_of_a_program_nothing_is_named_that_nobody_knows() -> None:
    of_program = side(workload="train.py", own=UserModel(in_program=True, as_script=True), height=None, steps=None)
    entry = json.loads(benchmark_json([of_program]))[0]
    assert entry["name"] == "train.py, bfloat16, compiled (default): call"
    assert "bfloat16, mode default" in entry["extra"].splitlines()


def test_memory_is_in_mebibytes_and_time_in_milliseconds() -> None:
    entries = json.loads(benchmark_json([side()]))
    figures = {each["name"].rpartition(": ")[2]: (each["value"], each["unit"]) for each in entries}
    assert {"peak memory": (3 * 1024, "MiB"), "call": (1.0, "ms"), "compiling": (12.5, "s")}.items() <= figures.items()
