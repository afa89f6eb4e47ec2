"""What torch says of small models on the CPU, and that nothing of it is told of another form."""

import logging
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import Block, make_workload

from tracekit.measure import diagnostics, forms
from tracekit.measure.compile_log import find_hint, read_break
from tracekit.measure.diagnostics import DiagnosticLog, watched
from tracekit.measure.forms import Form, compiled_form
from tracekit.model.compilation import Diagnostics, GraphBreak
from tracekit.model.workload import BuiltWorkload, CompileTarget
from tracekit.statements.noted import CompileLogSilent, CompileLogUnreadable, NoCompileLog

pytestmark = pytest.mark.usefixtures("dynamo_alone")


class Printing(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two breaks: a print, and a value taken to the host."""

    def forward(self, x: Any) -> Any:
        y = x.sin() + 1
        print("broken here")  # noqa: T201
        z = y.cos()
        largest = z.max().item()
        return z * largest


class Steering(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two breaks: a value that decides what runs next, and one that a helper reads for a branch here."""

    def forward(self, x: Any) -> Any:
        total = x.sum().item()
        y = x.sin() if total > 0 else x.cos()
        if helped(y) > 1:
            y = y + 1
        return y


class Looping(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A break inside a loop, which Dynamo cannot resume in."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Block()

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            x = x + 1
            print("in a loop")  # noqa: T201
        return self.inner(x)


class Chain(torch.nn.Sequential):  # type: ignore[misc, name-defined]
    """Its forward is torch's."""


class Outer(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Its break is a helper's, two calls away."""

    def forward(self, x: Any) -> Any:
        return x * helped(x)  # the helper is called here


def helped(x: Any) -> float:
    return read(x) * 2


def read(x: Any) -> float:
    return float(x.sum().item())  # and breaks here


def line_of(text: str) -> str:
    """`:N` of the line of this file that holds the text first."""
    lines = Path(__file__).read_text().splitlines()
    return next(f":{number}" for number, line in enumerate(lines, 1) if text in line)


def form_of(module: Any, *batches: int, **settings: Any) -> tuple[Form, DiagnosticLog]:
    """The module compiled, called with inputs of these batch sizes, one after the other, and its log."""
    following = iter(batches)

    def call() -> object:
        with torch.no_grad():
            return module(torch.ones(next(following), 8))

    workload = make_workload(call, (CompileTarget("model", module),), fullgraph=False, **settings)
    log = DiagnosticLog(workload.targets)
    return watched(compiled_form(workload), log), log


def call(form: Form, times: int = 1) -> None:
    with form.ready():
        for _ in range(times):
            form.call()


def diagnosed(module: Any, *batches: int, **settings: Any) -> Diagnostics:
    form, log = form_of(module, *batches, **settings)
    call(form, len(batches))
    return log.diagnose({})


def compiled_by(monkeypatch: pytest.MonkeyPatch, **options: Any) -> None:
    monkeypatch.setattr(forms, "compile_options", lambda _settings: options)


def test_a_break_is_told_once_with_its_line_reason_and_hint_however_often_it_is_met() -> None:
    found = diagnosed(Printing(), 4, 5, dynamic=False)
    first, second = found.breaks
    assert (first.where or "").endswith(f"test_diagnostics.py{line_of('broken here')}")
    assert (second.where or "").endswith(line_of("z.max().item()"))
    assert not Path(first.where or "").is_absolute()
    assert "print" in (first.explanation or "")
    assert (first.reason, first.code) == ("Failed to trace builtin operator: print", "gb0059")
    assert "capture_scalar_outputs" in (second.hint or "")
    assert (first.function, second.function) == ("forward", "forward")
    assert (first.frames, second.frames) == (("0/0", "0/1"), ("1/0", "1/1"))
    assert found.fallbacks == ()


@pytest.mark.parametrize(("module", "steers", "left"), [(Outer, False, 0), (Steering, True, 2)])
def test_a_captured_value_leaves_a_break_only_where_it_steers_a_branch(module: Any, steers: bool, left: int) -> None:
    reads = [each for each in diagnosed(module(), 4).breaks if "capture_scalar_outputs" in (each.hint or "")]
    assert reads and all(each.steers_branch == steers for each in reads)
    torch.compiler.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert len(diagnosed(module(), 4).breaks) == left


def test_a_recompilation_of_torch_s_own_module_is_at_its_class_not_at_dynamo_s_frame() -> None:
    layers = (torch.nn.Linear(8, 8), torch.nn.ReLU())
    for module, name, where in (
        (torch.nn.Sequential(*layers), "Sequential", "torch/nn/modules/container.py:"),
        (Chain(*layers), "Chain", f"test_diagnostics.py{line_of('class Chain')}"),
    ):
        (again,) = diagnosed(module, 2, 3, dynamic=False).recompiles
        assert again.function == name
        assert where in (again.where or "")


def test_a_break_in_a_helper_tells_which_forward_called_it() -> None:
    (found,) = (each for each in diagnosed(Outer(), 4).breaks if each.called_from)
    assert (found.where or "").endswith(line_of("and breaks here"))
    assert (found.called_from or "").endswith(line_of("the helper is called here"))
    assert found.line == f"{found.where}, called from {found.called_from}"


class Clipping(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Torch's own code reads whether the norm is finite."""

    def forward(self, x: Any) -> Any:
        weight = x.clone()
        weight.grad = x
        norm = torch.nn.utils.clip_grad_norm_([weight], 1.0, error_if_nonfinite=True)  # within torch
        return x * norm


def test_a_break_in_torchs_own_code_is_at_its_line_and_tells_the_users_that_led_there() -> None:
    (found,) = diagnosed(Clipping(), 4).breaks
    assert (found.where or "").startswith("torch/nn/utils/clip_grad.py:") and found.is_torchs
    assert (found.called_from or "").endswith(line_of("# within torch"))
    assert not found.steers_branch


def test_pythons_own_library_and_what_dynamo_puts_in_its_place_are_passed_over() -> None:
    """As torch 2.13 tells of a context manager that cannot be traced, in a user's code and in torch's own."""
    torchs, python = Path(torch.__file__).parent, sysconfig.get_path("stdlib")
    within = [
        *(f'File "{python}/contextlib.py", line 301, in helper', "return _GeneratorContextManager(func, args, kwds)"),
        *(f'File "{torchs}/_dynamo/polyfills/__init__.py", line 513, in instantiate', "obj.__init__(*args, **kwargs)"),
        *(f'File "{python}/contextlib.py", line 105, in __init__', "self.gen = func(*args, **kwds)"),
    ]
    users = ['File "/home/me/train.py", line 31, in train', "return model(x)"]
    ddp = [f'File "{torchs}/nn/parallel/distributed.py", line 1714, in _run_ddp_forward', "with self._inside():"]

    def read(*lines: str) -> GraphBreak:
        text = "Graph break in user code at contextlib.py:105\nGraph Break Reason: Attempted to call\n"
        return read_break("\n".join([text, "User code traceback:", *lines]), "0/0")

    own, of_torch = read(*users, *within), read(*users, *ddp, *within)
    assert (own.where, own.called_from, own.is_torchs) == ("train.py:31", None, False)
    assert of_torch.line == "torch/nn/parallel/distributed.py:1714, called from train.py:31" and of_torch.is_torchs


def test_a_hint_names_the_setting_where_it_is() -> None:
    """Torch 2.13's own text names it without its module: that sets nothing."""
    assert hasattr(torch._dynamo.config, "trace_autograd_ops")
    hint = "Graph Break Reason: no\n  Hint: Set torch._dynamo.trace_autograd_ops=True\n"
    assert find_hint(hint) == "Set torch._dynamo.config.trace_autograd_ops=True"
    assert find_hint(hint.replace("_dynamo.", "_dynamo.config.")) == "Set torch._dynamo.config.trace_autograd_ops=True"


def test_a_module_without_breaks_has_none(block: Block) -> None:
    found = diagnosed(block, 4, 4, 4)
    assert found.breaks == () and found.fallbacks == () and found.recompiles == ()
    (frame,) = found.frames
    assert (frame.id, frame.function, frame.phase, frame.call) == ("0/0", "forward", "warm-up", 1)
    assert "conftest.py:" in (frame.where or "")
    assert frame.inputs == {"x": "4 × 8"}
    assert frame.seconds is not None and frame.seconds > 0
    assert [(each.phase, each.call, each.compilations) for each in found.calls] == [("warm-up", 1, 1)]


def test_a_recompilation_names_the_check_that_failed_and_the_call_it_cost(block: Block) -> None:
    form, log = form_of(block, 1, 1, 4, 4, dynamic=False)
    call(form, 2)
    log.phase = "timed"
    call(form)
    call(form)
    found = log.diagnose({"timed": (2e6, 300.0)})
    (again,) = found.recompiles
    assert (again.id, again.phase, again.call, again.inputs) == ("0/1", "timed", 1, {"x": "4 × 8"})
    (guard,) = again.because
    assert guard.version == "0/0"
    assert "size mismatch at index 0. expected 1, actual 4" in guard.text
    assert [(each.call, each.compilations, each.wall_us) for each in found.timed_calls()] == [(1, 1, 2e6)]


def test_shapes_left_to_torch_become_any_size_and_others_fail_the_checks_of_every_version(block: Block) -> None:
    (again,) = diagnosed(block, 2, 3, 5).recompiles
    assert again.inputs is not None
    assert again.inputs["x"].startswith("s")
    found = diagnosed(block, 2, 3, 4, dynamic=False)
    assert [each.version for each in found.recompiles[-1].because] == ["0/1", "0/0"], "the latest comes first"


def test_a_reached_limit_is_told_as_eager_with_the_function_it_is_of(block: Block) -> None:
    with torch._dynamo.config.patch(recompile_limit=2):
        found = diagnosed(block, 2, 3, 4, 5, dynamic=False)
    (fallback,) = found.fallbacks
    assert (fallback.kind, fallback.function) == ("recompile_limit", "forward")
    assert "conftest.py:" in (fallback.where or "")
    assert len(found.frames) == 2, "what ran eager was not compiled"


def test_a_frame_that_dynamo_passes_over_is_told_as_eager_not_as_broken() -> None:
    found = diagnosed(Looping(), 4)
    if not found.fallbacks:
        pytest.skip("this torch (2.9) does not tell a frame that it skips from one that it compiles")
    (fallback,) = found.fallbacks
    assert fallback.kind == "skipped"
    assert (fallback.line or "").endswith(line_of("in a loop"))
    assert "test_diagnostics.py:" in (fallback.where or "") and fallback.where != fallback.line
    assert found.breaks == ()
    assert [frame.function for frame in found.frames] == ["forward"], "the block inside is compiled by itself"


class ClippingStep(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Torch's own code reads whether the norm is finite, and Dynamo cannot go on behind that: it is given a generator.
    What comes before is compiled by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        torch._dynamo.graph_break()
        y = self.inner(x)
        torch.nn.utils.clip_grad_norm_(self.inner.parameters(), 1.0, error_if_nonfinite=True)  # given up
        return y


def test_a_frame_that_is_given_up_in_torchs_code_is_told_at_its_own_place_with_the_break_that_led_to_it() -> None:
    module = ClippingStep()
    module.inner.weight.grad = torch.ones(8, 8)
    found = diagnosed(module, 4)
    (fallback,) = found.fallbacks
    assert (fallback.kind, fallback.function) == ("skipped", "forward")
    assert (fallback.where or "").endswith(f"test_diagnostics.py:{ClippingStep.forward.__code__.co_firstlineno}")
    broke, _, called_from = (fallback.line or "").partition(", called from ")
    assert broke.startswith("torch/nn/utils/clip_grad.py:") and called_from.endswith(line_of("# given up"))
    assert fallback.reason.startswith("Data-dependent branching; ")
    assert not any("clip_grad" in (each.where or "") for each in found.breaks), "all of that frame runs eager"


def test_a_compilation_that_failed_in_silence_is_told_as_eager(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_arguments: object) -> Any:
        raise RuntimeError("no code for you")

    compiled_by(monkeypatch, backend=failing)
    with torch._dynamo.config.patch(suppress_errors=True):
        found = diagnosed(block, 4)
    assert [each.kind for each in found.fallbacks] == ["error"]
    assert found.frames == ()


@pytest.mark.usefixtures("without_kernels")
def test_caches_are_missed_first_and_hit_later_and_phases_are_disjoint(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled_by(monkeypatch)
    with torch._inductor.utils.fresh_inductor_cache(dir=str(tmp_path)):
        first, second = diagnosed(block, 4), diagnosed(block, 4)
    for found, uses in ((first, (0, 1)), (second, (1, 0))):
        used = {use.cache: (use.hits, use.misses) for use in found.caches}
        assert (used["fx_graph"], used["aot_autograd"]) == (uses, uses)
    seconds = {each.phase: each.seconds for each in first.phases}
    assert {"dynamo", "aot_autograd", "inductor"} <= set(seconds)
    assert all(each > 0 for each in seconds.values())
    assert sum(seconds.values()) == pytest.approx(sum(frame.seconds or 0 for frame in first.frames), rel=0.01)


@pytest.mark.usefixtures("without_kernels")
def test_a_cuda_graph_that_cannot_be_is_counted(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_by(monkeypatch, mode="reduce-overhead")
    with torch._inductor.utils.fresh_inductor_cache(dir=str(tmp_path)):
        found = diagnosed(block, 4)
    assert sum(skip.count for skip in found.cuda_graph_skips) == 1
    assert found.cuda_graphs_recorded == 0


def test_two_workloads_in_one_process_hear_only_of_themselves(block: Block) -> None:
    broken, broken_log = form_of(Printing(), 4, 4)
    whole, whole_log = form_of(block, 4)
    torch.compile(lambda x: x.tan() * 3, backend="eager")(torch.ones(3))
    call(broken)
    call(whole)
    call(broken)
    assert [each.function for each in whole_log.diagnose({}).frames] == ["forward"]
    assert whole_log.diagnose({}).breaks == ()
    assert (len(broken_log.diagnose({}).breaks), len(broken_log.diagnose({}).frames)) == (2, 3)


def test_nothing_remains_in_torch_when_a_form_is_switched_off(workload: BuiltWorkload) -> None:
    from torch._dynamo.callback import callback_handler
    from torch._logging._internal import trace_log

    before = list(trace_log.handlers), list(callback_handler.start_callbacks)
    with watched(compiled_form(workload), DiagnosticLog()).ready():
        assert len(trace_log.handlers) == len(before[0]) + 1
    assert (list(trace_log.handlers), list(callback_handler.start_callbacks)) == before


def test_a_log_that_cannot_be_read_is_a_note_and_no_error(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "read_log", lambda *_said: {}["fail_type"])
    found = diagnosed(block, 4)
    assert found.noted == (CompileLogUnreadable(error="KeyError: 'fail_type'"),)
    assert len(found.calls) == 1


def test_a_torch_without_the_log_or_with_nothing_in_it_is_a_note(block: Block, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "METRICS", "metrics of another name")
    found = diagnosed(block, 4)
    assert found.frames == ()
    assert found.noted == (CompileLogSilent(torch=torch.__version__, compilations=1),)
    assert DiagnosticLog().diagnose({}).noted == (), "a form that never compiled has nothing to tell"
    monkeypatch.delattr("torch._logging._internal.trace_log")
    log = DiagnosticLog()
    with log.listening():
        pass
    assert log.diagnose({}).noted == (NoCompileLog(torch=torch.__version__),)


def test_lines_of_the_log_are_kept_without_their_beginning_or_as_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    log, logger = DiagnosticLog(), logging.getLogger("torch._inductor.cudagraph_utils.__cudagraphs")
    monkeypatch.setattr(logging, "raiseExceptions", False)
    with log.listening():
        logger.warning("skipping cudagraphs due to %s", "mutated inputs (2 instances). Found from :\n  File ...")
        logger.warning("skipping %d graphs", "many")
        torch.compiler.reset()
    found = log.diagnose({})
    (skip,) = found.cuda_graph_skips
    assert (skip.reason, skip.count) == ("mutated inputs (2 instances). Found from :", 1)
    assert [note.code for note in found.noted] == ["compile_log_line_unreadable", "compile_reset"]
    assert str(found.noted[0].facts["error"]).startswith("TypeError:")


def test_what_was_counted_before_a_form_was_switched_on_is_not_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    counted, log = {"cudagraph_skips": 5}, DiagnosticLog()
    monkeypatch.setattr(diagnostics, "dynamo_counters", lambda: {"inductor": counted})
    with log.listening():
        counted["cudagraph_skips"] += 2
    with DiagnosticLog().listening():
        counted["cudagraph_skips"] += 3
    assert [skip.count for skip in log.diagnose({}).cuda_graph_skips] == [2]
