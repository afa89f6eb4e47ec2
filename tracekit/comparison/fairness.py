"""What besides the compilation differs between the sides, or keeps them from being compared?"""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.comparison.apart import FEWEST_CALLS
from tracekit.comparison.quietness import find_disturbance
from tracekit.model.comparison import Side
from tracekit.model.generation import Generation
from tracekit.model.option import WORK, words_of
from tracekit.model.own import Own
from tracekit.model.run import Environment, Settings
from tracekit.numbers import duration
from tracekit.shell import variable_words

Compared = Settings | Environment | Generation | Own

MACHINE = {
    "gpu": "GPU",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
}
#: Settings of torch that choose other kernels. Runs from before they were recorded differ in nothing that is known.
CHOOSING = {"float32_matmul_precision": "precision of float32 products"}

CPU_RUN = (
    "This is a CPU run. It shows operators, Inductor's C++ kernels and wall times; it cannot show GPU kernels, "
    "launches, idle time or their causes, and says nothing about how a GPU would fare."
)


def find_unfairness(a: Side, b: Side) -> tuple[str, ...]:
    """One sentence for each thing a reader must know before believing the figures; empty when there is none."""
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
    return tuple(sentence for ask in questions for sentence in ask(a, b))


def find_unsound(side: Side) -> tuple[str, ...]:
    """One sentence for each thing a reader of one side alone must know; empty when there is none."""
    questions = (_missing_gpu, _busier_than_the_call, _disturbed, _unsound)
    return tuple(dict.fromkeys(sentence for ask in questions for sentence in ask(side, side)))


def _same_recording(a: Side, b: Side) -> Iterator[str]:
    if a.path == b.path:
        yield f"Both sides are the same recording ({a.path}): every change is 0."


def _missing_gpu(a: Side, b: Side) -> Iterator[str]:
    if a.analysis.gpu is None and b.analysis.gpu is None:
        yield CPU_RUN
        return
    for side in (a, b):
        if side.analysis.gpu is None:
            yield f"{side.label} has no GPU activity: kernels, idle time and waterfall cannot be compared."
        elif len(side.analysis.devices) > 1:
            yield f"{side.label} ran on {len(side.analysis.devices)} GPUs: figures are sums, and no waterfall is drawn."


def _differences(a: Compared, b: Compared, fields: dict[str, str]) -> Iterator[str]:
    for field, word in fields.items():
        one, other = getattr(a, field), getattr(b, field)
        if one != other:
            yield f"The sides differ in {word}: A has {_shown(one)}, B has {_shown(other)}."


def _known(a: Environment, b: Environment, fields: dict[str, str]) -> dict[str, str]:
    """Those of the fields that both sides hold."""
    return {field: word for field, word in fields.items() if None not in (getattr(a, field), getattr(b, field))}


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none recorded" if value is None else str(value)


def find_other_work(a: Side, b: Side) -> Iterator[str]:
    """One sentence for each setting, and for the GPUs, that makes figures of the two sides differ whatever the code.
    What neither a run nor the devices of a trace tell is not held against anybody."""
    yield from _other_work(a, b)
    yield from _other_gpu(a, b)
    one, other = len(a.analysis.devices), len(b.analysis.devices)
    if one and other and one != other:
        yield f"The sides differ in number of GPUs: A has {one}, B has {other}."
    if a.environment and b.environment and _multiplies_in_float32(a, b):
        yield from _differences(a.environment, b.environment, _known(a.environment, b.environment, CHOOSING))


def _other_work(a: Side, b: Side) -> Iterator[str]:
    if a.settings is None or b.settings is None:
        return
    yield from _differences(a.settings, b.settings, words_of(*WORK))
    one, other = a.settings.generation, b.settings.generation
    if one and other:
        yield from _differences(one, other, words_of("generation"))
        # Its length is that of the work: what draws pads it to one length.
        yield from _differences(a.settings, b.settings, words_of("prompt"))
    elif one or other:
        yield f"Only {'A' if one else 'B'} generates text."
    if a.settings.own and b.settings.own:
        yield from _differences(a.settings.own, b.settings.own, words_of("own"))
    elif a.settings.own or b.settings.own:
        yield f"Only {'A' if a.settings.own else 'B'} is a model of the user's own."


def _multiplies_in_float32(a: Side, b: Side) -> bool:
    """Whether either run's model is of float32: to one of 16 bits the precision of float32 products means little."""
    return "float32" in {side.settings.dtype for side in (a, b) if side.settings}


def find_other_machine(a: Side, b: Side) -> Iterator[str]:
    """One sentence for each difference in machine and software, and in the variables that steer it."""
    yield from _other_variables(a, b)
    if a.environment and b.environment:
        yield from _differences(a.environment, b.environment, MACHINE)
        yield from _differences(a.environment, b.environment, _known(a.environment, b.environment, CHOOSING))
        yield from _other_packages(a.environment.packages, b.environment.packages)
        return
    yield from _other_gpu(a, b)


def _other_variables(a: Side, b: Side) -> Iterator[str]:
    if a.settings and b.settings and a.settings.variables != b.settings.variables:
        one, other = (variable_words(each.variables) or "none" for each in (a.settings, b.settings))
        yield f"The sides differ in variables of the environment that steer torch: A has {one}, B has {other}."


def _other_gpu(a: Side, b: Side) -> Iterator[str]:
    """By what runs say of their machines, and where a side is a bare trace by the devices that it names."""
    if a.environment and b.environment:
        yield from _differences(a.environment, b.environment, {"gpu": MACHINE["gpu"]})
        return
    one, other = map(_gpu_names, (a, b))
    if one and other and one != other:
        yield f"The sides differ in GPU: A has {one}, B has {other}."


def _gpu_names(side: Side) -> str:
    names = {device.name for device in side.analysis.devices if device.name}
    if not names and side.environment and side.environment.gpu:
        names = {side.environment.gpu}
    return ", ".join(sorted(names))


def _other_packages(a: dict[str, str], b: dict[str, str]) -> Iterator[str]:
    for name in sorted({*a, *b}):
        if a.get(name) != b.get(name):
            yield f"The sides differ in {name}: A has {_shown(a.get(name))}, B has {_shown(b.get(name))}."


def _other_windows(a: Side, b: Side) -> Iterator[str]:
    one, other = a.analysis.window, b.analysis.window
    if a.wall_us is not None and b.wall_us is not None and "steps" not in (one.kind, other.kind):
        yield "The recordings were not read over their steps, so their figures do not stand beside unprofiled times."
    if one.kind != other.kind:
        yield (
            f"A was read over {_window(one.kind)} and B over {_window(other.kind)}: figures per step do not mean the "
            "same on both sides; pass --window to read both alike."
        )
    elif one.kind == "whole":
        yield "Figures are of the whole recordings, not per step: both must hold the same work."
    elif one.kind != "steps":
        yield "Figures are per span: both spans must hold the same work."
    elif one.steps != other.steps:
        yield f"A was recorded over {one.steps} steps, B over {other.steps}; figures are per step."


def _window(kind: str) -> str:
    return {"steps": "its marked steps", "span": "one span", "whole": "the whole recording"}[kind]


def _busier_than_the_call(a: Side, b: Side) -> Iterator[str]:
    for side in (a, b):
        if side.reads_calls and side.wall_us is not None and side.busy_us is not None and side.busy_us > side.wall_us:
            taken = "is taken for 0" if side.unprofiled_idle_us is not None else "is not known, figures are as recorded"
            yield (
                f"{side.label}: the GPU was busy for {duration(side.busy_us)} of the recorded step, longer than the "
                f"unprofiled call ({duration(side.wall_us)}): its idle time {taken}."
            )


def _disturbed(a: Side, b: Side) -> Iterator[str]:
    """Recording never makes a call faster: a recorded step that is much shorter was undisturbed, the timed ones not."""
    for side in (a, b):
        recorded, wall = side.recorded_wall_us, side.wall_us
        if (
            recorded is not None
            and wall is not None
            and side.analysis.window.kind == "steps"
            and wall > 1.25 * recorded
        ):
            yield (
                f"{side.label}: timed calls took {wall / recorded:.1f} times as long as recorded ones, though "
                f"recording slows calls: {_why_slower(side)}"
            )


def _why_slower(side: Side) -> str:
    calls = len(side.form.wall_us) if side.form else 0
    if calls < FEWEST_CALLS:
        timed = "call was" if calls == 1 else "calls were"
        return f"only {calls} {timed} timed, and first calls are slow. Time more (--iterations)."
    return "something else used this machine meanwhile, or its clocks changed. Measure again."


def _unsound(a: Side, b: Side) -> Iterator[str]:
    for side in (a, b):
        for finding in side.health:
            if finding.severity == "error":
                yield f"{side.label}: {finding.code}"
