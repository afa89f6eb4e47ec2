"""The process that becomes the program: `python -m tracekit.programs.host PLAN`."""

from __future__ import annotations

import atexit
import datetime
import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from tracekit import store
from tracekit.measure.plan import rank_here
from tracekit.programs.hosting import run_program, say, show_error, when_imported
from tracekit.programs.plan import ProgramPlan, parse_step
from tracekit.shell import joined

if TYPE_CHECKING:
    from tracekit.model.timing import StoppingRule
    from tracekit.programs.session import Session

#: Of a machine with a GPU, and without.
GPU_SECONDS, CPU_SECONDS = 30.0, 3.0
TARGET_PERCENT = 1.0
#: By number: a program may have put something else in place of sys.stderr.
STDERR = 2
#: Rounds before the target is asked.
LEAST_ROUNDS = 10


class Host:
    """One program, watched from the moment it imports torch to its end."""

    def __init__(self, plan: ProgramPlan) -> None:
        self._plan = plan
        self._process, self._folder = os.getpid(), Path.cwd()
        #: Of several that a launcher started, the first speaks and writes the run.
        self._rank = rank_here() or 0
        self._environment = dict(os.environ)
        self._started = datetime.datetime.now(datetime.UTC)
        self._session: Session | None = None
        self._draft: Path | None = None
        self._open = ExitStack()
        self._is_finished = self._said = False
        #: Whether an error, a signal or an exit code ended the program.
        self._ended_early = False

    def run(self) -> None:
        plan = self._plan
        # What is registered first is called last: behind all that the program does at its end, threads too.
        atexit.register(self._over)
        # Of torch 2.13 and later the profiler else writes a line for each start and end.
        os.environ.setdefault("KINETO_LOG_LEVEL", "99")
        when_imported("torch", self._watch_or_say)
        self._ended_early = True
        try:
            run_program(plan.program, plan.arguments, is_module=plan.is_module)
        except SystemExit as end:
            self._ended_early = bool(end.code)
            raise
        self._ended_early = False

    def say_whose_step(self) -> None:
        """The program has raised: if that was in a step that we made eager, or behind one, that may be why."""
        session = self._session
        if session is not None and (session.raised_in_eager or session.is_in_eager_step):
            say("tracekit made the last step before it eager, if not this one; --no-eager makes none")

    def _watch_or_say(self) -> None:
        """Whatever of ours fails, the program goes on."""
        try:
            self._watch()
        except Exception as error:  # noqa: BLE001 - see above.
            self._session, self._said = None, True
            say(f"nothing is measured: {error}")

    def _watch(self) -> None:
        from tracekit.programs.session import Session

        plan, folder = self._plan, Path(self._plan.out)
        self._draft = folder.with_name(folder.name + store.INCOMPLETE)
        if not self._rank:
            self._draft = self._open.enter_context(store.begun(folder, force=plan.force))
        self._session = Session(
            parse_step(plan.step),
            self._rule,
            plan.seed,
            Path(plan.program).name,
            self._draft,
            say,
            self._save,
            self._finish,
            self._measured,
            eager=plan.eager,
            spends_budget=plan.budget_seconds is not None,
        )
        self._session.install()
        if plan.eager and not self._rank and plan.budget_seconds != 0:
            say("some steps will run eager, to be compared: they are real steps (--no-eager makes none)")

    def _rule(self, device: str) -> StoppingRule:
        from tracekit.model.timing import StoppingRule

        budget = self._plan.budget_seconds
        if budget is None:
            budget = GPU_SECONDS if device != "cpu" else CPU_SECONDS
        return StoppingRule(None, (self._plan.target_percent or TARGET_PERCENT) / 100, budget, LEAST_ROUNDS)

    def _measured(self) -> None:
        """All is measured: the run is whole, even if the program never comes to its end."""
        self._finish()
        in_main = threading.current_thread() is threading.main_thread()
        if not self._rank:
            budget = self._plan.budget_seconds
            say(
                ("the first steps are over; " if budget == 0 else "measured; ")
                + ("the program is ended (--stop)" if self._plan.stop and in_main else "the program goes on compiled")
            )
        if self._plan.stop and not in_main:
            say("--stop ends no program whose steps are of a thread")
        elif self._plan.stop:
            raise SystemExit(0)

    def _save(self) -> bool:
        """Writes the run as far as it is known; whether a variant is in it."""
        from tracekit.programs.manifest import run_of

        assert self._session is not None and self._draft is not None
        if self._rank:
            return False
        rule = self._rule(self._session.found.device)
        run = run_of(
            self._session, Path(self._plan.program).name, self._plan.command, self._started, rule, self._plan.seed
        )
        store.save(replace(run, status="complete") if self._is_finished else run, self._draft)
        return bool(run.forms)

    def _finish(self) -> bool:
        """Writes the run, where there is anything to write, under its name; whether there was."""
        session = self._session
        if self._rank or session is None or self._draft is None or not session.found.quiet:
            return self._is_finished
        if self._save() and session.found.recordings and not self._is_finished:
            self._draft = store.finish(store.load(self._draft), self._draft)
            self._is_finished = True
        elif self._is_finished:
            return True
        else:
            store.clear(self._draft)
            self._draft = None
        self._open.close()
        return self._is_finished

    def _over(self) -> None:
        session = self._session
        if os.getpid() != self._process:
            return
        if session is not None:
            session.close()
        if self._rank or self._said:
            return
        try:
            is_whole = self._finish()
            self._open.close()
            self._tell(session, is_whole=is_whole)
        except Exception as error:  # noqa: BLE001 - the program's exit code is its own.
            say(f"no report: {error}")

    def _tell(self, session: Session | None, *, is_whole: bool) -> None:
        if session is None:
            say("the program never imported torch: nothing was measured")
            return
        from tracekit.programs.telling import told

        for line in told(session, self._plan.step, ended_early=self._ended_early):
            say(line)
        found = session.found
        if not is_whole or not found.recordings:
            return
        if session.ranks.size > 1:
            say(f"each rank: tracekit ranks {joined([f'{self._plan.out}/compiled-ranks'])}")
        both = all(any(each.form == form for each in found.blocks) for form in ("eager", "compiled"))
        command, force = "compare" if both else "analyze", ["--force"] if self._plan.force else []
        # Of one variant a page is written where it is asked for, which takes the word behind it for its place.
        page = [] if both else ["--html"]
        options = (self._plan.out, *force, *self._plan.report, *page)
        words = (sys.executable, "-P", "-m", "tracekit", command, *options)
        here, theirs = str(Path(store.__file__).parents[1]), self._environment.get("PYTHONPATH")
        paths = os.pathsep.join(filter(None, (here, theirs)))
        # In a process of its own, as it was before the program: reading traces takes memory and threads.
        subprocess.run(
            words,
            stdout=STDERR,
            cwd=self._folder,
            env={**self._environment, "PYTHONPATH": paths},
            check=False,
        )


def main() -> None:
    host = Host(msgspec.json.decode(sys.argv[1], type=ProgramPlan))
    try:
        host.run()
    except Exception as error:  # noqa: BLE001 - the program's: it ends as it would by itself.
        show_error(error)
        host.say_whose_step()
        sys.exit(1)


if __name__ == "__main__":
    main()
