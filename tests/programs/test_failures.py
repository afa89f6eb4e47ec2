"""Programs that end, fail or behave otherwise than a loop of steps does: they end as they would by themselves."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.programs.running import ROOT, run

from tracekit import store

pytestmark = pytest.mark.slow

#: Compiles by a backend that takes no time.
MODEL = """
import os, sys, threading, time
import torch
from torch import nn
model = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.ReLU()), backend="eager")
x = torch.randn(4, 8)
"""
LOOP = "for number in range(20000):\n    model(x)\n"


def ended(tmp_path: Path, text: str, *arguments: str, given: str = "", **more: tuple[str, ...]) -> tuple[int, str, str]:
    (tmp_path / "program.py").write_text(text)
    made = run(tmp_path, "program.py", *arguments, given=given, **more)
    return made.returncode, made.stdout, made.stderr


def test_arguments_folder_input_and_exit_code_are_the_programs(tmp_path: Path) -> None:
    text = MODEL + LOOP + "print(sys.argv, os.getcwd(), input(), __name__, flush=True)\nsys.exit(7)\n"
    code, out, _err = ended(tmp_path, text, "--epochs", "1", given="typed\n")
    assert code == 7
    assert out == f"['program.py', '--epochs', '1'] {tmp_path} typed __main__\n"


def test_what_raises_in_eager_alone_is_the_programs_own_with_whose_step_it_was(tmp_path: Path) -> None:
    text = (
        MODEL
        + "for number in range(20000):\n    model(x)\n    if number > 20 and EAGER():\n        raise ValueError('no')\n"
    )
    text = text.replace("EAGER()", "torch._dynamo.eval_frame._stance.stance == 'force_eager'")
    code, _out, err = ended(tmp_path, text)
    assert code == 1
    assert "ValueError: no" in err and f'File "{tmp_path}/program.py"' in err
    assert "tracekit made the last step before it eager, if not this one" in err
    assert "runpy" not in err and "host.py" not in err


def test_what_raises_in_compiled_steps_says_nothing_of_eager(tmp_path: Path) -> None:
    code, _out, err = ended(
        tmp_path, MODEL + "for number in range(50):\n    model(x)\nmodel(x.double())\n", options=("--no-eager",)
    )
    assert code == 1 and "Traceback" in err and "made the last step" not in err


def test_a_program_that_catches_everything_goes_on(tmp_path: Path) -> None:
    lines = ("    try:", "        model(x)", "        1 / (number % 50)", "    except BaseException:", "        pass")
    text = "\n".join((MODEL, "for number in range(20000):", *lines, "print('over')", ""))
    code, out, err = ended(tmp_path, text)
    assert (code, out) == (0, "over\n") and "step 1 took" in err


def test_a_fork_is_its_own_and_the_parent_is_measured(tmp_path: Path) -> None:
    text = MODEL + "model(x)\nif not os.fork():\n    for _ in range(50): model(x)\n    os._exit(0)\nos.wait()\n" + LOOP
    code, _out, _err = ended(tmp_path, text)
    assert code == 0 and store.load(tmp_path / "traces" / "it").status == "complete"


def test_workers_of_a_loader_load(tmp_path: Path) -> None:
    text = MODEL + (
        "data = torch.utils.data.DataLoader(torch.randn(16000, 8), 4, num_workers=2)\n"
        "for x in data:\n    model(x)\nprint('over')\n"
    )
    code, out, err = ended(tmp_path, text)
    assert (code, out) == (0, "over\n"), err
    assert store.load(tmp_path / "traces" / "it").form("eager") is not None


def test_what_was_measured_stays_where_a_program_ends_at_once(tmp_path: Path) -> None:
    code, _out, _err = ended(tmp_path, MODEL + LOOP + "os._exit(3)\n")
    assert code == 3 and store.load(tmp_path / "traces" / "it").status == "complete"


def test_a_program_that_is_killed_while_it_is_measured_can_be_run_again(tmp_path: Path) -> None:
    text = MODEL + "for number in range(60):\n    model(x)\nos.kill(os.getpid(), 9)\n"
    assert ended(tmp_path, text)[0] == -signal.SIGKILL
    assert ended(tmp_path, MODEL + LOOP, options=("--force",))[0] == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("print('no torch')\n", "the program never imported torch: nothing was measured"),
        ("import torch\n", "the program compiles nothing: write model = torch.compile(model)"),
        (MODEL, "what is compiled was never called, or past module(...): Sequential (program.py:5)"),
        (MODEL + "model(x)\n", "1 step measured, each a call of what is compiled"),
        (
            "import torch\nmodel = torch.nn.Sequential(torch.nn.Linear(8, 8))\nmodel.compile()\nmodel(torch.ones(8))\n",
            "module.compile() of a container of torch.nn compiles at most its children",
        ),
    ],
)
def test_where_there_is_nothing_to_measure_that_is_said(text: str, says: str, tmp_path: Path) -> None:
    code, _out, err = ended(tmp_path, text)
    assert code == 0 and says in err, err
    assert not (tmp_path / "traces" / "it").exists()


def test_steps_of_a_thread_are_measured(tmp_path: Path) -> None:
    text = (
        MODEL
        + "def work():\n"
        + LOOP.replace("\n    ", "\n        ").replace("for", "    for")
        + "threading.Thread(target=work).start()\n"
    )
    code, _out, err = ended(tmp_path, text)
    assert code == 0 and store.load(tmp_path / "traces" / "it").form("eager") is not None, err


def test_a_profiler_of_the_programs_own_has_its_recording(tmp_path: Path) -> None:
    text = MODEL + (
        "with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as its:\n"
        + LOOP.replace("for", "    for").replace("\n    ", "\n        ")
        + "print('aten::linear' in {event.name for event in its.events()} or len(its.events()) > 100)\n"
    )
    code, out, err = ended(tmp_path, text)
    assert (code, out) == (0, "True\n"), err
    assert "the program has a profiler of its own at work" in err


def test_a_step_can_be_said_by_the_program(tmp_path: Path) -> None:
    lines = ("import tracekit", "for number in range(20000):", "    for _ in range(3):", "        model(x)")
    text = "\n".join((MODEL, *lines, "    tracekit.step()", ""))
    code, _out, err = ended(tmp_path, text)
    assert code == 0 and "each ended by tracekit.step()" in err


@pytest.mark.parametrize(("step", "kind"), [("span:mine", "such a span"), ("call", "a call of what is compiled")])
def test_a_step_can_be_a_span(step: str, kind: str, tmp_path: Path) -> None:
    text = MODEL + "for number in range(20000):\n    with torch.profiler.record_function('mine'):\n        model(x)\n"
    code, _out, err = ended(tmp_path, text, options=("--step", step))
    assert code == 0 and f"each {kind}" in err


def test_a_function_that_is_not_there_is_said_and_the_program_goes_on(tmp_path: Path) -> None:
    code, out, err = ended(tmp_path, MODEL + LOOP + "print('over')\n", options=("--step", "function:__main__:step"))
    assert (code, out) == (0, "over\n") and "the program has no such function" in err


def test_a_program_is_ended_when_it_is_measured(tmp_path: Path) -> None:
    code, out, err = ended(tmp_path, MODEL + "while True:\n    model(x)\n", options=("--stop",))
    assert (code, out) == (0, "") and "the program is ended (--stop)" in err


@pytest.mark.parametrize("name", ["nosuch", "nosuch.module"])
def test_a_module_that_is_not_there_is_told_as_python_tells_it(name: str, tmp_path: Path) -> None:
    made = run(tmp_path, name, options=("-m",))
    assert made.returncode == 1
    assert made.stderr.splitlines()[0].startswith(f"{sys.executable}: ") and "No module named" in made.stderr
    assert "Traceback" not in made.stderr


def test_a_module_is_run_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(MODEL + LOOP + "print(__name__, len(sys.argv))\n")
    made = run(tmp_path, "package", "one", options=("-m",))
    assert (made.returncode, made.stdout) == (0, "__main__ 2\n"), made.stderr


#: Eager calls take 10 ms, compiled ones none: what is slow is done outside of what is compiled.
PLANTED = """
import os, sys, threading, time, gc, weakref
import torch
from torch import nn
def wait():
    if torch._dynamo.eval_frame._stance.stance == "force_eager":
        time.sleep(0.01)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, x):
        return self.layer(x).relu()
net = Net()
model = torch.compile(net, backend="eager")
x = torch.randn(4, 8)
def step():
    wait()
    return model(x)
"""


@pytest.mark.parametrize("steps", [25, 31, 37, 43])
def test_a_program_whose_loop_is_over_goes_on_compiled(steps: int, tmp_path: Path) -> None:
    # Some of these end in an eager turn.
    text = PLANTED + (
        f"optimizer = torch.optim.SGD(net.parameters(), 1e-3)\nfor _ in range({steps}):\n"
        "    step().sum().backward()\n    optimizer.step()\nfor _ in range(60):\n    model(x)\n"
        "print(torch._dynamo.eval_frame._stance.stance)\n"
    )
    code, out, err = ended(tmp_path, text)
    assert (code, out) == (0, "default\n"), err


def test_an_evaluation_within_the_loop_runs_compiled_and_is_no_step(tmp_path: Path) -> None:
    lines = (
        "optimizer = torch.optim.SGD(net.parameters(), 1e-3)",
        "for number in range(1500):",
        "    step().sum().backward()",
    )
    text = "\n".join(
        (PLANTED, *lines, "    optimizer.step()", "    if number % 10 == 9:", "        for _ in range(50): step()")
    )
    code, _out, err = ended(tmp_path, text + "\n", options=("--time-budget", "2"))
    assert code == 0 and "measuring ended" not in err
    assert store.load(tmp_path / "traces" / "it").form("eager") is not None, err


def test_steps_that_raise_in_eager_and_are_caught_do_not_stay_eager(tmp_path: Path) -> None:
    lines = ("    try:", "        model(Bad())", "    except ValueError:", "        skipped += 1")
    text = PLANTED + "\n".join(
        (
            "class Bad:\n    pass",
            "def forward(self, bad):",
            "    if torch._dynamo.eval_frame._stance.stance == 'force_eager':\n        raise ValueError",
            "    return x",
            "Net.forward = forward\nskipped = 0\nfor _ in range(400):",
            *lines,
            "print(skipped < 30)\n",
        )
    )
    code, out, err = ended(tmp_path, text.replace("20000", "6000"))
    assert (code, out) == (0, "True\n"), err
    assert "measuring ended: eager steps do not come to their end" in err


@pytest.mark.parametrize("where", ["set_stance('default')", "set_stance('eager_on_recompile')"])
def test_a_program_that_sets_the_stance_itself_is_not_switched(where: str, tmp_path: Path) -> None:
    text = PLANTED + f"for number in range(300):\n    if number > 5:\n        torch.compiler.{where}\n    step()\n"
    text += "print(torch._dynamo.eval_frame._stance.stance)\n"
    code, out, err = ended(tmp_path, text)
    assert (code, out) == (0, f"{where[12:-2]}\n")
    assert "measuring ended: the program sets torch's stance itself" in err and "difference" not in err


def test_a_slow_first_step_is_not_compiling(tmp_path: Path) -> None:
    text = (
        PLANTED + "for number in range(900):\n    if not number:\n        model(x)\n        time.sleep(2)\n    step()\n"
    )
    _code, _out, err = ended(tmp_path, text, options=("--step", "call"))
    compiling = re.search(r"step 1 took ([\d.]+) (ms|s), ([\d.]+) (ms|s) of it compiling", err)
    assert compiling is not None, err
    # Compiled for nothing by this backend: a part of a second.
    assert compiling[4] == "ms" or float(compiling[3]) < 1.5


def test_a_model_that_the_program_drops_is_gone(tmp_path: Path) -> None:
    text = PLANTED + "for _ in range(4):\n    step()\nkept = weakref.ref(net)\ndel net, model\ntorch._dynamo.reset()\n"
    code, out, err = ended(tmp_path, text + "gc.collect()\nprint(kept() is None)\n")
    assert (code, out) == (0, "True\n"), err


def test_a_program_that_closes_standard_error_ends_as_it_would(tmp_path: Path) -> None:
    text = (
        PLANTED
        + "for number in range(500):\n    step()\n    if number == 20:\n        sys.stderr.close()\nprint('over')\n"
    )
    code, out, _err = ended(tmp_path, text)
    assert (code, out) == (0, "over\n")


def test_a_thread_is_not_ended_by_stop(tmp_path: Path) -> None:
    lines = ("def work():", "    for _ in range(900):", "        step()", "it = threading.Thread(target=work)")
    text = "\n".join((PLANTED, *lines, "it.start()", "it.join()", ""))
    code, out, err = ended(tmp_path, text + "print('over')\n", options=("--stop",))
    assert (code, out) == (0, "over\n") and "--stop ends no program whose steps are of a thread" in err


def test_a_coroutine_is_no_step(tmp_path: Path) -> None:
    text = PLANTED + "async def whole():\n    step()\nimport asyncio\nfor _ in range(30):\n    asyncio.run(whole())\n"
    code, _out, err = ended(tmp_path, text, options=("--step", "function:__main__:whole"))
    assert code == 0 and "returns before its work is done: it is no step" in err


def test_a_folder_that_the_program_makes_meanwhile_is_kept(tmp_path: Path) -> None:
    text = (
        PLANTED
        + "os.makedirs('traces/it')\nopen('traces/it/checkpoint', 'w').close()\nfor _ in range(900):\n    step()\n"
    )
    code, _out, err = ended(tmp_path, text)
    assert code == 0 and (tmp_path / "traces" / "it" / "checkpoint").is_file()
    assert "was made meanwhile and is not a run of tracekit" in err


SEVERAL = """
import time
import torch
from torch import nn

class Part(nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.seconds = seconds
    def forward(self, x):
        # What a compiled call need not do.
        if self.seconds and not torch.compiler.is_compiling():
            time.sleep(self.seconds)
        return x * 2

class Encoder(Part):
    pass

class Decoder(Part):
    pass

encoder = torch.compile(Encoder(0.004), backend="eager")
decoder = torch.compile(Decoder(0.0), backend="eager")
for _ in range(5000):
    time.sleep(0.004)
    decoder(encoder(torch.randn(8)))
"""


def test_of_several_callables_it_is_told_what_compiling_each_brings(tmp_path: Path) -> None:
    code, _out, err = ended(tmp_path, SEVERAL, options=("--time-budget", "4", "--stop"))
    assert code == 0, err
    found = re.search(r"compiling Encoder \(program\.py:\d+\) makes the step (\S+)× faster", err)
    assert found is not None and 1.7 < float(found[1]) < 2.2, err
    decoder = re.search(r"compiling Decoder \(program\.py:\d+\)(.+)", err)
    assert decoder is not None and ("no difference" in decoder[1] or "not enough" in decoder[1]), err


LOADING = """
import torch
from torch import nn
model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()), backend="eager")

def forward(x):
    with torch.profiler.record_function("forward"):
        return model(x)

for _ in range(20000):
    forward(torch.randn(64, 64).sort()[0])
"""


@pytest.mark.parametrize("step", ["span:forward", "function:__main__:forward"])
def test_what_is_between_steps_that_say_their_beginning_is_not_recorded_as_theirs(step: str, tmp_path: Path) -> None:
    options = ("--time-budget", "1", "--stop", "--step", step)
    code, _out, err = ended(tmp_path, LOADING, options=options)
    assert code == 0, err
    for form in ("eager", "compiled"):
        (recording,) = tmp_path.rglob(f"{form}-light.json.gz")
        with gzip.open(recording) as file:
            spans = [each for each in json.load(file)["traceEvents"] if each.get("ph") == "X"]
        steps = [each for each in spans if each["name"].startswith("tracekit.step#")]
        within = [
            {each["name"] for each in spans if step["ts"] <= each["ts"] < step["ts"] + step["dur"]} for step in steps
        ]
        assert len(steps) == 2 and all("aten::addmm" in names for names in within)
        assert not any("aten::sort" in names or "aten::randn" in names for names in within)


RECURSIVE = LOADING.replace(
    '    with torch.profiler.record_function("forward"):\n        return model(x)\n',
    """    with torch.profiler.record_function("forward"):
        return model(x) if depth == 0 else model(forward(x, depth - 1))
""",
).replace("def forward(x):", "def forward(x, depth=2):")


@pytest.mark.parametrize("step", ["span:forward", "function:__main__:forward"])
def test_of_a_step_that_calls_itself_the_outermost_is_the_step(step: str, tmp_path: Path) -> None:
    assert "depth - 1" in RECURSIVE
    code, _out, err = ended(tmp_path, RECURSIVE, options=("--time-budget", "1", "--stop", "--step", step))
    assert code == 0, err
    (recording,) = tmp_path.rglob("compiled-light.json.gz")
    with gzip.open(recording) as file:
        spans = [each for each in json.load(file)["traceEvents"] if each.get("ph") == "X"]
    for mark in (each for each in spans if each["name"].startswith("tracekit.step#")):
        within = [each["name"] for each in spans if mark["ts"] <= each["ts"] < mark["ts"] + mark["dur"]]
        assert within.count("aten::addmm") == 3


def test_a_step_that_raises_and_is_made_again_is_timed_and_not_recorded(tmp_path: Path) -> None:
    again = LOADING.replace("def forward(x):", "def forward(x, fails=False):")
    again = again.replace(
        "        return model(x)\n", "        y = model(x)\n        if fails:\n            raise ValueError\n"
    )
    again = again.replace(
        "    forward(torch",
        "    try:\n        forward(torch.ones(64, 64), True)\n    except ValueError:\n        pass\n    forward(torch",
    )
    options = ("--time-budget", "1", "--stop", "--step", "function:__main__:forward")
    code, _out, err = ended(tmp_path, again, options=options)
    assert code == 0, err
    assert "no recording, so no report: a step raised while it was recorded" in err


def test_where_torch_made_no_graph_it_is_told_first(tmp_path: Path) -> None:
    """A frame that breaks in a loop is given up."""
    layers = "nn.Sequential(nn.Linear(8, 8), nn.ReLU())"
    net = "class Net(nn.Module):\n    def forward(self, x):\n        for _ in range(2):\n            print(end='')\n"
    breaking = MODEL.replace("model =", f"{net}        return x * 2\nmodel =").replace(layers, "Net()")
    options = ("--time-budget", "1", "--stop")
    told = "tracekit: torch.compile made no graph: what is compiled runs eager"
    for text, says in ((breaking, True), (MODEL, False)):
        code, _out, err = ended(tmp_path, text + LOOP, options=(*options, "--force"))
        assert code == 0 and (told in err) == says, err


def test_the_page_of_a_program_shows_what_is_known_of_it_and_no_option_of_another_command(tmp_path: Path) -> None:
    modes = "more = torch.compile(nn.Linear(8, 8), backend='eager', mode='reduce-overhead')\n"
    pauses = "for number in range(20000):\n    more(model(x))\n    if number % 200 == 199:\n        time.sleep(0.05)\n"
    code, _out, err = ended(tmp_path, MODEL + modes + pauses, options=("--time-budget", "1", "--stop"))
    assert code == 0, err
    page = (tmp_path / "reports" / "it.md").read_text()
    assert "| mode | default, reduce-overhead |" in page and "| dtype | float32 |" in page
    for unknown in ("model size", "scope", "fullgraph", "batch size", "seed", "timed calls, minimum"):
        assert f"| {unknown} |" not in page
    assert "left out: a step took over 10 times as long as usual before its first compiled call" in page
    words = {each.rstrip(".,;:)`") for each in re.findall(r"(?<![-\w])--[a-z][\w-]*\S?", page.split("## Reproduce")[0])}
    assert words <= {"--time-budget", "--target"} and "Size chosen" not in page
    assert "eager ran first" not in page


RANKS = """
import os, sys, time
import torch, torch.distributed as dist
from torch import nn
dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(0)
inner = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)))
model = torch.compile(inner, backend="eager")
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for number in range(int(sys.argv[1]) + (rank == 1 and sys.argv[2] == "more")):
    if rank == 1 and sys.argv[2] == "raises" and number == 20:
        raise ValueError("one rank")
    if number == int(sys.argv[1]):
        optimizer.step()
        break
    model(torch.randn(4, 8)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
os.write(1, f"rank {rank} over\\n".encode())
# A process that ends with threads of gloo is aborted now and then, by torch alone too.
del model, inner, optimizer
dist.destroy_process_group()
"""


def of_two_ranks(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "program.py").write_text(RANKS)
    words = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "tracekit"]
    words += ["run", "--time-budget", "0.2", "--out", "traces/it", "program.py", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=400
    )


def test_two_ranks_switch_together_and_the_first_one_speaks(tmp_path: Path) -> None:
    made = of_two_ranks(tmp_path, "1500", "equal")
    assert made.returncode == 0, made.stderr[-3000:]
    assert sorted(made.stdout.splitlines()) == ["rank 0 over", "rank 1 over"]
    assert made.stderr.count("tracekit: some steps will run eager") == 1
    folder = tmp_path / "traces" / "it"
    assert {path.name for path in (folder / "compiled-ranks").iterdir()} == {"rank0.json.gz", "rank1.json.gz"}
    measured = store.load(folder)
    assert [form.name for form in measured.forms] == ["eager", "compiled"]


@pytest.mark.parametrize("how", ["raises", "more"])
def test_ranks_that_do_not_make_the_same_steps_are_not_held_up_by_us(how: str, tmp_path: Path) -> None:
    made = of_two_ranks(tmp_path, "40", how)
    assert (made.returncode == 0) == (how == "more"), made.stderr[-3000:]
    if how == "raises":
        assert "ValueError: one rank" in made.stderr
