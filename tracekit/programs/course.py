"""What is done in a program's steps: its first ones are watched, then blocks of both variants are timed, then each
variant is recorded.

`Course.run()` is written as if it made the steps: it waits for each by `yield`, and is sent what the step took.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Generator
from functools import partial
from itertools import chain
from statistics import median
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.measure.device import synchronize
from tracekit.measure.timing import SETTLING_CALLS, SETTLING_US, Stopping
from tracekit.model.run import FormName, RecordingKind
from tracekit.model.timing import StoppingRule, StopReason
from tracekit.programs.plan import Kind
from tracekit.programs.recording import ProgramRecording, warm_steps
from tracekit.programs.together import Together
from tracekit.statistics.interval import FEWEST, Values

#: The program's own start is over when so many steps in a row compiled nothing.
QUIET_STEPS = 3
#: At the ends of a block alone the GPU is waited for. The first ones are short, for nobody knows how long the program
#: goes on; after so many rounds they are twice as long, until one lasts so long.
BLOCK_US, GROWING_ROUNDS = 50_000.0, 5
#: A step that takes so long is a block by itself.
LONG_STEP_US = 100_000.0
#: After so many rounds it is recorded, however wide the interval is, unless a time budget was asked for: nobody knows
#: how long the program goes on.
MOST_ROUNDS = 40
#: Of several callables so many are looked at one by one, in so much of the time budget, and so many rounds each.
MOST_ALONE, SHARE_ALONE, MOST_ROUNDS_ALONE = 6, 1.0, 20
#: What a step does before its first compiled call is part of the loop; so many times the usual, and so much more, is
#: evaluation, a checkpoint or a busy host.
LATE, LATE_US = 10.0, 10_000.0
#: The recordings of each variant: its kind, and how many steps are published.
RECORDINGS: tuple[tuple[RecordingKind, int], ...] = (("light", 2), ("rich", 2))
FORMS: tuple[FormName, ...] = ("eager", "compiled")
#: In a step something was compiled, or its first compiled call was late, or it was to be eager and went astray.
LeftOut = Literal["compiled", "late", "astray"]
Waiting = Generator[None, "Step", None]


class Step(Struct, frozen=True):
    """A step that is over."""

    us: float
    before_us: float  #: Of it, before the first compiled call.
    compilations: int
    calls: tuple[str, ...]  #: The outermost compiled calls, by label.
    shapes: tuple[tuple[tuple[int, ...], ...], ...]  #: Of what each of the first of them was given.
    compiling_us: float = 0.0
    astray: bool = False  #: It was to be eager, and a part was compiled.

    @property
    def work(self) -> object:
        """What steps have in common that do the same."""
        return self.calls, self.shapes


class Block(Struct, frozen=True):
    """Steps of one variant that were timed together."""

    form: FormName
    us: float  #: A step; over ranks the slowest rank's.
    work: tuple[object, ...]
    left_out: LeftOut | None  #: Why it does not count.


class Found(Struct):
    """What was measured, as far as the program has come."""

    kind: Kind | None = None
    device: str = "cpu"
    steps: int = 0
    first: list[Step] = []
    cache_was_empty: bool | None = None
    quiet: bool = False
    first_eager_us: list[float] = []  #: Its first steps.
    late_us: list[float] = []  #: Compiled steps in which something was compiled after the first ones.
    blocks: list[Block] = []
    steps_of_block: int = 0
    #: Of steps of each variant, how long they were before their first compiled call.
    before_us: dict[FormName, list[float]] = {}
    stopped: StopReason = "interrupted"
    seconds: float = 0.0
    recordings: dict[tuple[FormName, RecordingKind], ProgramRecording] = {}
    #: Of each of several callables, by its label: blocks in which it alone was eager, and their compiled partners.
    #: Empty: its turn did not come.
    alone: dict[str, list[tuple[Block, Block]]] = {}
    no_eager: str | None = None  #: Why no eager step counts.
    no_recording: str | None = None
    done: bool = False
    off: str | None = None  #: Why measuring ended before it was done.


class Course:
    """Fills `found`. `switch` makes the steps that follow those of a variant, or one callable alone eager; `is_own`
    says of a label whether the program compiles that callable, and no library. `device` says where steps run, `write`
    keeps a recording, `part` hears when something was measured, `recorded` when all was but each callable alone. Ranks
    take it together. One that `spends_budget` times until its target is reached or its budget is spent."""

    def __init__(
        self,
        found: Found,
        forms: tuple[FormName, ...],
        rule: Callable[[str], StoppingRule],
        seed: int,
        ranks: Together,
        device: Callable[[], str],
        is_own: Callable[[str], bool],
        switch: Callable[[FormName, str | None], None],
        write: Callable[[ProgramRecording, FormName, RecordingKind], None],
        part: Callable[[], object],
        recorded: Callable[[], object],
        *,
        says_its_beginning: bool,
        spends_budget: bool,
    ) -> None:
        self._found, self._forms, self._rule, self._ranks = found, forms, rule, ranks
        self._device, self._switch_to, self._write, self._part = device, switch, write, part
        self._is_own, self._recorded = is_own, recorded
        self._shuffle = random.Random(seed).shuffle
        self._whole = says_its_beginning
        self._most_rounds = math.inf if spends_budget else MOST_ROUNDS
        self._varies = False
        #: Whether the GPU is waited for at the end of the step that goes on.
        self.synchronizing = True
        #: Whether an eager step goes on that is not timed: there is room for a closer look.
        self.is_first_eager = False
        #: What is recorded now, or was last.
        self.recording: ProgramRecording | None = None
        #: What a step of this rank's says against eager ones.
        self.against_eager: str | None = None

    def run(self) -> Waiting:
        found, steps, quiet = self._found, list[Step](), 0
        while quiet < QUIET_STEPS:
            steps.append((yield))
            found.first = steps
            quiet = 0 if any(self._ranks.all(steps[-1].compilations)) else quiet + 1
        found.quiet, found.device = True, self._device()
        last = steps[-QUIET_STEPS:]
        found.before_us = {"compiled": [step.before_us for step in last], "eager": []}
        # Of steps that differ a block of several has no partner.
        self._varies = any(self._ranks.all(len({step.work for step in last}) > 1))
        usual_us = max(self._ranks.all(median(step.us for step in last)))
        found.steps_of_block = 1 if self._varies or usual_us > LONG_STEP_US else 2
        self._part()
        rule = self._rule(found.device)
        if not rule.budget_seconds:
            return
        yield from self._rounds(rule)
        for form in self._forms:
            if form == "eager" and found.no_eager:
                continue
            yield from self._turn(form)
            for kind, count in RECORDINGS:
                yield from self._record(form, kind, count)
        self._switch_to("compiled", None)
        self._recorded()
        own = [label for step in last for label in step.calls if self._is_own(label)]
        yield from self._each_alone(rule, [*dict.fromkeys(chain(*self._ranks.all(own)))])
        self._switch_to("compiled", None)

    def _rounds(self, rule: StoppingRule) -> Waiting:
        found = self._found
        stopping, began, rounds = Stopping(rule, lambda _text: None), time.monotonic(), 0
        reason: StopReason | None = None
        while reason is None:
            order = [form for form in self._forms if form == "compiled" or not found.no_eager]
            self._shuffle(order)
            for form in order:
                yield from self._turn(form)
                if found.no_eager and form == "eager":
                    break
                found.blocks.append((yield from self._block(form)))
                found.no_eager = next(filter(None, self._ranks.all(self.against_eager)), None)
            rounds += 1
            block_us = median(block.us for block in found.blocks) * found.steps_of_block if found.blocks else BLOCK_US
            if rounds % GROWING_ROUNDS == 0 and not self._varies and block_us < BLOCK_US:
                found.steps_of_block *= 2
            found.seconds = time.monotonic() - began
            counted = len(paired(found.blocks)) if len(order) > 1 else len(found.blocks)
            reason = stopping.reason(counted, self._logs, rounds, found.seconds)
            reason = reason or ("most rounds" if rounds >= self._most_rounds else None)
            reason, found.steps_of_block = self._ranks.first((reason, found.steps_of_block))
            found.stopped = reason or "interrupted"

    def _each_alone(self, rule: StoppingRule, labels: list[str]) -> Waiting:
        """Each of several callables eager, all others compiled, against all of them compiled."""
        found = self._found
        if len(labels) < 2 or len(self._forms) < 2 or found.no_eager or found.no_recording:
            return
        found.alone = {label: [] for label in labels}
        budget = SHARE_ALONE * rule.budget_seconds / min(len(labels), MOST_ALONE)
        usual_us = max(self._ranks.all(median(block.us for block in found.blocks)))
        # Each of the fewest rounds has two blocks, and before each a step at least.
        if FEWEST * 2 * (found.steps_of_block + 1) * usual_us > budget * 1e6:
            return
        for label in labels[:MOST_ALONE]:
            stopping = Stopping(replace(rule, budget_seconds=budget), lambda _: None)
            began, blocks = time.monotonic(), list[Block]()
            for rounds in range(1, MOST_ROUNDS_ALONE + 1):
                order: list[FormName] = [*FORMS]
                self._shuffle(order)
                for form in order:
                    yield from self._turn(form, alone=label)
                    blocks.append((yield from self._block(form)))
                    if any(self._ranks.all(self.against_eager)):
                        return
                pairs, seconds = paired(blocks), time.monotonic() - began
                reason = stopping.reason(len(pairs), partial(ratio_logs, pairs), rounds, seconds)
                if self._ranks.first(reason is not None or seconds > 2 * budget):
                    break
            found.alone[label] = pairs
        self._part()

    def _logs(self) -> Values:
        pairs = paired(self._found.blocks)
        if len(self._forms) == 1 or self._found.no_eager:
            return np.log([block.us for block in self._found.blocks if block.left_out is None])
        return ratio_logs(pairs)

    def _turn(self, form: FormName, alone: str | None = None) -> Waiting:
        """The variant, and the steps after which it finds caches and guards as its own steps leave them."""
        found = self._found
        self.is_first_eager = form == "eager" and not any(block.form == "eager" for block in found.blocks)
        self._switch_to(form, alone)
        self.synchronizing = self.is_first_eager
        settled_us = 0.0
        for number in range(SETTLING_CALLS):
            step = yield
            settled_us += step.us
            found.before_us[form].append(step.before_us)
            if self.is_first_eager:
                found.first_eager_us.append(step.us)
                found.no_eager = next(filter(None, self._ranks.all(self.against_eager)), None)
            # The very first eager step makes what later ones find.
            enough = settled_us >= SETTLING_US and number >= self.is_first_eager
            if found.no_eager or self._ranks.first(enough):
                break
        self.is_first_eager = False
        if found.no_eager:
            self._switch_to("compiled", None)

    def _block(self, form: FormName) -> Generator[None, Step, Block]:
        found, steps = self._found, list[Step]()
        synchronize(found.device)
        for number in range(found.steps_of_block):
            self.synchronizing = self._whole or number == found.steps_of_block - 1
            steps.append((yield))
        usual_us = median(found.before_us[form])
        late_us = max(LATE * usual_us, usual_us + LATE_US)
        left_out: LeftOut | None = None
        # A step that ran out of memory went on compiled.
        if any(step.compilations for step in steps) or self.against_eager:
            left_out = "compiled"
        elif any(step.astray for step in steps):
            left_out = "astray"
        elif any(step.before_us > late_us for step in steps):
            left_out = "late"
        found.before_us[form] += [step.before_us for step in steps]
        told = self._ranks.all((sum(step.us for step in steps) / len(steps), left_out))
        left_out = next((why for _us, why in told if why), None)
        return Block(form, max(us for us, _why in told), tuple(step.work for step in steps), left_out)

    def _record(self, form: FormName, kind: RecordingKind, count: int) -> Waiting:
        found = self._found
        self.synchronizing = True
        recording = ProgramRecording(form, kind, found.device)
        failed, made, steps = found.no_recording, 0, count + warm_steps(count)
        if not failed:
            try:
                with recording.session():
                    self.recording = recording
                    for _ in recording.steps(count, say_their_beginning=self._whole and found.kind != "marked"):
                        yield
                        made += 1
                self._write(recording, form, kind)
            except TracekitError as error:
                failed = str(error)
        # Other ranks make theirs.
        for _ in range(steps - made if self._ranks.size > 1 else 0):
            yield
        found.no_recording = next(filter(None, self._ranks.all(failed)), None)
        if found.no_recording:
            return
        found.recordings[form, kind] = recording
        self._part()
        # A span that was open when a session ended, as an optimizer's is here, must be over before the next begins:
        # torch would write its end into the memory of the session that is gone.
        self.synchronizing = False
        yield


def ratio_logs(pairs: list[tuple[Block, Block]]) -> Values:
    """The logarithm of eager over compiled of each pair."""
    return np.log([eager.us / compiled.us for eager, compiled in pairs])


def paired(blocks: list[Block]) -> list[tuple[Block, Block]]:
    """Eager and compiled blocks of the same work, in the order they were measured."""
    left: dict[tuple[FormName, object], list[Block]] = {}
    pairs = []
    for block in blocks:
        if block.left_out:
            continue
        other: FormName = "compiled" if block.form == "eager" else "eager"
        waiting = left.get((other, block.work))
        if waiting:
            partner = waiting.pop(0)
            pairs.append((block, partner) if block.form == "eager" else (partner, block))
        else:
            left.setdefault((block.form, block.work), []).append(block)
    return pairs
