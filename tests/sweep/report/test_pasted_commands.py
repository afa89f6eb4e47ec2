"""Every command that a sweep's report suggests, pasted into a shell."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.shells import BASH
from tests.sweep.report.showing import sweep_terminal
from tests.sweep.sweeps import compiled_cell, eager_cell, make_result

from tracekit import shell
from tracekit.comparison import commands
from tracekit.model.run import Settings
from tracekit.sweep.reading import cell_figures
from tracekit.sweep.reading.works import read_sweep
from tracekit.sweep.report.sections import sweep_report

from ...report.test_pasted_commands import BREAKING, FREE, Suggested, assert_pasted_as_meant


def of_sweep(settings: Settings, odd: str) -> Suggested:
    found = []
    for cell, us in ((eager_cell(), 8_000.0), (compiled_cell(), 4_000.0)):
        cell = replace(cell, request=replace(cell.request, workload=settings.workload, prompt=settings.prompt))
        result = make_result(cell, us)
        assert result.run is not None
        found.append(replace(result, run=replace(result.run, settings=settings)))
    sweep = read_sweep("sweep", None, found, None, 1000)
    best = [each.candidates[0].command for work in sweep.works for each in work.best if each.clear]
    resumed = shell.joined(["tracekit", "sweep", "--resume", odd])
    text = sweep_terminal(sweep, "all", 60, crop=False)
    return Suggested(sweep_report(sweep, resumed), [*best, resumed], best, text)


@pytest.mark.skipif(BASH is None, reason="no bash")
@given(texts=st.lists(FREE, min_size=9, max_size=9))
@example(texts=BREAKING[0])
@example(texts=BREAKING[1])
@fuzzed(6)
def test_what_is_pasted_has_the_words_that_were_meant(
    texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_pasted_as_meant(of_sweep, texts, tmp_path_factory.mktemp("empty"), (shell, commands, cell_figures))
