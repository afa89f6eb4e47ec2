"""Other people's figures beside a sweep's, and what is otherwise here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tracekit.model.estimate import Statement
from tracekit.model.sweep import CellResult, Published, Suite
from tracekit.model.sweep_figures import CallFigures, PublishedBeside, Work

#: What torch.compile does when it is told nothing, and what was published.
MODE = "default"
#: The size that published figures are of.
FULL = "full"


def set_beside_published(works: Sequence[Work], suite: Suite) -> tuple[PublishedBeside, ...]:
    """For each published figure a row for every work of that workload and batch size that was measured here: of several
    types, sizes or machines none is taken for the others."""
    return tuple(
        _beside(published, work)
        for published in suite.published
        for work in works
        if (work.workload, work.cells[0].cell.request.batch_size) == (published.workload, published.batch_size)
        and work.settings is not None
    )


def _beside(published: Published, work: Work) -> PublishedBeside:
    done = (cell for cell in work.cells if cell.cell.form == "compiled" and cell.compiled is not None)
    compiled = next((cell for cell in done if cell.cell.request.mode == MODE), None)
    timed = compiled or next((cell for cell in work.cells if cell.eager is not None), None)
    eager_calls, compiled_calls = timed.eager if timed else None, compiled.compiled if compiled else None
    size = work.settings.size if work.settings else None
    comparable = compiled.verdict if compiled and size == FULL else None

    def ms(calls: CallFigures | None, figure: str) -> float | None:
        return getattr(calls, figure) / 1e3 if calls else None

    return PublishedBeside(
        published,
        eager_ms=ms(eager_calls, "mean_us"),
        compiled_ms=ms(compiled_calls, "mean_us"),
        eager_median_ms=ms(eager_calls, "median_us"),
        compiled_median_ms=ms(compiled_calls, "median_us"),
        speedup=comparable.speedup if comparable else None,
        ci95=comparable.ci95 if comparable else None,
        result=comparable.result if comparable else None,
        size=size,
        dtype=work.settings.dtype if work.settings else None,
        machine=work.machine,
        within_eager_spread=compiled.within_eager_spread if compiled and comparable else None,
    )


def find_differences_from_published(works: Sequence[Work], results: Sequence[CellResult]) -> Iterator[Statement]:
    """What is otherwise here than where the published figures come from, or not known of those."""
    settings = [work.settings for work in works if work.settings]
    of_works: dict[str, list[str | None]] = {
        "machine": [work.machine for work in works],
        "torch": [work.torch for work in works],
        "dtype": [each.dtype for each in settings],
    }
    for code, values in of_works.items():
        if here := list(dict.fromkeys(filter(None, values))):
            yield Statement(code, {"here": here})
    if any(each.pretrained is None for each in settings):
        yield Statement("random_weights")
    if sizes := list(dict.fromkeys(each.size for each in settings if each.size != FULL)):
        yield Statement("size", {"here": sizes})
    forms = [form for result in results if result.run for form in result.run.forms]
    if calls := sorted({len(form.times.wall_us) for form in forms if form.times}):
        yield Statement("calls", {"least": calls[0], "most": calls[-1]})
    yield Statement("what_a_call_contains")
