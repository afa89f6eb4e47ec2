"""What `build()` may return, and what becomes of files and functions that do not work."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from tracekit.errors import TheirCodeError, TracekitError  # noqa: E402
from tracekit.model.progress import Silent  # noqa: E402
from tracekit.model.workload import Request  # noqa: E402
from tracekit.workloads import registry  # noqa: E402
from tracekit.workloads.own import build, workload_of_call  # noqa: E402
from tracekit.workloads.sizes import check_request, choose_size  # noqa: E402

HEAD = "import torch, tracekit\nfrom torch import nn\n"
LINEAR = "def build(): return nn.Linear(4, 4), (torch.ones(2, 4),)"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("own_", "shapes", "neighbour")):
            del sys.modules[name]


def built(code: str, name: str = "mine.py:build", **asked: Any) -> Any:
    Path("mine.py").write_text(HEAD + code)
    request = Request(name, scope="model", **asked)
    info = registry.find(name)
    check_request(info, request)
    # Without asking for memory.
    assert choose_size(info, request, "cpu", 0)[0] == "own"
    workload = build(request, "own", "cpu", Silent())
    workload.trial()
    return workload


@pytest.mark.parametrize(
    "inputs",
    ["(torch.ones(2, 4),)", "torch.ones(2, 4)", "{'input': torch.ones(2, 4)}", "(), {'input': torch.ones(2, 4)}"],
)
def test_a_module_comes_with_its_inputs(inputs: str) -> None:
    workload = built(f"def build(): return nn.Linear(4, 3).eval(), {inputs}")
    output = workload.call()
    assert output.shape == (2, 3) and not output.requires_grad
    assert [target.component for target in workload.targets] == ["model"]
    assert [(part.name, part.parameters, part.compiled) for part in workload.components] == [("model", 15, True)]
    assert workload.modules[0][1] is workload.targets[0].module


def test_a_callable_is_compiled_whole_and_its_modules_give_names() -> None:
    workload = built(
        "def build():\n net, x = nn.Sequential(nn.Linear(4, 4)), torch.ones(2, 4)\n inner = net[0]\n"
        " def step():\n  y = net(x) + inner(x)\n  y.sum().backward()\n  return y\n return step"
    )
    assert [target.component for target in workload.targets] == ["step"]
    ((name, root),) = workload.modules
    assert (name, [inner for inner, _ in root.named_children()]) == ("step", ["net"]), "inner lies in net"
    assert [(part.name, part.parameters, part.compiled) for part in workload.components] == [("step", 20, True)]
    assert workload.call().requires_grad, "a callable is called as it is"


def test_a_workload_says_itself_what_is_compiled() -> None:
    workload = built(
        "def build(batch_size):\n a, b = nn.Linear(4, 4), nn.Linear(4, 4)\n"
        " at = lambda n: lambda: b(a(torch.ones(n, 4)))\n"
        " return tracekit.Workload(call=at(batch_size), modules={'a': a, 'b': b}, compiled=('b',), call_at=at,"
        " title='Two layers', notes=('Both small.',))",
        batch_size=3,
    )
    assert workload.call().shape == (3, 4)
    assert workload.call_at(Request("x", batch_size=5))().shape == (5, 4)
    assert [(part.name, part.compiled) for part in workload.components] == [("a", False), ("b", True)]
    assert [target.component for target in workload.targets] == ["b"]
    assert workload.notes == ("Two layers", "Both small.")


def test_settings_tell_options_and_the_dtype_that_was_made() -> None:
    workload = built(
        "def build(width: int, dtype, seed):\n"
        " return nn.Linear(width, 1, dtype=dtype), (torch.ones(1, width, dtype=dtype),)",
        dtype="bfloat16",
        options=("width=6",),
    )
    assert workload.settings.dtype == "bfloat16"
    assert (workload.settings.own.options, workload.settings.own.takes) == (("width=6",), ("dtype", "seed"))
    assert workload.settings.fullgraph is False
    assert built(LINEAR, dtype="float32").settings.dtype == "float32", "it has that anyway"


def test_weights_are_the_same_for_the_same_seed_and_training_mode_is_left_on_and_said() -> None:
    workloads = [built(LINEAR, seed=seed) for seed in (1, 1, 2)]
    one, other, third = (each.call() for each in workloads)
    assert torch.equal(one, other) and not torch.equal(one, third)
    assert workloads[0].settings.own.training == ("model",) and workloads[0].targets[0].module.training


def test_a_function_is_in_training_mode_where_a_module_that_it_calls_is() -> None:
    for training in (True, False):
        code = f"def build():\n net = nn.Dropout().train({training})\n return lambda: net(torch.ones(2))"
        assert built(code).settings.own.training == ("call",) * training


def test_a_file_finds_its_neighbours_and_stands_for_no_package() -> None:
    Path("neighbour.py").write_text("WIDTH = 5")
    Path("tokenizers.py").write_text(
        HEAD + "from neighbour import WIDTH\ndef build(): return nn.Linear(WIDTH, 1), (torch.ones(1, WIDTH),)"
    )
    build(Request("tokenizers.py:build", scope="model"), "own", "cpu", Silent())
    assert "tokenizers.py" not in str(getattr(sys.modules.get("tokenizers"), "__file__", ""))


def test_a_package_in_the_folder_one_stands_in_is_found_and_what_it_lacks_is_named_whole() -> None:
    Path("shapes").mkdir()
    Path("shapes/__init__.py").touch()
    Path("shapes/net.py").write_text(HEAD + "def build(): return nn.Linear(2, 2), (torch.ones(1, 2),)")
    assert built("", "shapes.net:build").call() is not None
    with pytest.raises(TracekitError, match=r"shapes\.nett"):
        built("", "shapes.nett:build")
    with pytest.raises(TracekitError, match=r"shapes has no function 'buid'"):
        built("", "shapes:buid")


REFUSED = {
    "def biuld(): pass": "no function 'build': did you mean biuld",
    "def one(): ...\ndef two(): ...": r"^mine\.py has no function 'build': it has one, two$",
    "x = 1": "no function 'build'",
    "build = 3": "build is an int",
    "build = nn.Linear(2, 2)": "build is a Linear",
    "def build(): return 'model'": "returned a str: return a callable",
    "def build(): ...": "returned None: return a callable",
    "def build(): return tracekit.Workload": "returned the class Workload",
    "def build(): return nn.Linear(2, 2)": r"a Linear without inputs .*'input'\): return \(module, args\), as in",
    "def build(): return nn.Linear(2, 2), ()": "a Linear without inputs",
    "def build(): return nn.Linear(2, 2), {'x': 1}": "a Linear with inputs .*'input'",
    "def build(): return lambda x: x": r"a function without inputs .*'x'\): return one that takes none",
    "def build(): return nn.Linear(2, 2), 3": r"returned \(Linear, int\)",
    "def build(): return torch.compile(nn.Linear(2, 2)), (torch.ones(2),)": "already compiled",
    "def build(): return tracekit.Workload(call=print, modules={})": "no modules",
    "def build(): return tracekit.Workload(call=print, modules={'a': nn.Linear(1, 1)}, compiled=('b',))": "compiles b",
    "import no_such_package_at_all\ndef build(): ...": "line 3, imports no_such_package_at_all, which is not",
    "def build(:": "mine.py, line 3 ",
    "def build():\n\treturn 1\n        return 2": r"^mine\.py, line 5 ",
    "raise SystemExit(2)\ndef build(): ...": "__main__",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_cannot_be_built_is_one_clear_line(code: str) -> None:
    with pytest.raises(TracekitError, match=REFUSED[code]) as caught:
        built(code)
    assert not isinstance(caught.value, TheirCodeError)
    assert "\n" not in str(caught.value)


NO_SUCH_NAME = """
class Net(nn.Module):
    def forward(self, x):
        return x.no_such_name
def build(): return Net(), (torch.ones(2),)
"""


@pytest.mark.parametrize(
    ("code", "line", "message"),
    [
        ("1 / 0\ndef build(): ...", "1 / 0", "^importing mine.py raised ZeroDivisionError: division by zero, at "),
        (
            "def build():\n raise ValueError('no')",
            "raise ValueError('no')",
            r"^mine\.py:build\(\) raised ValueError: no",
        ),
        (
            "def build():\n def step():\n  return torch.ones(2) @ torch.ones(3)\n return step",
            "torch.ones(2) @",
            "raised",
        ),
        (NO_SUCH_NAME, "return x.no_such_name", "^a call of what .* returned raised AttributeError"),
    ],
)
def test_what_their_code_raises_is_shown_with_their_frames_only(code: str, line: str, message: str) -> None:
    with pytest.raises(TheirCodeError, match=message) as caught:
        built(code)
    shown = caught.value.traceback
    first = next(each for each in shown.splitlines() if "File" in each)
    assert "mine.py" in first
    assert line in shown
    assert "tracekit/" not in shown and "importlib" not in shown
    assert re.search(r", at mine\.py:\d+ in \S+$", str(caught.value)), "the last line tells theirs too"


def test_inputs_that_do_not_fit_are_said_once_with_their_shapes() -> None:
    with pytest.raises(TheirCodeError, match=r"a call of what mine\.py:build\(\) returned raised Runtime") as caught:
        built(LINEAR.replace("2, 4", "2, 5"))
    assert str(caught.value).endswith("; its inputs are 2x5 float32")
    assert not caught.value.traceback


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"batch_size": 2}, "takes no batch_size"),
        ({"dtype": "float16"}, "of float32: leave --dtype float16 out"),
        ({"size": "tiny"}, "has no size 'tiny'"),
        ({"height": 5}, "has no --height"),
        ({"options": ("width=3",)}, "takes no width"),
    ],
)
def test_what_build_does_not_take_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        built(LINEAR, **asked)


def test_a_method_names_the_module_it_belongs_to() -> None:
    net = nn.Linear(2, 2)
    given, _ = workload_of_call(net.extra_repr, (), {}, "tracekit.profile was given")
    assert [name for name, _ in given.modules["extra_repr"].named_modules()] == ["", "model"]
