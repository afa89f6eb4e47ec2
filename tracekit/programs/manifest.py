"""The run that a measured program leaves: as `tracekit profile` writes one, so that everything reads it."""

from __future__ import annotations

import datetime
import os
from statistics import median

import torch

from tracekit import __version__
from tracekit.measure.device import read_environment
from tracekit.measure.timing import CallTime, Timings
from tracekit.model.run import CompileFacts, Component, FormName, FormResult, Run, Settings, UserModel
from tracekit.model.timing import StoppingRule
from tracekit.model.workload import CompileTarget
from tracekit.numbers import counted, duration
from tracekit.programs.compiled import Compiled
from tracekit.programs.course import LATE, Found, LeftOut, paired
from tracekit.programs.session import CALLS_WITHOUT_END, Session
from tracekit.programs.telling import STEP_WORDS, alone_noted, timed_pairs
from tracekit.shell import steering_variables

#: So many callables are named.
MOST_NAMED = 8
#: What was seen of blocks that do not count.
LEFT_OUT: dict[LeftOut, str] = {
    "compiled": "something was compiled in a step",
    "late": (
        f"a step took over {LATE:g} times as long as usual before its first compiled call (evaluation, a checkpoint, a"
        " busy host)"
    ),
    "astray": (
        f"a step that was to be eager called compiled code over {CALLS_WITHOUT_END} times as often as others, so the"
        " rest of it was compiled (evaluation)"
    ),
}


def run_of(session: Session, name: str, command: str, started: datetime.datetime, rule: StoppingRule, seed: int) -> Run:
    """What is known of the program now. Needs one step that was measured."""
    found = session.found
    timings = timings_of(found)
    forms: tuple[FormName, ...] = tuple(
        form for form in ("eager", "compiled") if timings.wall_us.get(form) or (form, "rich") in found.recordings
    )
    modes = {each.mode for each in session.watch.found if each.calls and not each.by_library}
    # Of what is not known of a program (`UNKNOWN_OF_PROGRAM`) defaults stand here, and no report shows them.
    settings = Settings(
        workload=name,
        size="full",
        device=found.device,
        dtype=_dtype(session.watch.found),
        scope="all",
        mode=", ".join(sorted(modes)) or "default",
        fullgraph=False,
        dynamic=None,
        batch_size=1,
        height=None,
        width=None,
        steps=None,
        prompt=None,
        pretrained=None,
        seed=seed,
        iterations=rule.least,
        own=UserModel(in_program=True, as_script=True),
        variables=steering_variables(os.environ),
    )
    return Run(
        schema="tracekit.run/1",
        status="incomplete",
        tracekit=__version__,
        command=command,
        started=started.isoformat(timespec="seconds"),
        settings=settings,
        size_reason="the program's own",
        environment=read_environment(found.device),
        components=tuple(
            Component(each.name, each.parameters, compiled=True, compiled_parameters=each.parameters)
            for each in session.watch.found
            if each.is_module and each.calls and not each.by_library
        ),
        forms=tuple(_form(form, session, timings, rule) for form in forms),
        order=tuple(timings.order),
        notes=tuple(notes_of(session)),
        noted=tuple(alone_noted(found)),
    )


def timings_of(found: Found) -> Timings:
    """The pairs of blocks as rounds, of which a call is a step of the block; of the compiled variant alone its
    blocks. Rounds are what has the same work, whenever it ran."""
    pairs = paired(found.blocks)
    timings = timed_pairs(pairs)
    timings.stopped, timings.seconds = found.stopped, found.seconds
    for block in found.blocks if not pairs else ():
        if block.form == "compiled" and not block.left_out:
            timings.add(block.form, CallTime(block.us))
    return timings


def _form(form: FormName, session: Session, timings: Timings, rule: StoppingRule) -> FormResult:
    found, compilation = session.found, None
    first_us = tuple(found.first_eager_us) if form == "eager" else (*(step.us for step in found.first), *found.late_us)
    if form == "compiled" and session.events is not None:
        events = session.events
        alive = ((each.name, each.module) for each in session.watch.found)
        session.log.targets = tuple(CompileTarget(name, module) for name, module in alive if module is not None)
        compilation = CompileFacts(
            graphs=events.since_start("graphs"),
            graph_breaks=events.since_start("graph_breaks"),
            seconds=session.compiling_us / 1e6,
            cache_hits=events.graphs_from_cache(),
            during_timing=0,
            diagnostics=session.log.diagnose({"warm-up": first_us}),
            cache_was_empty=found.cache_was_empty,
        )
        # A model that the program drops is to go.
        session.log.targets = ()
    return FormResult(
        form,
        first_us,
        tuple(timings.wall_us.get(form, ())),
        None,
        None,
        compilation,
        tuple(
            recording.written
            for (name, _kind), recording in found.recordings.items()
            if name == form and recording.written is not None
        ),
        timing=timings.of(form, rule) if form in timings.wall_us else None,
    )


def notes_of(session: Session) -> list[str]:
    """What a reader must know of the program, in sentences."""
    found, kind = session.found, session.found.kind
    what = STEP_WORDS[kind] if kind else "not known"
    told = [f"A call here is a step of the program, {what}; {found.steps:,} were measured."]
    if found.steps_of_block:
        told.append(
            f"A time is that of a block of up to {counted(found.steps_of_block, 'step')}, for one step;"
            " eager steps were real steps of the program."
        )
    for reason, words in LEFT_OUT.items():
        blocks = sum(block.left_out == reason for block in found.blocks)
        if blocks:
            told.append(f"{counted(blocks, 'block')} left out: {words}.")
    unpaired = len([block for block in found.blocks if block.left_out is None]) - 2 * len(paired(found.blocks))
    if unpaired > 1 and any(block.form == "eager" for block in found.blocks):
        told.append(f"{counted(unpaired, 'block')} left out: no block of the other variant did the same work.")
    if found.quiet:
        before = duration(median(found.before_us["compiled"]))
        told.append(
            f"A step spends {before} (median) before its first compiled call: on what is not compiled, such as loading"
            " data."
        )
    told += [callable_words(each) for each in session.watch.found if each.calls and not each.by_library][:MOST_NAMED]
    if found.device == "cpu":
        told.append(
            "Inductor's C++ kernels are not recorded of a program: their time counts as the compiled wrapper's."
        )
    told += [why for why in (found.no_eager, found.no_recording) if why]
    by_library = [each for each in session.watch.found if each.by_library and each.calls]
    if by_library:
        told.append(f"Libraries compile, too: {', '.join(each.name for each in by_library[:MOST_NAMED])}.")
    return told


def callable_words(each: Compiled) -> str:
    mode = f", mode {each.mode}" if each.mode != "default" else ""
    return f"Compiled: {each.name} at {each.place}{mode}, {counted(each.calls, 'call')}."


def _dtype(found: list[Compiled]) -> str:
    """The data type of most parameters."""
    sizes: dict[torch.dtype, int] = {}
    for each in found:
        for tensor in module.parameters() if (module := each.module) is not None else ():
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.numel()
    most = max(sizes, key=lambda dtype: sizes[dtype], default=torch.get_default_dtype())
    return str(most).removeprefix("torch.")
