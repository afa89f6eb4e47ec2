"""Run folders of several ranks, made by hand."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace
from tests.ranks.recordings import Program, events_of, play
from tests.sides import make_form, make_run, make_settings, scaled
from tests.traces import make_span

from tracekit import store
from tracekit.model.run import FormName, FormResult, RankForm, RankOfRun, Recording, RecordingKind

#: Each rank's trace of a form, and how long its own call takes.
FormOfJob = tuple[Sequence[str], Sequence[float]]


def played(programs: Mapping[int, Program]) -> list[str]:
    """The ranks' traces of one step, in which each does what its program says."""
    kernels = play(dict(programs)).kernels
    traces = []
    for rank, own in sorted(kernels.items()):
        events = [*events_of(rank, own), make_span(0, own[-1][1] + 10)]
        stated = {"rank": rank, "world_size": len(kernels)}
        traces.append(json.dumps({"traceEvents": events, "distributedInfo": stated}))
    return traces


def make_job_run(
    parent: Path, forms: Mapping[FormName, FormOfJob], kinds: Sequence[RecordingKind] = ("light", "rich")
) -> Path:
    """A whole run over ranks. Each trace is the recording of all `kinds`; times differ by up to 0.4 %."""
    size, names = len(next(iter(forms.values()))[0]), tuple(forms)
    with store.begun(parent / "job", force=False) as draft:
        folders = [draft / f"rank{rank}" if rank else draft for rank in range(size)]
        made: list[tuple[FormResult, ...]] = []
        for rank, folder in enumerate(folders):
            folder.mkdir(exist_ok=True)
            of_rank = ((name, traces[rank], walls) for name, (traces, walls) in forms.items())
            made.append(tuple(_form(*each, rank, folder, kinds) for each in of_rank))
        run = make_run(status="incomplete", notes=(), order=names * 10, settings=make_settings(nproc=size))
        for own, folder in list(zip(made, folders, strict=True))[1:]:
            store.save(replace(run, forms=own, status="complete"), folder)
        ranks = tuple(
            RankOfRun(rank, "host", None, f"rank{rank}" if rank else None, tuple(map(_told, own)))
            for rank, own in enumerate(made)
        )
        return store.finish(replace(run, forms=made[0], ranks=ranks), draft)


def _form(
    name: FormName, trace: str, walls_us: Sequence[float], rank: int, to: Path, kinds: Sequence[RecordingKind]
) -> FormResult:
    recordings = []
    for kind in kinds:
        path = to / f"{name}-{kind}.json"
        path.write_text(trace)
        recordings.append(Recording(kind, path.name, 1, path.stat().st_size))
    form = make_form(name, scaled(max(walls_us) / 1000))
    return replace(form, recordings=tuple(recordings), own_wall_us=scaled(walls_us[rank] / 1000))


def _told(form: FormResult) -> RankForm:
    return RankForm(form.name, form.own_wall_us[0], 5, None, None, None)
