"""Every command and option that tracekit prints is one that it has, and advice does what it says on a tiny model."""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import click
import pytest
from tests.cli.runs import tracekit
from tests.sides import make_settings

from tracekit import store
from tracekit.cli.main import COMMANDS, main
from tracekit.comparison.commands import profile_command, switched_command
from tracekit.comparison.findings.compilation import ANY_SIZES, REGIONAL, SWITCHES
from tracekit.comparison.findings.launch_bound import WITH, WITHOUT
from tracekit.comparison.findings.slower_kernels import SWITCH
from tracekit.model.comparison import Finding
from tracekit.model.option import MODES, OPTIONS, option_words
from tracekit.model.run import Generation, UserModel
from tracekit.report.words.short import advice_words
from tracekit.statements.findings.waiting import LaunchBound

from .command_lines import check_command, words_of
from .texts import ROOT

SOURCE = ROOT / "tracekit"
#: Where `--name` is a variable of a style sheet.
STYLES = ("plotly_figures.py",)
#: Options of docker, pip and torchrun.
OTHERS = {"--cap-add", "--force-reinstall", "--index-url", "--master-port", "--nproc-per-node"}
CAPTURED = dict.fromkeys(SWITCHES.values(), "1")
CHANGES = (
    *({"mode": mode} for mode in {*MODES, *WITH.values(), *WITHOUT.values()}),
    *(ANY_SIZES, {"dynamic": "False"}, REGIONAL, {"scope": "all"}),
)
SETTINGS = (
    make_settings(),
    make_settings(fullgraph=False, dynamic=True, pretrained="org/name", prompt="a dog's house", seed=7),
    make_settings(workload="qwen2.5-vl", generation=Generation("generate", 16, "static", fast_processor=True)),
    make_settings(workload="qwen2.5-vl", generation=Generation("decode", None, "dynamic", fast_processor=False)),
    make_settings(workload="gpt", nproc=2, parallel="fsdp2", checkpoint=True, compiled_autograd=True, dynamic=False),
    make_settings(workload="m.py:build", own=UserModel(("width=64",), ("dtype",)), variables={"TRITON_X": "9"}),
)
MODEL = """
from torch import nn, randn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x):
        x = self.inner(x)
        return x * x.max().item()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(2))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def build():
    return Model().eval(), (randn(4, 8),)
"""


def printed() -> Iterator[tuple[Path, str]]:
    """The strings of tracekit's own code that are no docstrings, what is filled in as `X`."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        apart = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
        for each in ast.walk(tree):
            if isinstance(each, ast.JoinedStr):
                apart |= {id(part) for part in each.values}
                parts = [part.value if isinstance(part, ast.Constant) else "X" for part in each.values]
                yield path, "".join(map(str, parts))
            elif isinstance(each, ast.Constant) and isinstance(each.value, str) and id(each) not in apart:
                yield path, each.value


def own_options() -> set[str]:
    commands = [main.get_command(click.Context(main), name) for name in COMMANDS]
    params = [param for command in commands if command for param in command.params]
    return {"--help", "--version", *(option for param in params for option in (*param.opts, *param.secondary_opts))}


def test_every_option_in_a_sentence_is_one_of_a_command() -> None:
    told = [(path, each) for path, text in printed() if path.name not in STYLES for each in _options(text)]
    assert len(told) > 200
    assert [(path.name, each) for path, each in told if each not in own_options() | OTHERS] == []


def _options(text: str) -> list[str]:
    return re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*\b(?![-\w]|\{)", text)


def test_every_command_in_a_sentence_is_understood() -> None:
    """Of sentences that go on behind the command only what is quoted by backticks, and whole examples."""
    pattern = re.compile(rf"`(tracekit (?:{'|'.join(COMMANDS)})\b[^`]*)`|Example: (tracekit .+)$", re.MULTILINE)
    found = [line for _, text in printed() for each in pattern.findall(text) for line in each if line]
    assert len(found) > 20
    for line in found:
        check_command(line)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: each.workload)
def test_every_command_that_is_advised_is_understood(settings: object) -> None:
    for changes, more, compiled in product((*CHANGES, {}), ((), ("--fullgraph",)), (True, False)):
        check_command(profile_command(settings, changes, more, compiled=compiled))  # type: ignore[arg-type]
    for switches in (CAPTURED, SWITCH):
        check_command(switched_command(settings, switches))  # type: ignore[arg-type]


def test_every_option_that_a_setting_or_a_finding_is_told_by_is_understood() -> None:
    values: dict[str, object] = {
        "batch_size": 4,
        "height": 64,
        "width": 64,
        "seq_length": 64,
        "steps": 2,
        "seed": 1,
        "iterations": 9,
    }
    values |= {"max_new_tokens": 4, "nproc": 2, "phase": "decode", "cache": "static", "parallel": "tp"}
    values |= {"mode": "default", "dtype": "float32", "compile_order": "before-sharding", "seed": 1, "iterations": 9}
    for each in OPTIONS:
        if each.name not in ("workload", "device", "options"):
            words = " ".join(option_words(each.name, True if each.metavar is None else values.get(each.name, "small")))
            check_command(f"tracekit profile flux --compiled {words}")
    waits = LaunchBound(wall_us=1000.0, idle_us=500.0, host_share=0.95, launching_share=0.9)
    for changes in CHANGES:
        words, _ = advice_words(Finding(waits, changes=changes))
        check_command(f"tracekit profile flux --compiled {words}")
        # A program has arguments of torch.compile in place of options.
        words, _ = advice_words(Finding(waits, changes=changes), in_program=True)
        assert words == " ".join(f"{name}={value}" for name, value in changes.items()) and "--" not in words


ROUNDING = {"TORCHINDUCTOR_EMULATE_PRECISION_CASTS": "1"}
#: What findings advise, several at once: variables and options, and what the run's settings then are.
ADVISED: tuple[tuple[dict[str, str], dict[str, str], tuple[str, ...], dict[str, object]], ...] = (
    # At the value that each layer reads this would end, were it not captured.
    ({**CAPTURED, **SWITCH, **ROUNDING}, {}, ("--fullgraph",), {"fullgraph": True, "scope": "model"}),
    ({}, {**ANY_SIZES, **REGIONAL}, (), {"dynamic": True, "scope": "regional"}),
    ({}, {"mode": "reduce-overhead", "scope": "all", "dynamic": "False"}, (), {"mode": "reduce-overhead"}),
)


@pytest.mark.slow
@pytest.mark.parametrize(("variables", "changes", "more", "settings"), ADVISED)
def test_advice_runs_and_does_what_it_says_on_a_tiny_model(
    variables: dict[str, str],
    changes: dict[str, str],
    more: tuple[str, ...],
    settings: dict[str, object],
    tmp_path: Path,
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "m.py").write_text(MODEL)
    asked = make_settings(workload="m.py:build", own=UserModel(), scope="model", fullgraph=False, variables=variables)
    words = words_of(profile_command(asked, changes, more))
    found = tracekit(*words[1:], "--iterations", 3, "--out", "run", folder=tmp_path, **variables)
    assert found.returncode == 0, found.stderr
    run = store.load(tmp_path / "run")
    assert {name: getattr(run.settings, name) for name in settings} == settings
    assert {*variables.items()} <= {*run.settings.variables.items()}
