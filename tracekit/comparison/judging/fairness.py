"""What besides the compilation differs between the sides, or keeps them from being compared?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tracekit.comparison.judging.quietness import find_disturbance
from tracekit.comparison.judging.separate_runs import FEWEST_CALLS
from tracekit.model.comparison import Side
from tracekit.model.note import Note, distinct
from tracekit.model.option import WORK, words_of
from tracekit.model.run import Environment, Generation, Settings, UserModel

Compared = Settings | Environment | Generation | UserModel

MACHINE = ("gpu", "driver", "cuda", "cpu", "cpu_threads", "python")
#: Settings of torch that choose other kernels. Runs from before they were recorded differ in nothing that is known.
CHOOSING = ("float32_matmul_precision",)


def find_unfairness(a: Side, b: Side) -> tuple[Note, ...]:
    """One note for each thing a reader must know before believing the figures; empty when there is none."""
    questions = (
        _same_recording,
        _missing_gpu,
        _other_work,
        find_other_machine,
        _other_windows,
        _busier_than_the_call,
        _disturbed,
        find_disturbance,
        _unsound,
    )
    return tuple(note for ask in questions for note in ask(a, b))


def find_unsound(side: Side) -> tuple[Note, ...]:
    """One note for each thing a reader of one side alone must know; empty when there is none."""
    questions = (_missing_gpu, _busier_than_the_call, _disturbed, _unsound)
    return distinct(note for ask in questions for note in ask(side, side))


def _same_recording(a: Side, b: Side) -> Iterator[Note]:
    if a.path == b.path:
        yield Note("same_recording", facts={"path": a.path})


def _missing_gpu(a: Side, b: Side) -> Iterator[Note]:
    if a.analysis.gpu is None and b.analysis.gpu is None:
        yield Note("cpu_run", "info")
        return
    for side in (a, b):
        if side.analysis.gpu is None:
            yield Note("no_gpu_activity", subject=side.label)
        elif len(side.analysis.devices) > 1:
            yield Note("several_gpus", subject=side.label, facts={"gpus": len(side.analysis.devices)})


def _differences(a: Compared, b: Compared, settings: Iterable[str]) -> Iterator[Note]:
    for setting in settings:
        one, other = getattr(a, setting), getattr(b, setting)
        if one != other:
            yield _differ(setting, *(list(each) if isinstance(each, tuple) else each for each in (one, other)))


def _differ(setting: str, one: object, other: object) -> Note:
    return Note("setting_differs", facts={"setting": setting, "a": one, "b": other})


def _known(a: Environment, b: Environment, settings: Iterable[str]) -> tuple[str, ...]:
    """Those of the settings that both sides hold."""
    return tuple(each for each in settings if None not in (getattr(a, each), getattr(b, each)))


def find_other_work(a: Side, b: Side) -> Iterator[Note]:
    """One note for each setting, and for the GPUs, that makes figures of the two sides differ whatever the code.
    What neither a run nor the devices of a trace tell is not held against anybody."""
    yield from _other_work(a, b)
    yield from _other_gpu(a, b)
    one, other = len(a.analysis.devices), len(b.analysis.devices)
    if one and other and one != other:
        yield _differ("gpus", one, other)
    if a.environment and b.environment and _multiplies_in_float32(a, b):
        yield from _differences(a.environment, b.environment, _known(a.environment, b.environment, CHOOSING))


def _other_work(a: Side, b: Side) -> Iterator[Note]:
    if a.settings is None or b.settings is None:
        return
    yield from _differences(a.settings, b.settings, words_of(*WORK))
    one, other = a.settings.generation, b.settings.generation
    if one and other:
        yield from _differences(one, other, words_of("generation"))
        # Its length is that of the work: what draws pads it to one length.
        yield from _differences(a.settings, b.settings, words_of("prompt"))
    elif one or other:
        yield Note("one_side_generates", facts={"side": "A" if one else "B"})
    if a.settings.own and b.settings.own:
        yield from _differences(a.settings.own, b.settings.own, words_of("own"))
    elif a.settings.own or b.settings.own:
        yield Note("one_side_is_own", facts={"side": "A" if a.settings.own else "B"})


def _multiplies_in_float32(a: Side, b: Side) -> bool:
    """Whether either run's model is of float32: to one of 16 bits the precision of float32 products means little."""
    return "float32" in {side.settings.dtype for side in (a, b) if side.settings}


def find_other_machine(a: Side, b: Side) -> Iterator[Note]:
    """One note for each difference in machine and software, and in the variables that steer it."""
    yield from _other_variables(a, b)
    if a.environment and b.environment:
        yield from _differences(a.environment, b.environment, MACHINE)
        yield from _differences(a.environment, b.environment, _known(a.environment, b.environment, CHOOSING))
        yield from _other_packages(a.environment.packages, b.environment.packages)
        return
    yield from _other_gpu(a, b)


def _other_variables(a: Side, b: Side) -> Iterator[Note]:
    if a.settings and b.settings and a.settings.variables != b.settings.variables:
        yield _differ("variables", dict(a.settings.variables), dict(b.settings.variables))


def _other_gpu(a: Side, b: Side) -> Iterator[Note]:
    """By what runs say of their machines, and where a side is a bare trace by the devices that it names."""
    if a.environment and b.environment:
        yield from _differences(a.environment, b.environment, ("gpu",))
        return
    one, other = map(_gpu_names, (a, b))
    if one and other and one != other:
        yield _differ("gpu", one, other)


def _gpu_names(side: Side) -> str:
    names = {device.name for device in side.analysis.devices if device.name}
    if not names and side.environment and side.environment.gpu:
        names = {side.environment.gpu}
    return ", ".join(sorted(names))


def _other_packages(a: dict[str, str], b: dict[str, str]) -> Iterator[Note]:
    for name in sorted({*a, *b}):
        if a.get(name) != b.get(name):
            yield Note("package_differs", facts={"package": name, "a": a.get(name), "b": b.get(name)})


def _other_windows(a: Side, b: Side) -> Iterator[Note]:
    one, other = a.analysis.window, b.analysis.window
    if a.wall_us is not None and b.wall_us is not None and "steps" not in (one.kind, other.kind):
        yield Note("not_read_over_steps")
    if one.kind != other.kind:
        yield Note("windows_differ", facts={"a": one.kind, "b": other.kind})
    elif one.kind == "whole":
        yield Note("whole_recordings")
    elif one.kind != "steps":
        yield Note("named_spans")
    elif one.steps != other.steps:
        yield Note("steps_differ", "info", facts={"a": one.steps, "b": other.steps})


def _busier_than_the_call(a: Side, b: Side) -> Iterator[Note]:
    for side in (a, b):
        if side.reads_calls and side.wall_us is not None and side.busy_us is not None and side.busy_us > side.wall_us:
            taken = side.unprofiled_idle_us is not None
            facts = {"busy_us": side.busy_us, "wall_us": side.wall_us, "idle_taken_for_0": taken}
            yield Note("busier_than_the_call", subject=side.label, facts=facts)


def _disturbed(a: Side, b: Side) -> Iterator[Note]:
    """Recording never makes a call faster: a recorded step that is much shorter was undisturbed, the timed ones not."""
    for side in (a, b):
        recorded, wall = side.recorded_wall_us, side.wall_us
        if (
            recorded is not None
            and wall is not None
            and side.analysis.window.kind == "steps"
            and wall > 1.25 * recorded
        ):
            calls = len(side.form.wall_us) if side.form else 0
            facts = {"wall_us": wall, "recorded_us": recorded, "timed_calls": calls}
            first_calls = calls < FEWEST_CALLS
            yield Note("timed_slower_than_recorded", subject=side.label, facts={**facts, "first_calls": first_calls})


def _unsound(a: Side, b: Side) -> Iterator[Note]:
    for side in (a, b):
        for finding in side.health:
            if finding.severity == "error":
                facts = {"health": finding.code, "count": finding.count, "facts": dict(finding.facts)}
                yield Note("damaged_recording", "error", side.label, facts)
