"""Why small models are compiled in no part, as torch tells it on the CPU, and as other versions did."""

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.measure.conftest import make_workload
from torch._dynamo.testing import CompileCounter

from tracekit.errors import NothingCompiledError
from tracekit.measure.compile_log import BREAK, METRICS, LogEntry
from tracekit.measure.diagnostics import DiagnosticLog, watched
from tracekit.measure.forms import compiled_form, warm_up
from tracekit.measure.not_compiled import find_reasons
from tracekit.model.compilation import NotCompiled
from tracekit.model.progress import Silent
from tracekit.model.workload import CompileTarget


class Layers(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(2))


class Reading(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            x = x / x.max().item()
        return x


class Branching(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            if x.sum() > 0:
                x = layer(x)
        return x


class Masking(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x) + torch.nonzero(x).sum()
        return x


class Printing(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            print("a layer is done")  # noqa: T201
        return x


class Opening(Layers):
    def forward(self, x: Any) -> Any:
        with Path("/dev/null").open() as file:
            for layer in self.layers:
                x = layer(x)
            file.read()
        return x


class Breaking(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            torch._dynamo.graph_break()
            x = layer(x)
        return x


class Stopping(Layers):
    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
            if x.sum().item() > 100:
                break
        return x


class Listing(Layers):
    def forward(self, x: Any) -> Any:
        return sum([layer(x) * x.sum().item() for layer in self.layers])


class Yielding(Layers):
    def forward(self, x: Any) -> Any:  # yields what each layer makes
        for layer in self.layers:
            x = layer(x)
            yield x


class Disabled(Layers):
    @torch.compiler.disable  # on all of it
    def forward(self, x: Any) -> Any:
        return self.layers[0](x)


class Stacked(torch.nn.Module):  # type: ignore[misc, name-defined]
    def __init__(self, *blocks: Any) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)

    def forward(self, x: Any) -> Any:
        for block in self.blocks:
            x = block(x)
            torch._dynamo.graph_break()
        return x


def reasons_of(module: Any) -> tuple[NotCompiled, ...]:
    """Why nothing of the module was compiled."""
    x, targets = torch.ones(4, 8), (CompileTarget("model", module),)

    def call() -> object:
        with torch.no_grad():
            made = module(x)
            return [*made] if isinstance(module, Yielding) else made

    log = DiagnosticLog(targets)
    with pytest.raises(NothingCompiledError):
        warm_up(watched(compiled_form(make_workload(call, targets, fullgraph=False)), log), Silent())
    return log.why_nothing(getattr(module, "blocks", ()))


@pytest.mark.usefixtures("dynamo_alone")
@pytest.mark.parametrize(
    ("module", "code", "line", "inside"),
    [
        (Reading, "scalar_read", "x = x / x.max().item()", "loop"),
        (Branching, "data_dependent_branch", "if x.sum() > 0:", "loop"),
        (Stopping, "data_dependent_branch", "if x.sum().item() > 100:", "loop"),
        (Masking, "data_dependent_shape", "x = layer(x) + torch.nonzero(x).sum()", "loop"),
        (Printing, "untraceable_call", 'print("a layer is done")  # noqa: T201', "loop"),
        (Opening, "untraceable_call", 'with Path("/dev/null").open() as file:', None),
        (Breaking, "graph_break_call", "torch._dynamo.graph_break()", "loop"),
        (Listing, "scalar_read", "return sum([layer(x) * x.sum().item() for layer in self.layers])", "loop"),
        (Yielding, "generator", "def forward(self, x: Any) -> Any:  # yields what each layer makes", None),
        (Disabled, "compiler_disabled", "@torch.compiler.disable  # on all of it", None),
    ],
)
def test_a_model_that_dynamo_skips_tells_the_line_that_is_in_its_way(
    module: Any, code: str, line: str, inside: str | None
) -> None:
    counter = CompileCounter()
    with torch.no_grad():
        torch.compile(module(), backend=counter)(torch.ones(4, 8))
    torch._dynamo.reset()
    if counter.frame_count:
        pytest.skip("this torch compiles a part of it")
    reason = reasons_of(module())[0]
    assert (reason.code, reason.line, reason.inside) == (code, line, inside)
    assert reason.where and reason.where.startswith("tests/measure/test_not_compiled.py:")
    at = int(reason.where.rpartition(":")[2])
    assert linecache.getline(__file__, at).strip() == line
    assert reason.reason and (reason.function, reason.called_from) == ("forward", None)


@pytest.mark.usefixtures("dynamo_alone")
@pytest.mark.parametrize(
    ("block", "in_block"), [(Reading, True), (lambda: torch.nn.TransformerEncoderLayer(8, 2, 16), False)]
)
def test_a_block_that_dynamo_skips_is_told_from_one_that_it_does_not_look_at(block: Any, in_block: bool) -> None:
    reason = reasons_of(Stacked(block(), block()).eval())[0]
    assert (reason.inside, reason.in_block) == ("loop", in_block)


BROKEN = """Graph break in user code at {file}:{line}
Graph Break Reason: Unsupported Tensor.item() call with capture_scalar_outputs=False
  Explanation: Dynamo does not support tracing `Tensor.item()`.

User code traceback:
  File "{file}", line {line}, in forward
    x = x.item()
"""


def entry(kind: str, content: Any) -> LogEntry:
    return LogEntry(kind, "0/0", content, "warm-up", 1)


def test_a_version_that_does_not_tell_of_the_loop_is_not_needed_to_see_it(tmp_path: Path) -> None:
    file = tmp_path / "model.py"
    file.write_text(
        "def forward(x):\n    x = x + 1\n    for _ in x:\n        x = x.item()\n    else:\n        x = -x\n"
    )
    for line, inside in ((4, "loop"), (3, None), (2, None), (6, None)):
        (reason,) = find_reasons((entry(BREAK, BROKEN.format(file=file, line=line)),), ())
        assert (reason.code, reason.inside) == ("scalar_read", inside), line
    (reason,) = find_reasons((entry(BREAK, BROKEN.format(file=tmp_path / "gone.py", line=4)),), ())
    assert (reason.where, reason.line, reason.inside) == ("gone.py:4", None, None)


def test_what_the_metrics_alone_tell_is_told_and_an_error_is_no_break() -> None:
    told = {"co_name": "forward", "fail_user_frame_filename": "m.py", "fail_user_frame_lineno": 7}
    failed = {**told, "fail_type": "Unsupported", "fail_reason": "Data-dependent branching\n  Explanation: it branches"}
    (reason,) = find_reasons((entry(METRICS, failed),), ())
    assert (reason.code, reason.where, reason.explanation) == ("data_dependent_branch", "m.py:7", "it branches")
    failed = {**told, "fail_type": "BackendCompilerFailed", "fail_reason": "RuntimeError: no code for you"}
    (reason,) = find_reasons((entry(METRICS, failed),), ())
    assert (reason.code, reason.reason) == ("failed", "RuntimeError: no code for you")


def test_where_nobody_tells_anything_there_is_no_reason() -> None:
    assert find_reasons((), (CompileTarget("model", torch.nn.Linear(2, 2)),)) == ()
