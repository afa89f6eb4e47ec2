"""The part of `tracekit profile` that asks where each form's work came from: after everything else is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracekit import store
from tracekit.analysis.attribution import find_graph_calls, find_tagged
from tracekit.model.note import Facts, Noted
from tracekit.model.progress import Progress
from tracekit.model.provenance import CompiledSites, EagerOps
from tracekit.model.run import FormName
from tracekit.model.workload import BuiltWorkload
from tracekit.tracefile.read import read_trace
from tracekit.walks.noting import sites_in_words

if TYPE_CHECKING:
    from tracekit.capture.forms import Form
    from tracekit.capture.provenance import Collection


@dataclass
class Origins:
    """What is asked of one workload. `notes` are for the run's manifest: what could not be told, and why."""

    workload: BuiltWorkload
    wanted: bool
    notes: list[Noted] = field(default_factory=list)
    _collection: Collection | None = None

    @contextmanager
    def watching(self, name: FormName) -> Iterator[None]:
        """While the compiled form is compiled inside, Inductor tells where its kernels come from."""
        from tracekit.capture.provenance import collected, missing_provenance
        from tracekit.capture.source_location import names_of

        if not self.wanted or name != "compiled":
            yield
            return
        missing = missing_provenance()
        if missing:
            self.notes.append(missing)
        with nullcontext() if missing else collected(names_of(self.workload)) as self._collection:
            yield

    def ask(self, form: Form, draft: Path, progress: Progress) -> str | None:
        """One more call of the form, untimed; returns the file in `draft` that tells where its work came from. None,
        and a note, where that failed: nothing that was measured is lost by it."""
        if not self.wanted or (form.name == "compiled" and self._collection is None):
            return None
        raw = draft / f".{form.name}-origins.json"
        try:
            found = self._asked(form, raw, progress)
            return store.save_provenance(found, draft)
        except Exception as error:  # noqa: BLE001 - private parts of torch may fail in any way; the note says how.
            facts: Facts = {"form": form.name, "error": f"{type(error).__name__}: {error}"}
            self.notes.append(Noted("provenance_failed", facts))
            return None
        finally:
            raw.unlink(missing_ok=True)

    def _asked(self, form: Form, raw: Path, progress: Progress) -> EagerOps | CompiledSites:
        from tracekit.capture import tagging
        from tracekit.capture.source_location import names_of

        if form.name == "eager":
            ops = tagging.tag_eager(form, names_of(self.workload), raw, progress)
            return replace(ops, activities=find_tagged(read_trace(raw))) if raw.exists() else ops
        assert self._collection is not None
        sites = tagging.trace_calls(form, self._collection, raw, progress)
        sites = sites_in_words(_with_activities(sites, raw) if raw.exists() else sites)
        self.notes += [Noted("provenance_incomplete", {"what": note}) for note in sites.notes]
        return sites


def _with_activities(sites: CompiledSites, raw: Path) -> CompiledSites:
    keys, activities = find_graph_calls(read_trace(raw))
    called = tuple(None if call.graph is None else sites.graphs[call.graph].key for call in sites.calls)
    if len(keys) != len(called) or any(key not in (None, seen) for key, seen in zip(called, keys, strict=True)):
        note = Noted("graph_calls_differ", {"recorded": len(keys), "made": len(called)})
        return replace(sites, noted=(*sites.noted, note))
    return replace(sites, activities=activities)
