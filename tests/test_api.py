"""tracekit in a program."""

import errno
import gc
import os
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.forked_ranks import found_by_ranks

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import tracekit  # noqa: E402
from tracekit.cli.main import main  # noqa: E402
from tracekit.errors import TracekitError  # noqa: E402
from tracekit.model.run import Run  # noqa: E402
from tracekit.reading.sides import load_side  # noqa: E402
from tracekit.reading.traces import Reading  # noqa: E402
from tracekit.tracefile.read import read_trace  # noqa: E402

TRACES, DATA = Path(__file__).parents[1] / "traces", Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # What is tested here is the CPU's path.
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)


def model() -> Any:
    return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.Linear(8, 8)).eval()


@pytest.mark.parametrize(
    ("used", "heavy"),
    [
        ("", {"torch", "numpy", "polars", "plotly", "click", "rich", "msgspec", "tracekit.api"}),
        # Regions and the noun for a workload need no torch, and what reads traces neither.
        ("tracekit.Workload; tracekit.region('x')", {"torch"}),
        (f"tracekit.analyze({str(DATA / 'vit_eager.json.zst')!r}, window='tracekit.iteration#0')", {"torch"}),
    ],
)
def test_importing_tracekit_imports_next_to_nothing(used: str, heavy: set[str]) -> None:
    code = f"import sys, tracekit; {used}\nprint(sorted({heavy} & set(sys.modules)), tracekit.__version__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"[] {tracekit.__version__}"


def test_what_tracekit_has_not_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'profil'"):
        tracekit.profil  # type: ignore[attr-defined]  # noqa: B018


of_one_run = pytest.mark.xdist_group("profiled by the API")


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """A model, the run of it, and random numbers drawn before and after."""
    net, x = model(), torch.randn(4, 8)
    folder = tmp_path_factory.mktemp("api")
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        run = tracekit.profile(net, x, compile={"dynamic": False}, name="net", out=folder / "run", iterations=3)
    return net, run, (expected, torch.rand(2))


@pytest.mark.slow
@of_one_run
def test_profile_returns_the_run_of_both_forms(profiled: Any) -> None:
    _, run, _ = profiled
    assert isinstance(run, Run)
    assert (run.status, [form.name for form in run.forms]) == ("complete", ["eager", "compiled"])
    assert (run.settings.workload, run.settings.dynamic, run.settings.dtype) == ("net", False, "float32")
    assert all(len(form.wall_us) == 3 and len(form.recordings) == 2 for form in run.forms)
    assert tracekit.load(run.folder) == run
    assert run.command.startswith("tracekit.profile(net) in ")


@pytest.mark.slow
@of_one_run
def test_the_model_and_the_random_numbers_are_left_as_they_were(profiled: Any) -> None:
    net, _, (expected, drawn) = profiled
    assert net._compiled_call_impl is None
    assert torch.equal(expected, drawn)


@pytest.mark.slow
@of_one_run
def test_a_run_writes_its_report_and_tells_its_verdict(profiled: Any, tmp_path: Path) -> None:
    _, run, _ = profiled
    assert run.compare().verdict.speedup > 0
    page = run.report(tmp_path / "reports")
    assert page == tmp_path / "reports" / "run.html"
    assert "net" in page.read_text() and page.with_suffix(".md").is_file()
    assert "random weights" not in page.with_suffix(".md").read_text()


def test_a_recorded_run_is_drawn_and_shown_in_a_notebook() -> None:
    run = tracekit.load(TRACES / "h100-vit")
    figures = run.figures()
    assert list(figures) == [
        *("call", "waterfall", "modules", "family-times", "family-counts", "idle-causes", "compile-phases")
    ]
    assert {type(each).__name__ for each in figures.values()} == {"Figure"}
    comparison = run.compare()
    for shown in (run._repr_html_(), comparison._repr_html_()):
        assert shown.startswith("<pre") and "faster compiled" in shown and "To speed up" in shown
        assert "-v" not in shown and "\x1b" not in shown


def test_a_run_is_printed_in_five_lines() -> None:
    what, answer, parts, compiling, folder = str(tracekit.load(TRACES / "h100-vit")).splitlines()
    assert "vit" in what and "faster compiled" in answer and "GPU idle" in parts and "ms" in parts
    assert "Compile time" in compiling and "pays off" in compiling and folder == str(TRACES / "h100-vit")


def test_a_trace_is_analyzed_and_two_are_compared_as_the_commands_do() -> None:
    eager, compiled, window = DATA / "vit_eager.json.zst", DATA / "vit_default.json.gz", "tracekit.iteration#0"
    one = tracekit.analyze(eager, window=window)
    assert one.side.analysis.window.kind == "span" and "idle-causes" in one.figures()
    shown = CliRunner().invoke(main, ["analyze", str(eager), "--window", window], env={"COLUMNS": "100"}).stdout
    # Without where more is.
    assert [line.rstrip() for line in shown.splitlines()][: len(str(one).splitlines())] == str(one).splitlines()
    both = tracekit.compare(eager, compiled, window=window)
    assert both.verdict.result == "not_timed" and "waterfall" in both.figures()
    assert "Profiled ratio" in str(both) and both._repr_html_().startswith("<pre")
    with pytest.raises(TracekitError, match="pass a second one"):
        tracekit.compare(eager)


def test_a_run_is_named_by_its_folder_or_as_it_was_loaded() -> None:
    run = tracekit.load(TRACES / "h100-vit")
    assert tracekit.compare(run).verdict == run.compare().verdict
    assert tracekit.analyze(run.folder, form="eager").side.label == "eager"


def test_the_public_names_are_listed_before_any_is_used() -> None:
    code = "import tracekit; print(sorted(each for each in dir(tracekit) if not each.startswith('_')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(sorted({*tracekit.__all__} - {"__version__"}))


def test_the_eager_form_alone_can_be_asked_for() -> None:
    run = tracekit.profile(lambda x: x + 1, torch.ones(3), compile=False, iterations=2, quiet=True)
    assert [form.name for form in run.forms] == ["eager"]
    assert run.folder == Path("traces/function-eager")
    page = run.report()
    assert page == Path("reports/function-eager.html")
    assert "function" in page.read_text() and "eager" in page.with_suffix(".md").read_text()
    assert run.figures() == {} and "function" in run._repr_html_()
    assert str(run).startswith("eager · function") and str(run).endswith("traces/function-eager")
    with pytest.raises(TracekitError, match=r"tracekit\.profile without compile=False"):
        run.compare()


def test_a_run_and_its_report_are_kept_unless_told_otherwise() -> None:
    asked: Any = {"compile": False, "iterations": 2, "quiet": True, "numerics": False, "provenance": False}
    first = tracekit.profile(model(), torch.ones(1, 8), **asked)
    page = first.report()
    assert tracekit.load(first.folder).report() == page
    with pytest.raises(TracekitError, match=r"pass force=True .*out="):
        tracekit.profile(model(), torch.ones(1, 8), **asked)
    again = tracekit.profile(model(), torch.ones(1, 8), force=True, **asked)
    # What comes later knows nothing of the run that was there.
    with pytest.raises(TracekitError, match="is the report of something else; pass force=True to replace it, or ano"):
        tracekit.load(again.folder).report()
    assert again.report() == page
    assert tracekit.load(again.folder).report() == page
    for path in (page, page.with_suffix(".md")):
        path.write_text("mine")
        with pytest.raises(TracekitError, match=rf"{path.name} .*not a report"):
            again.report()
        assert path.read_text() == "mine"
        again.report(force=True)


def test_what_the_model_raises_comes_as_it_is_and_leaves_nothing() -> None:
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        tracekit.profile(model(), torch.ones(1, 9), quiet=True)
    assert not [path for path in Path().rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("asked", "options", "message"),
    [
        (model, {"compile": {"backend": "eager"}}, "backend"),
        (model, {"compile": {"mode": "fast"}}, "no mode 'fast'"),
        (model, {"iterations": 3, "target": 1.0}, "--target"),
        (lambda: torch.compile(model()), {}, "without torch.compile"),
        (lambda: torch.compile(lambda x: x), {}, "without torch.compile"),
        (lambda: 3, {}, "takes a module, a function or a Workload, not an int"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: Callable[[], Any], options: Any, message: str) -> None:
    with pytest.raises(TracekitError, match=message):
        tracekit.profile(asked(), torch.ones(1, 8), quiet=True, **options)


def test_a_model_without_its_inputs_is_said_to_lack_them() -> None:
    with pytest.raises(TracekitError, match=r"was given a Sequential without inputs .*: tracekit\.profile\(model, x\)"):
        tracekit.profile(model(), quiet=True)


def train(recorder: Any, steps: int) -> None:
    net = model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        with recorder.step():
            with tracekit.region("forward"):
                loss = net(torch.randn(4, 8)).square().mean()
            with tracekit.region("backward"):
                loss.backward()
            with tracekit.region("optimizer"):
                optimizer.step()
                optimizer.zero_grad()


def operators(window: str) -> tuple[int, set[str]]:
    """How many spans there are, and what ran in them, by name."""
    analysis = load_side("traces/mine", reading=Reading(window, cached=False)).analysis
    assert analysis.cpu is not None
    return analysis.window.steps, {each.name for each in analysis.cpu.top}


def test_some_steps_of_a_loop_are_recorded_with_their_regions() -> None:
    with tracekit.record("traces/mine", steps=2) as recorder:
        train(recorder, 8)
    trace = read_trace(Path("traces/mine/trace.json.gz"))
    named = trace.host.filter(trace.host["kind"] == "annotation")["name"].to_list()
    assert [name for name in named if name.startswith("tracekit.step#")] == ["tracekit.step#0", "tracekit.step#1"]
    assert [named.count(name) for name in ("forward", "backward", "optimizer")] == [2, 2, 2]
    assert [path.name for path in Path("traces/mine").iterdir()] == ["trace.json.gz"]
    steps, _ = operators("auto")
    forward, ran_forward = operators("forward")
    backward, ran_backward = operators("backward")
    assert (steps, forward, backward) == (2, 2, 2)
    assert "aten::gelu_backward" in ran_backward - ran_forward
    assert "aten::gelu" in ran_forward - ran_backward


def test_a_block_without_steps_is_recorded_whole() -> None:
    with tracekit.record("traces/mine"), tracekit.region("all"):
        torch.ones(3).sin()
    assert "aten::sin" in operators("all")[1]


def test_a_loop_that_changes_its_folder_is_recorded_where_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    with tracekit.record("mine"):
        torch.ones(3).sin()
        monkeypatch.chdir("elsewhere")
    assert [each.name for each in (tmp_path / "mine").iterdir()] == ["trace.json.gz"]
    assert not any((tmp_path / "elsewhere").iterdir())


def test_what_is_not_recorded_is_not_profiled() -> None:
    with tracekit.record("traces/mine", steps=1, skip=1) as recorder:
        for number in range(3):
            with recorder.step():
                assert torch.autograd.profiler._is_profiler_enabled is (number == 1)
    with tracekit.record("traces/none", enabled=False) as recorder:
        train(recorder, 1)
    assert not Path("traces/none").exists()


def test_too_short_a_loop_warns_and_does_not_end_the_program() -> None:
    with (
        pytest.warns(UserWarning, match=r"2 steps, .*after 3"),
        tracekit.record("traces/mine", steps=2) as recorder,
    ):
        train(recorder, 2)
    assert not Path("traces/mine").exists()


def test_a_loop_that_ends_early_keeps_the_steps_it_made_and_says_how_many() -> None:
    with (
        pytest.warns(UserWarning, match=r"^2 of 5 steps .*traces/mine") as warned,
        tracekit.record("traces/mine", steps=5, skip=0) as recorder,
    ):
        train(recorder, 2)
    assert [each.filename for each in warned] == [__file__], "at a line of the program's own"
    assert operators("steps")[0] == 2


def test_a_loop_of_all_its_steps_warns_of_nothing() -> None:
    with warnings.catch_warnings(), tracekit.record("traces/mine", steps=2, skip=0) as recorder:
        warnings.simplefilter("error")
        train(recorder, 2)


@pytest.mark.parametrize("theirs", [ValueError("theirs"), KeyboardInterrupt("theirs"), GeneratorExit("theirs")])
def test_an_exception_passes_and_the_profiler_is_off_again(theirs: BaseException) -> None:
    def steps() -> None:
        with tracekit.record("traces/mine", steps=1, skip=0) as recorder, recorder.step():
            # What is in the way of writing is not said beside it.
            shutil.rmtree("traces/mine")
            raise theirs

    with pytest.raises(type(theirs), match="theirs") as raised:
        steps()
    assert raised.value is theirs and theirs.__context__ is None
    assert not torch.autograd.profiler._is_profiler_enabled
    assert not Path("traces/mine").exists()
    with tracekit.record("traces/mine"):
        torch.ones(1)


def test_a_recording_that_is_there_is_kept_unless_told_otherwise() -> None:
    for force in (False, True):
        with tracekit.record("traces/mine", force=force):
            torch.ones(1)
    with pytest.raises(TracekitError, match="pass force=True"), tracekit.record("traces/mine"):
        pytest.fail("the block is not to begin")


RANKS = """
def step(force):
    with tracekit.record("mine", steps=2, skip=1, force=force) as recorder:
        for _ in range(3):
            with recorder.step():
                dist.all_reduce(torch.ones(64))
    dist.barrier()

step(False)
try:
    step(False)
except TracekitError as error:
    refused = str(error)
dist.barrier()
# Of a larger job, and of one process.
for name in ("rank2.json.gz", "trace.json.gz") if rank == 0 else ():
    Path("mine", name).write_bytes(b"")
dist.barrier()
step(True)
found = [refused, sorted(path.name for path in Path("mine").iterdir())]
"""


@pytest.mark.slow
def test_ranks_record_into_one_folder_a_trace_each(tmp_path: Path) -> None:
    imports = "import torch, tracekit; from pathlib import Path; from tracekit.errors import TracekitError"
    refused, names = found_by_ranks(imports, RANKS, tmp_path)
    assert "rank0.json.gz already exists; pass force=True" in refused
    assert names == ["rank0.json.gz", "rank1.json.gz"]
    recorded = [read_trace(tmp_path / "mine" / name).distributed for name in names]
    assert [each and (each.rank, each.world_size) for each in recorded] == [(0, 2), (1, 2)]


def test_one_recording_at_a_time() -> None:
    ran = False
    with (
        tracekit.record("traces/mine"),
        pytest.warns(UserWarning, match="another profiler was active") as warned,
        tracekit.record("traces/other"),
    ):
        ran = True
    assert ran and [each.filename for each in warned] == [__file__]
    assert not Path("traces/other").exists()
    assert Path("traces/mine/trace.json.gz").is_file()


def test_a_generator_that_is_left_takes_its_recording_with_it() -> None:
    def steps() -> Iterator[None]:
        with tracekit.record("traces/mine"):
            yield

    generator = steps()
    next(generator)
    del generator
    gc.collect()
    assert not torch.autograd._profiler_enabled() and not Path("traces/mine").exists()
    with tracekit.record("traces/mine"):
        torch.ones(1)


@contextmanager
def small_files() -> Iterator[None]:
    """As on a full disk, no file takes more than a few bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_is_full_is_one_warning_and_nothing_is_left() -> None:
    with (
        pytest.warns(UserWarning, match=f"into .*/traces/mine: {os.strerror(errno.EFBIG)}") as warned,
        small_files(),
        tracekit.record("traces/mine", digest=True),
    ):
        torch.ones(3).sin()
    assert len(warned) == 1
    assert not Path("traces/mine").exists()


def test_a_folder_that_is_gone_is_one_warning() -> None:
    with (
        pytest.warns(UserWarning, match=f"into .*/traces/mine: {os.strerror(errno.ENOENT)}") as warned,
        tracekit.record("traces/mine", digest=True),
    ):
        shutil.rmtree("traces/mine")
    assert len(warned) == 1
    assert not Path("traces/mine").exists()


def test_what_cannot_be_replaced_is_kept_and_not_digested(monkeypatch: pytest.MonkeyPatch) -> None:
    with tracekit.record("traces/mine"):
        torch.ones(1)
    before = Path("traces/mine/trace.json.gz").read_bytes()
    with (
        pytest.warns(UserWarning, match="no trace was written") as warned,
        small_files(),
        tracekit.record("traces/mine", force=True, digest=True),
    ):
        torch.ones(3).sin()
    assert len(warned) == 1
    assert [path.name for path in Path("traces/mine").iterdir()] == ["trace.json.gz"]
    assert Path("traces/mine/trace.json.gz").read_bytes() == before


def test_what_another_rank_is_writing_is_no_stranger() -> None:
    folder = Path("traces/mine")
    folder.mkdir(parents=True)
    for name in (".rank1.json", ".rank1.json.tmp", f".rank1.json.gz.{'0a' * 8}", f".rank1.digest.{'0a' * 8}"):
        (folder / name).touch()
    with tracekit.record(folder):
        torch.ones(1)
    assert (folder / "trace.json.gz").is_file() and len(list(folder.iterdir())) == 5


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("\ud800", "\ufffd"),
        ("a\0b", "a\ufffdb"),
        ('a "b" & \\c', 'a "b" & \\c'),
        ("Vorwärts", "Vorwärts"),
        ("x" * 10**6, "x" * 200),
        (3, "3"),
        (None, "NoneType"),
    ],
)
def test_any_name_of_a_region_can_be_recorded(name: Any, written: str) -> None:
    with tracekit.record("traces/mine"), tracekit.region(name):
        torch.ones(1)
    host = read_trace(Path("traces/mine/trace.json.gz")).host
    assert host.filter(host["kind"] == "annotation")["name"].to_list() == [written]
