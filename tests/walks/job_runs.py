"""Run folders of several ranks, made by hand."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tests.ranks.recordings import Program, events_of, play
from tests.sides import make_form, make_run, make_settings, scaled
from tests.traces import make_span, write_trace

from tracekit import store
from tracekit.model.run import FormName, FormResult, RankForm, RankOfRun, Recording

#: What ranks of a form do in a call, and how long each one's own call takes.
FormOfJob = tuple[dict[int, Program], Mapping[int, float]]


def make_job_run(parent: Path, forms: Mapping[FormName, FormOfJob]) -> Path:
    """A whole run over ranks. Each form has one step, which both of its recordings hold; times differ by up to
    0.4 %."""
    size = len(next(iter(forms.values()))[0])
    with store.begun(parent / "job", force=False) as draft:
        folders = {rank: draft / f"rank{rank}" if rank else draft for rank in range(size)}
        made: dict[int, tuple[FormResult, ...]] = {}
        for rank, folder in folders.items():
            folder.mkdir(exist_ok=True)
            made[rank] = tuple(_form(name, rank, *form, folder) for name, form in forms.items())
        names = tuple(forms)
        run = make_run(status="incomplete", notes=(), order=names * 10, settings=make_settings(nproc=size))
        ranks = tuple(
            RankOfRun(rank, "host", None, f"rank{rank}" if rank else None, _told(made[rank])) for rank in made
        )
        for rank in range(1, size):
            store.save(replace(run, forms=made[rank], status="complete"), folders[rank])
        return store.finish(replace(run, forms=made[0], ranks=ranks), draft)


def _form(
    name: FormName, rank: int, programs: dict[int, Program], walls_us: Mapping[int, float], to: Path
) -> FormResult:
    kernels = play(programs).kernels[rank]
    events = [*events_of(rank, kernels), make_span(0, kernels[-1][1] + 10)]
    recordings = []
    for kind in ("light", "rich"):
        path = write_trace(to, events, distributedInfo={"rank": rank, "world_size": len(programs)}).rename(
            to / f"{name}-{kind}.json"
        )
        recordings.append(Recording(kind, path.name, 1, path.stat().st_size))  # type: ignore[arg-type]
    slowest = scaled(max(walls_us.values()) / 1000)
    own = scaled(walls_us[rank] / 1000)
    return replace(make_form(name, slowest), recordings=tuple(recordings), own_wall_us=own)


def _told(forms: tuple[FormResult, ...]) -> tuple[RankForm, ...]:
    return tuple(RankForm(each.name, each.own_wall_us[0], 5, None, None, None) for each in forms)
