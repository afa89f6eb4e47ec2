"""Other people's figures beside a sweep's, and what is otherwise here."""

from collections.abc import Iterator, Sequence
from itertools import product

from tracekit.sweep.cells import CellResult, Suite
from tracekit.sweep.figures import PublishedBeside, PublishedDifference, Work

#: What torch.compile does when it is told nothing, and what was published.
MODE = "default"
#: The size that published figures are of.
FULL = "full"


class Machine(PublishedDifference):
    code = "machine"
    here: Sequence[str]

    def long(self) -> str:
        return f"Machine: {', '.join(self.here)}; 2023 one A100."


class Torch(PublishedDifference):
    code = "torch"
    here: Sequence[str]

    def long(self) -> str:
        return f"torch: {', '.join(self.here)}; 2023 2.0.1."


class Dtype(PublishedDifference):
    code = "dtype"
    here: Sequence[str]

    def long(self) -> str:
        return f"dtype: {', '.join(self.here)}; 2023 not stated."


class RandomWeights(PublishedDifference):
    code = "random_weights"

    def long(self) -> str:
        return "Weights: random, at the published architecture."


class Size(PublishedDifference):
    code = "size"
    here: Sequence[str]

    def long(self) -> str:
        return f"Size: {', '.join(self.here)}, not the published architecture: not comparable."


class Calls(PublishedDifference):
    code = "calls"
    least: int
    most: int

    def long(self) -> str:
        most = f" to {self.most:,}" if self.most != self.least else ""
        return f"Calls: {self.least:,}{most} each, interleaved; 2023 300."


class WhatACallContains(PublishedDifference):
    code = "what_a_call_contains"

    def long(self) -> str:
        return "A call here is a forward pass over inputs on the device; 2023 may differ."


def set_beside_published(works: Sequence[Work], suite: Suite) -> tuple[PublishedBeside, ...]:
    """For each published figure a row for every work of that workload and batch size that was measured here: of several
    types, sizes or machines none is taken for the others."""
    rows = []
    for published, work in product(suite.published, works):
        batch_size, settings = work.cells[0].cell.request.batch_size, work.settings
        if settings is None or (work.workload, batch_size) != (published.workload, published.batch_size):
            continue
        done = (cell for cell in work.cells if cell.cell.form == "compiled" and cell.compiled is not None)
        compiled = next((cell for cell in done if cell.cell.request.mode == MODE), None)
        timed = compiled or next((cell for cell in work.cells if cell.eager is not None), None)
        eager_calls, compiled_calls = timed.eager if timed else None, compiled.compiled if compiled else None
        comparable = compiled.verdict if compiled and settings.size == FULL else None
        row = PublishedBeside(
            published,
            eager_ms=eager_calls.mean_us / 1e3 if eager_calls else None,
            compiled_ms=compiled_calls.mean_us / 1e3 if compiled_calls else None,
            eager_median_ms=eager_calls.median_us / 1e3 if eager_calls else None,
            compiled_median_ms=compiled_calls.median_us / 1e3 if compiled_calls else None,
            speedup=comparable.speedup if comparable else None,
            ci95=comparable.ci95 if comparable else None,
            result=compiled.result if compiled and comparable else None,
            size=settings.size,
            dtype=settings.dtype,
            machine=work.machine,
        )
        rows.append(row)
    return tuple(rows)


def find_differences_from_published(
    works: Sequence[Work], results: Sequence[CellResult]
) -> Iterator[PublishedDifference]:
    """What is otherwise here than where the published figures come from, or not known of those."""
    settings = [work.settings for work in works if work.settings]
    if machines := list(dict.fromkeys(work.machine for work in works if work.machine)):
        yield Machine(here=machines)
    if versions := list(dict.fromkeys(work.torch for work in works if work.torch)):
        yield Torch(here=versions)
    if dtypes := list(dict.fromkeys(each.dtype for each in settings if each.dtype)):
        yield Dtype(here=dtypes)
    if any(each.pretrained is None for each in settings):
        yield RandomWeights()
    if sizes := list(dict.fromkeys(each.size for each in settings if each.size != FULL)):
        yield Size(here=sizes)
    forms = [form for result in results if result.run for form in result.run.forms]
    if calls := sorted({len(form.times.wall_us) for form in forms if form.times}):
        yield Calls(least=calls[0], most=calls[-1])
    yield WhatACallContains()
