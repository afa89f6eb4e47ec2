"""Other people's figures beside a sweep's, and what is otherwise here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tracekit.model.sweep import CellResult, Published, Suite
from tracekit.model.sweep_figures import CellFigures, PublishedBeside, Work

#: What torch.compile does when it is told nothing, and what was published.
MODE = "default"
#: The size that published figures are of.
FULL = "full"


def set_beside(works: Sequence[Work], suite: Suite) -> tuple[PublishedBeside, ...]:
    """For each published figure a row for every work of that workload and batch size that was measured here: of several
    types, sizes or machines none is taken for the others."""
    return tuple(_beside(published, work) for published in suite.published for work in works if _is_of(work, published))


def _is_of(work: Work, published: Published) -> bool:
    batch_size = work.cells[0].cell.request.batch_size
    return (work.workload, batch_size) == (published.workload, published.batch_size) and work.settings is not None


def _beside(published: Published, work: Work) -> PublishedBeside:
    compiled = next((cell for cell in work.cells if _is_default(cell)), None)
    timed = compiled or next((cell for cell in work.cells if cell.eager is not None), None)
    verdict = compiled.verdict if compiled else None
    size = work.settings.size if work.settings else None
    comparable = verdict if size == FULL else None
    return PublishedBeside(
        published,
        eager_ms=_ms(timed.eager.mean_us) if timed and timed.eager else None,
        compiled_ms=_ms(compiled.compiled.mean_us) if compiled and compiled.compiled else None,
        eager_median_ms=_ms(timed.eager.median_us) if timed and timed.eager else None,
        compiled_median_ms=_ms(compiled.compiled.median_us) if compiled and compiled.compiled else None,
        speedup=comparable.speedup if comparable else None,
        ci95=comparable.ci95 if comparable else None,
        result=comparable.result if comparable else None,
        size=size,
        dtype=work.settings.dtype if work.settings else None,
        machine=work.machine,
        within_eager_spread=compiled.within_eager_spread if compiled and comparable else None,
    )


def _ms(us: float) -> float:
    return us / 1e3


def _is_default(cell: CellFigures) -> bool:
    return cell.cell.form == "compiled" and cell.cell.request.mode == MODE and cell.compiled is not None


def differences(works: Sequence[Work], results: Sequence[CellResult]) -> tuple[str, ...]:
    """What is otherwise here than where the published figures come from, or not known of those: a sentence each."""
    return tuple(_differences(works, results))


def _differences(works: Sequence[Work], results: Sequence[CellResult]) -> Iterator[str]:
    machines = _distinct(work.machine for work in works)
    if machines:
        yield f"Machine: {machines} here, one A100 there."
    if torches := _distinct(work.torch for work in works):
        yield f"torch: {torches} here, 2.0.1 there."
    settings = [work.settings for work in works if work.settings]
    if types := _distinct(each.dtype for each in settings):
        yield f"Type: {types} here; of the published figures it is not recorded with them."
    if any(each.pretrained is None for each in settings):
        yield "Weights: random here, at the architecture of the published checkpoint; the same kernels run."
    if sizes := _distinct(each.size for each in settings if each.size != FULL):
        yield f"Size: {sizes} here, which is not the published architecture: the figures cannot be compared."
    calls = sorted(
        {len(form.times.wall_us) for result in results if result.run for form in result.run.forms if form.times}
    )
    if calls:
        span = f"{calls[0]:,}" if len(calls) == 1 else f"{calls[0]:,} to {calls[-1]:,}"
        yield f"Calls: {span} of each form in a process here, in alternation; 300 there."
    yield "What a call contains may differ: here a forward pass over inputs that are on the device already."


def _distinct(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(value for value in values if value))
