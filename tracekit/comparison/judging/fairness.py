"""What besides the compilation differs between the sides, or keeps them from being compared?"""

from collections.abc import Callable, Iterable, Iterator
from math import prod

from tracekit.comparison.cost.flops import attention_sizes, factors_of, find_convolution, flops_of
from tracekit.comparison.cost.operator_calls import find_calls
from tracekit.comparison.judging.disturbances import find_disturbance
from tracekit.comparison.judging.rank_differences import note_rank_differences
from tracekit.comparison.judging.thresholds import FEWEST_CALLS, SLOWER_THAN_RECORDED
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.model.note import Note, distinct
from tracekit.model.option import SIZES, WORK, words_of
from tracekit.model.run import Environment, Generation, Settings, UserModel
from tracekit.model.sequence import Operator, Sequence
from tracekit.statements.notes import ranks, recordings, work

Compared = Settings | Environment | Generation | UserModel
Question = Callable[[Side, Side], Iterable[Note]]

MACHINE = ("gpu", "driver", "cuda", "cpu", "cpu_threads", "python")
#: A sequence whose operators are of the very work that it holds.
OF_ITS_OWN = ("own", "rich")
#: The compiler exchanges some matmuls for others; of other sizes are the inputs where fewer than this share of the
#: lender's matmuls, of so many at least, is as large as one of the other side.
LEAST_SHARE, LEAST_MATMULS = 0.25, 4


def find_unfairness(a: Side, b: Side, *, joined: bool = False) -> tuple[Note, ...]:
    """One note for each thing a reader must know before believing the figures; empty when there is none. Of ranks that
    were `joined` it is known how long they waited for each other."""
    same = (recordings.SameRecording(a.path),) if a.path == b.path else ()
    of_work: tuple[Question, ...] = (_missing_gpu, _in_training, note_rank_differences, _of_ranks, _other_work)
    of_recordings: tuple[Question, ...] = (_beside_whole_calls, _other_windows, _unlike_the_call)
    untold: tuple[Question, ...] = () if joined else (_unjudged_communication,)
    questions = (*of_work, find_other_machine, *of_recordings, *untold, find_disturbance, _damaged)
    return (*same, *(note for ask in questions for note in ask(a, b)))


def find_unsound(side: Side) -> tuple[Note, ...]:
    """One note for each thing a reader of one side alone must know; empty when there is none."""
    of_work: tuple[Question, ...] = (_missing_gpu, _in_training, note_rank_differences)
    questions = (*of_work, _beside_whole_calls, _unlike_the_call, _damaged)
    return (*distinct(note for ask in questions for note in ask(side, side)), *_untold_waiting(side))


def find_other_work(a: Side, b: Side) -> Iterator[Note]:
    """One note for each setting, and for the GPUs, that makes figures of the two sides differ whatever the code.
    What neither a run nor the devices of a trace tell is not held against anybody."""
    yield from _other_work(a, b)
    yield from _other_gpu(a, b)
    one, other = len(a.analysis.devices), len(b.analysis.devices)
    if one and other and one != other:
        yield work.SettingDiffers("gpus", one, other)
    # To a model of 16 bits the precision of float32 matmuls means little.
    in_float32 = "float32" in {side.settings.dtype for side in (a, b) if side.settings}
    if a.environment and b.environment and in_float32:
        yield from _other_precision(a.environment, b.environment)


def find_other_machine(a: Side, b: Side) -> Iterator[work.SettingDiffers | work.PackageDiffers]:
    """One note for each difference in machine and software, and in the variables that steer it."""
    if a.settings and b.settings and a.settings.variables != b.settings.variables:
        yield work.SettingDiffers("variables", a.settings.variables, b.settings.variables)
    if not (a.environment and b.environment):
        yield from _other_gpu(a, b)
        return
    yield from _differences(a.environment, b.environment, MACHINE)
    yield from _other_precision(a.environment, b.environment)
    one, other = a.environment.packages, b.environment.packages
    for name in sorted({*one, *other}):
        if one.get(name) != other.get(name):
            yield work.PackageDiffers(name, one.get(name), other.get(name))


def find_fallbacks(*sides: Side) -> Iterator[Note]:
    """A note for each side that ran eager though it was to be compiled, and for each part of one that did."""
    for side in sides:
        parts = side.diagnostics.unmeant_fallbacks if side.diagnostics else ()
        if ran_eager(side):
            breaks = side.diagnostics.breaks if side.diagnostics else ()
            broken = f"graph break at {breaks[0].line or 'an unknown line'}: {breaks[0].reason}" if breaks else None
            yield work.RanEager(parts[-1].reason if parts else broken)
            continue
        for part in parts:
            named = part.function or "a frame without a name"
            place = f"{named} ({part.where})" if part.where else named
            place += f", at {part.line}" if part.line and part.line != part.where else ""
            yield work.PartRanEager(side.label, place, part.reason)


def ran_eager(side: Side) -> bool:
    """Whether no step of the compiled form, as recorded, ran a compiled graph: none entered what Dynamo made, or that
    holds no graph. False where it was not recorded, or only a part of the step is looked at."""
    if side.form is None or side.form.name != "compiled" or side.entering is None:
        return False
    regions, compilation = side.entering.regions, side.form.compilation
    if side.entering.window.kind != "steps" or regions is None or regions.graphs:
        return False
    # Graphs of another backend than Inductor have no events.
    return regions.count == 0 or (compilation is not None and compilation.graphs == 0)


def refuse_other_sizes(place: str, lender: Side, borrower: Side, other: Side) -> None:
    """Raises TracekitError where the trace at `place`, which lends its operators, is of other sizes than the borrower:
    they would pass for those of the borrower. Known are the settings of runs, and the matmuls of `other`, which does
    the same work as the borrower."""
    refused = f"--ops {place}:"
    if lender.settings and borrower.settings:
        for field, word in words_of(*SIZES).items():
            size, own_size = getattr(lender.settings, field), getattr(borrower.settings, field)
            if size != own_size:
                raise TracekitError(f"{refused} its {word} is {size}, not {own_size}; pass a trace of the same size")
    if lender.sequence is None or other.sequence is None or other.sequence.operators not in OF_ITS_OWN:
        return
    theirs, own = _matmul_sizes(lender.sequence), set(_matmul_sizes(other.sequence))
    alike = sum(each in own for each in theirs)
    if own and len(theirs) >= LEAST_MATMULS and alike < LEAST_SHARE * len(theirs):
        raise TracekitError(
            f"{refused} {len(theirs) - alike} of its {len(theirs)} matmuls have shapes that"
            f" {other.label} has not; pass a trace of the same shapes"
        )


def _matmul_sizes(sequence: Sequence) -> list[tuple[int, int]]:
    """Each matmul, attention and convolution whose sizes were recorded: how many operations it takes, and over how
    many elements it sums up. Neither depends on which factor stands first, or on how dimensions are put together."""

    def length_of_sums(operator: Operator) -> int | None:
        factors, attention, convolution = factors_of(operator), attention_sizes(operator), find_convolution(operator)
        if factors:
            return factors[0][2]
        if attention:
            return attention[0][3]
        return prod(convolution.weight[1:]) if convolution else None

    operators = [call.operator for call in find_calls(sequence.activities).values() if call.operator]
    found = ((flops_of(operator), length_of_sums(operator)) for operator in operators)
    return [(flops, length) for flops, length in found if flops and length]


def _missing_gpu(a: Side, b: Side) -> Iterator[Note]:
    if a.analysis.gpu is None and b.analysis.gpu is None:
        yield recordings.CpuRun()
        return
    for side in (a, b):
        if side.analysis.gpu is None:
            yield recordings.NoGpuActivity(side.label)
        elif len(side.analysis.devices) > 1:
            yield recordings.SeveralGpus(side.label, len(side.analysis.devices))


def _differences(a: Compared, b: Compared, settings: Iterable[str]) -> Iterator[work.SettingDiffers]:
    for setting in settings:
        one: work.Setting = getattr(a, setting)
        other: work.Setting = getattr(b, setting)
        if one != other:
            yield work.SettingDiffers(setting, one, other)


def _other_precision(a: Environment, b: Environment) -> Iterator[work.SettingDiffers]:
    """Which chooses other kernels. Runs from before it was recorded differ in nothing that is known."""
    if a.float32_matmul_precision is not None and b.float32_matmul_precision is not None:
        yield from _differences(a, b, ("float32_matmul_precision",))


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
        yield work.OneSideGenerates("A" if one else "B")
    if a.settings.own and b.settings.own:
        yield from _differences(a.settings.own, b.settings.own, words_of("own"))
    elif a.settings.own or b.settings.own:
        yield work.OneSideIsOwn("A" if a.settings.own else "B")


def _other_gpu(a: Side, b: Side) -> Iterator[work.SettingDiffers]:
    """By what runs say of their machines, and where a side is a bare trace by the devices that it names."""
    if a.environment and b.environment:
        yield from _differences(a.environment, b.environment, ("gpu",))
        return
    names = []
    for side in (a, b):
        of_devices = {device.name for device in side.analysis.devices if device.name}
        of_run = {side.environment.gpu} if side.environment and side.environment.gpu else set()
        names.append(", ".join(sorted(of_devices or of_run)))
    if all(names) and names[0] != names[1]:
        yield work.SettingDiffers("gpu", *names)


def _of_ranks(a: Side, b: Side) -> Iterator[Note]:
    for side in (a, b):
        name = side.form.name if side.form else None
        forms = [(each.rank, form) for each in side.ranks for form in each.forms if form.name == name]
        if len(forms) > 1:
            rank, slowest = max(forms, key=lambda each: each[1].times_slowest)
            calls = sum(form.times_slowest for _, form in forms)
            yield ranks.OfRanks(side.label, len(side.ranks), rank, slowest.times_slowest, calls, side.rank)
    one, other = len(a.ranks) or 1, len(b.ranks) or 1
    if a.settings and b.settings and one != other:
        # Nothing is joined of these: each side is its rank 0.
        yield ranks.RanksDiffer(one, other)


def _untold_waiting(side: Side) -> Iterator[Note]:
    """A grave note where busy time may hold waiting for other ranks. Figures are per step."""
    found = side.analysis.communication
    if found and found.may_wait:
        yield ranks.WaitingUntold(
            subject=side.label,
            communication_us=found.total_us / side.steps,
            compute_us=found.compute_us / side.steps,
            exposed_us=side.exposed_us,
            rank=found.rank,
            world_size=found.world_size,
        )


def _unjudged_communication(a: Side, b: Side) -> Iterator[Note]:
    """A grave note where the change of GPU time may be one of waiting for other ranks. Figures are per step."""
    found = [side.analysis.communication for side in (a, b)]
    if any(each and each.may_wait for each in found):
        yield ranks.CommunicationNotJudged(a.exposed_us, b.exposed_us)


def _in_training(a: Side, b: Side) -> Iterator[Note]:
    modules = [side.settings.own.training if side.settings and side.settings.own else () for side in (a, b)]
    for side, names in zip((a, b), modules, strict=True):
        if names:
            together = modules[0] == modules[1]
            yield work.TrainingMode(list(names), None if together else side.label)
            if together:
                return


def _beside_whole_calls(a: Side, b: Side) -> Iterator[Note]:
    one, other = a.analysis.window, b.analysis.window
    if a.wall_us is not None and b.wall_us is not None and "steps" not in (one.kind, other.kind):
        yield recordings.NotReadOverSteps(one.kind)


def _other_windows(a: Side, b: Side) -> Iterator[Note]:
    one, other = a.analysis.window, b.analysis.window
    if one.kind != other.kind:
        yield recordings.WindowsDiffer(one.kind, other.kind)
    elif one.kind == "whole":
        yield recordings.WholeRecordings()
    elif one.kind != "steps":
        yield recordings.NamedSpans()
    elif one.steps != other.steps:
        yield recordings.StepsDiffer(one.steps, other.steps)


def _unlike_the_call(a: Side, b: Side) -> Iterator[Note]:
    """Recording never makes a call faster, nor busier than it takes: a recorded step that is much shorter was
    undisturbed, the timed ones not."""
    for side in (a, b):
        if side.reads_calls and side.wall_us is not None and side.busy_us is not None and side.busy_us > side.wall_us:
            taken = side.unprofiled_idle_us is not None
            yield recordings.BusierThanTheCall(side.label, side.busy_us, side.wall_us, idle_taken_for_0=taken)
    for side in (a, b):
        recorded, wall = side.recorded_wall_us, side.wall_us
        if recorded is None or wall is None or side.analysis.window.kind != "steps":
            continue
        if wall > SLOWER_THAN_RECORDED * recorded:
            calls = len(side.form.wall_us) if side.form else 0
            first = calls < FEWEST_CALLS
            yield recordings.TimedSlowerThanRecorded(side.label, wall, recorded, calls, first_calls=first)


def _damaged(a: Side, b: Side) -> Iterator[Note]:
    for side in (a, b):
        for finding in side.health:
            if finding.severity == "error":
                yield recordings.DamagedRecording(side.label, finding)
