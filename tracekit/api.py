"""tracekit in a program: profile a model that is in memory, record a loop, read runs and traces. `import tracekit`
brings these names, and imports this file when the first of them is used."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tracekit import __version__, store
from tracekit.asked import IN_A_PROGRAM, check_asked, check_value, without_numpy
from tracekit.errors import TracekitError
from tracekit.measure.spans import region, step
from tracekit.model.bounded import Count, PlaceName, Steps
from tracekit.model.comparison import Comparison
from tracekit.model.option import MODES
from tracekit.model.run import FormName, Run
from tracekit.model.single_run import SingleRun
from tracekit.model.workload import Request, Workload
from tracekit.names import encodable

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from tracekit.measure.recording import Recorder
    from tracekit.model.host_marks import HostMarks
    from tracekit.model.note import Noted
    from tracekit.model.progress import Progress
    from tracekit.reading.traces import Reading

__all__ = [
    "ProfiledComparison",
    "ProfiledRun",
    "ProfiledTrace",
    "Workload",
    "analyze",
    "compare",
    "load",
    "profile",
    "record",
    "region",
    "step",
]

#: Of a loop nothing is recorded of so many steps: compiling, and CUDA graphs, take three.
SKIPPED_STEPS = 3
#: What lies in a folder that `record` writes: one trace, or one of each rank, and its digest; and what a profiler is
#: writing yet.
TRACE, DIGEST_OF_TRACE = "trace.json.gz", "trace.digest"
OF_RANK = re.compile(r"rank(\d+)\.(?:json\.gz|digest)")
UNFINISHED = re.compile(r"\.(trace|rank\d+)\.(json(\.tmp)?|(json\.gz|digest)\.[0-9a-f]{16})")
#: Whose lines are not the user's, where a warning is to point to one.
MACHINERY = {"tracekit", "contextlib", "torch"}


class ProfiledRun(Run, frozen=True, kw_only=True):
    """A run, and the folder in which it lies; and the reports of the run that it replaced."""

    folder: Path
    replaces: frozenset[str] = frozenset()

    def compare(self) -> ProfiledComparison:
        """What torch.compile did: verdict, waterfall, kernel groups, findings. Reads the recordings, which takes
        seconds. Raises TracekitError unless the run has both forms."""
        from tracekit.reading.sides import compare_forms

        return _drawable(compare_forms(self.folder, self))

    def figures(self) -> dict[str, Figure]:
        """The charts of the run's report as `plotly.graph_objects.Figure`s by name: of both forms those of `compare()`,
        of one form its own. Reads the recordings, which takes seconds."""
        return self._read().figures()

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the lines that the command shows. Reads the recordings, which takes seconds."""
        return self._read()._repr_html_()

    def __str__(self) -> str:
        """Five lines: what was run, the answer, where a call's time goes, compile time and break-even, the folder.
        Reads the recordings, which takes seconds."""
        return self._read()._few_lines(str(self.folder))

    def _read(self) -> ProfiledComparison | ProfiledTrace:
        """What is shown of it, by how many forms it has."""
        if len(self.forms) > 1:
            return self.compare()
        from tracekit.reading.single_run import look_at_run

        return _of_one_side(look_at_run(self.folder, self, _reading()))

    def report(self, folder: Path | str = "reports", *, force: bool = False) -> Path:
        """Writes the report, an HTML page with a markdown twin beside it, into `folder`; returns the page's path. Of a
        run of one form it is that form's own page. It replaces reports of this run, and of the one that this run
        replaced. Raises TracekitError where anything else is there and `force` is not set."""
        from tracekit.reading.reports import Destination, identity_of_report_on, report_of_run, write_report

        identity, ways = identity_of_report_on(self), store.Ways("force=True", "another folder")
        there = Destination(Path(folder), self.folder.name, identity, force, self.replaces, ways)
        there.check()
        page, _twin = write_report(report_of_run(self.folder, self, self._read()), there)
        return page


class ProfiledComparison(Comparison, frozen=True, kw_only=True):
    """A comparison that can be drawn, and that a notebook shows."""

    def figures(self) -> dict[str, Figure]:
        """The charts of the report as `plotly.graph_objects.Figure`s by name: `call`, `waterfall`, `modules`,
        `family-times`, `family-counts`, `idle-causes`, `compile-phases`. What was not recorded has none."""
        from tracekit.report.charts import comparison_charts
        from tracekit.report.plotly_figures import figures_of

        return figures_of(comparison_charts(self))

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the lines that the command shows."""
        from tracekit.report.composition.overview import comparison_overview
        from tracekit.report.thirty_lines import overview_html

        return overview_html(comparison_overview(self))

    def __str__(self) -> str:
        """The same lines as text, for `print`."""
        from tracekit.report.composition.overview import comparison_overview
        from tracekit.report.thirty_lines import overview_text

        return overview_text(comparison_overview(self))

    def _few_lines(self, folder: str) -> str:
        from tracekit.report.composition.overview import comparison_overview, compile_words
        from tracekit.report.composition.overview_account import time_words
        from tracekit.report.thirty_lines import few_lines
        from tracekit.report.words.common import both_sides

        return few_lines(comparison_overview(self), time_words(both_sides(self)), compile_words(self), folder)


class ProfiledTrace(SingleRun, frozen=True, kw_only=True):
    """One trace, or one form of a run, that can be drawn, and that a notebook shows."""

    def figures(self) -> dict[str, Figure]:
        """The charts of its page as `plotly.graph_objects.Figure`s by name: `family-times`, `family-counts`,
        `idle-causes`, `compile-phases`. What was not recorded has none."""
        from tracekit.report.charts import side_charts
        from tracekit.report.plotly_figures import figures_of
        from tracekit.report.words.common import with_letters

        return figures_of(side_charts(with_letters(self.side)))

    def _repr_html_(self) -> str:
        """What a notebook shows of it: the lines that the command shows."""
        from tracekit.report.composition.one_side import side_overview
        from tracekit.report.thirty_lines import overview_html

        return overview_html(side_overview(self))

    def __str__(self) -> str:
        """The same lines as text, for `print`."""
        from tracekit.report.composition.one_side import side_overview
        from tracekit.report.thirty_lines import overview_text

        return overview_text(side_overview(self))

    def _few_lines(self, folder: str) -> str:
        from tracekit.report.composition.one_side import side_overview
        from tracekit.report.composition.overview_account import time_words
        from tracekit.report.thirty_lines import few_lines
        from tracekit.report.words.common import subject, with_letters

        # The folder says where it is.
        overview = replace(side_overview(self), subject=f"{self.side.label} · {subject(self.side)}")
        return few_lines(overview, time_words(with_letters(self.side)), folder)


def analyze(
    trace: Path | str | ProfiledRun,
    *,
    form: FormName | None = None,
    window: str = "auto",
    steps: str | int | None = None,
    rank: int | None = None,
) -> ProfiledTrace:
    """What one trace says, or one form of a run (the compiled one where there is one): as `tracekit analyze`, whose
    options the arguments are (`steps`: `3` or `"2-4"`). `print` shows its lines. Takes seconds, and needs no torch.
    Raises TracekitError for whatever keeps it from being read; what is damaged is told by `side.health`."""
    from tracekit.comparison.looking import look_at
    from tracekit.reading.sides import is_run_folder, load_side, of_rank
    from tracekit.reading.single_run import look_at_run

    (place,) = of_rank((_place(trace),), rank)
    reading = _reading(window, steps)
    if is_run_folder(place):
        return _of_one_side(look_at_run(Path(place), store.load(Path(place)), reading, form))
    return _of_one_side(look_at(load_side(place, form=form, reading=reading)))


def compare(
    a: Path | str | ProfiledRun,
    b: Path | str | ProfiledRun | None = None,
    *,
    form_a: FormName | None = None,
    form_b: FormName | None = None,
    window: str = "auto",
    steps: str | int | None = None,
    rank: int | None = None,
) -> ProfiledComparison:
    """What changed from A to B, two runs or traces, or from eager to compiled of a single run: as `tracekit compare`,
    whose options the arguments are. `print` shows its lines. Takes seconds, and needs no torch. Raises TracekitError
    for whatever keeps them from being read, and where there is nothing to compare."""
    from tracekit.reading.pairs import compare_pair, name_sides
    from tracekit.reading.sides import of_rank

    one, *other = of_rank([_place(each) for each in (a, b) if each is not None], rank)
    pair = name_sides(one, other[0] if other else None, (form_a, form_b))
    return _drawable(compare_pair(pair, _reading(window, steps)))


def _place(named: Path | str | ProfiledRun) -> str:
    return str(named.folder if isinstance(named, ProfiledRun) else named)


def _reading(window: str = "auto", steps: str | int | None = None) -> Reading:
    from tracekit.reading.traces import Reading, parse_steps

    check_value("window=", window, str)
    check_value("steps=", steps, str | int | None)
    return Reading(window, parse_steps(None if steps is None else str(steps)), shapes=True)


def _drawable(found: Comparison) -> ProfiledComparison:
    return ProfiledComparison(**{each: getattr(found, each) for each in Comparison.__struct_fields__})


def _of_one_side(found: SingleRun) -> ProfiledTrace:
    return ProfiledTrace(**{each: getattr(found, each) for each in SingleRun.__struct_fields__})


def load(folder: Path | str) -> ProfiledRun:
    """The run in a folder that either `profile` wrote. Raises TracekitError if there is none."""
    run = store.load(Path(folder))
    return ProfiledRun(**{each: getattr(run, each) for each in Run.__struct_fields__}, folder=Path(folder))


def profile(
    model: Callable[..., object] | Workload,
    *args: Any,
    kwargs: Mapping[str, Any] | None = None,
    compile: Mapping[str, object] | bool = True,  # noqa: A002 - torch's own word for it.
    scope: str | None = None,
    name: str | None = None,
    out: Path | str | None = None,
    force: bool = False,
    seed: int = 0,
    iterations: int | None = None,
    target: float | None = None,
    time_budget: float | None = None,
    provenance: bool = True,
    numerics: bool = True,
    quiet: bool = False,
) -> ProfiledRun:
    """Times `model(*args, **kwargs)` eager and compiled in alternation, records both, and writes a run folder, as
    `tracekit profile --compiled` does in this process.

    `model` is a module, called without gradients; a function, called as it is; or a Workload. It must not be compiled
    yet, stays where it is, and is left as it was, but torch.compile forgets what it has compiled in this process.
    `compile` holds arguments of torch.compile: mode, fullgraph, dynamic; False leaves the compiled form out. `scope`
    names the modules to compile, as `--scope` does (`model.layers.*`, `regional`); all of the model by default. The run
    goes to `out`, by default `traces/NAME-compiled`, and `force` replaces one that is there. `iterations`, `target`
    (percent) and `time_budget` (seconds) say how long to time, as the options of the command do. `quiet` shows no
    progress. Where torch.compile compiles nothing, the run has the eager form alone, and its `not_compiled` says why.
    Raises TracekitError for whatever the user can mend, before anything else where a profiler is active in the process;
    what the model raises comes as it is.
    """
    _check_torch()
    from tracekit.measure.plan import Plan, folder_name, plan_timing
    from tracekit.measure.profiling import profile_built
    from tracekit.measure.progress import console_of_its_own, shown
    from tracekit.measure.sole_profiler import sole_profiler
    from tracekit.model.progress import Silent
    from tracekit.reading.reports import reports_of_run
    from tracekit.workloads.own import hand_over, random_state_kept
    from tracekit.workloads.scopes import narrowed

    forms: tuple[FormName, ...] = ("eager",) if compile is False else ("eager", "compiled")
    if not name and isinstance(model, Workload):
        name = model.title or "workload"
    own_name = getattr(model, "__name__", None)
    name = name or (own_name if own_name and own_name != "<lambda>" else type(model).__name__)
    seed, iterations, target, time_budget = map(without_numpy, (seed, iterations, target, time_budget))
    request = Request(name, seed=seed, iterations=iterations, scope=scope, **_compile_options(compile))
    timing = plan_timing(iterations is not None, target, time_budget, 0, startup=False)
    for asked in (request, timing):
        check_asked(asked, IN_A_PROGRAM)
    check_value("out=", str(out or ""), PlaceName)
    for flag, value in (("force", force), ("provenance", provenance), ("numerics", numerics), ("quiet", quiet)):
        check_value(f"{flag}=", value, bool)
    place = Path(out) if out is not None else Path("traces") / f"{folder_name(name)}-{forms[-1]}"
    plan = Plan(
        replace(request, scope="model"),
        forms=forms,
        out=place,
        force=force,
        command=f"tracekit.profile({name}) in {encodable(Path(sys.argv[0]).name) or 'a program'}",
        provenance=provenance,
        timing=timing,
        numerics=numerics,
    )
    replaced: frozenset[str] = frozenset()
    # Of a run that cannot be read none are known.
    with suppress(TracekitError):
        if force and store.is_run(place):
            replaced = reports_of_run(store.load(place))
    showing: AbstractContextManager[Progress] = nullcontext(Silent()) if quiet else shown(console_of_its_own())
    with sole_profiler(), random_state_kept(), showing as progress:
        workload = hand_over(model, args, kwargs or {}, plan.request)
        folder = profile_built(plan, narrowed(workload, scope) if scope else workload, progress)
    return replace(load(folder), replaces=replaced)


def _compile_options(given: Mapping[str, object] | bool) -> dict[str, Any]:
    if not isinstance(given, bool | Mapping):
        raise TracekitError(f"compile={given!r:.60}: pass True, False, or the arguments of torch.compile by name")
    options = dict(given) if isinstance(given, Mapping) else {}
    unknown = sorted(set(options) - {"mode", "fullgraph", "dynamic"})
    if unknown:
        raise TracekitError(f"compile takes mode, fullgraph and dynamic, not {', '.join(unknown)}")
    mode = options.get("mode") or "default"
    if mode not in MODES:
        raise TracekitError(f"compile has no mode {mode!r}: pass one of {', '.join(MODES)}")
    return {**options, "mode": mode}


@contextmanager
def record(
    out: Path | str,
    *,
    steps: int | None = None,
    skip: int = SKIPPED_STEPS,
    enabled: bool = True,
    force: bool = False,
    digest: bool = False,
) -> Iterator[Recorder | Unrecorded]:
    """Records a part of your own program into the folder `out`, for `tracekit analyze` and `compare`.

    With `steps` that many steps of a loop are recorded after the first `skip`; each is marked by
    `with recorder.step():`. Without, the whole block is, with or without steps marked in it. `tracekit.region(NAME)`
    names parts, for `--window NAME`. What threads of autograd launch meanwhile is recorded too. All ranks of a job may
    record into one folder, each its own trace, for `tracekit ranks`; with `digest` each writes beside it the digest
    that `ranks` takes in its place, which takes about as long as reading the trace. `enabled=False` does nothing at
    all.

    Raises TracekitError, before the block begins, for what is wrong with the call: `out` is there and `force` is not
    set. Whatever else keeps it from recording or writing is one warning, and the block goes on: a job is not to end for
    want of a trace. A process has one profiler at a time: where another is active, of torch or of tracekit, nothing is
    recorded; where one begins in the block, the recording ends before it. Only one that another thread starts meanwhile
    gets a TracekitError.
    """
    if not enabled:
        yield Unrecorded()
        return
    _check_torch()
    from tracekit.measure.recording import Recorder

    steps, skip = map(without_numpy, (steps, skip))
    check_value("steps=", steps, Steps | None)
    check_value("skip=", skip, Count)
    check_value("out=", str(out), PlaceName)
    check_value("force=", force, bool)
    check_value("digest=", digest, bool)
    folder = Path(out)
    # The program may change its folder meanwhile.
    trace, raw = (place.absolute() for place in _places_in(folder, force=force))
    process = os.getpid()

    def publish(device: str, recorded: int, marks: HostMarks) -> None:
        from tracekit.tracefile.publish import publish as published

        about = {"tracekit": __version__, "workload": folder.name, "device": device, "steps": recorded}
        published(raw, trace, metadata=about, marks=marks)

    try:
        with Recorder(steps, skip, raw, publish, _warn) as recorder:
            yield recorder
        if digest and recorder.is_published:
            _digest(trace)
    finally:
        # A fork that leaves the block leaves its parent's files.
        if os.getpid() == process:
            with suppress(OSError):
                raw.unlink(missing_ok=True)
                # What other ranks have written, or write, keeps it.
                raw.parent.rmdir()


def _digest(trace: Path) -> None:
    """Writes the digest beside the trace; where there is none to make, the trace is there all the same."""
    from tracekit.measure.recording import cause
    from tracekit.statements.noted import NoDigest
    from tracekit.wings import load, wings

    try:
        for wing in wings():
            if wing.beside:
                load(wing.beside)(trace)
    except Exception as error:  # noqa: BLE001 - whatever failed, the user's program goes on.
        _warn(NoDigest(cause(error)))


def _warn(noted: Noted) -> None:
    """One warning, at the line of the user's that led here."""
    frame, level = sys._getframe(), 1
    while (caller := frame.f_back) and frame.f_globals.get("__name__", "").partition(".")[0] in MACHINERY:
        frame, level = caller, level + 1
    warnings.warn(noted.long(), stacklevel=level)


def _places_in(folder: Path, *, force: bool) -> tuple[Path, Path]:
    """The trace that this process writes, and what the profiler writes before it, in a folder that is there. Raises
    TracekitError where something else is, or a recording that is not to be replaced."""
    from tracekit.measure.ranks import rank_of_job

    rank, size = rank_of_job()
    name, digest = (f"rank{rank}.json.gz", f"rank{rank}.digest") if size > 1 else (TRACE, DIGEST_OF_TRACE)
    there = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    known = {each: OF_RANK.fullmatch(each) for each in there if not UNFINISHED.fullmatch(each)}
    ours = all(found or each in (TRACE, DIGEST_OF_TRACE) for each, found in known.items())
    if folder.exists() and not (folder.is_dir() and ours):
        raise TracekitError(f"{folder} exists and is not a recording: pass another path")
    # Other ranks of this job may have ended already, or write theirs.
    others = {each for each, found in known.items() if size > 1 and found and int(found[1]) < size}
    old = sorted({*known} - (others - {name, digest}), reverse=True)
    if old and not force:
        raise TracekitError(f"{folder / old[0]} already exists; pass force=True to replace it, or another path")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in old:
            if each == digest or (rank == 0 and each != name):
                (folder / each).unlink()
        raw = folder / f".{name.removesuffix('.gz')}"
        # The folder is not empty as long as a rank records.
        raw.touch()
    except OSError as error:
        raise TracekitError(f"cannot write to {folder}: {error.strerror}; pass another path") from None
    return folder / name, raw


class Unrecorded:
    """Stands in for a Recorder that is not enabled."""

    def step(self) -> AbstractContextManager[None]:
        return nullcontext()


def _check_torch() -> None:
    """Raises TracekitError with what to install where torch is missing."""
    from tracekit.workloads.registry import load_builder
    from tracekit.workloads.unlisted import own_info

    load_builder(own_info("tracekit in a program", ""))
