"""What a user names, a run folder or a trace file, as a side of a comparison; and where its report goes."""

from __future__ import annotations

from pathlib import Path

from tracekit import store
from tracekit.analysis import analyze
from tracekit.cli.output import write_file
from tracekit.cli.reading import read_with_bar
from tracekit.errors import TracekitError
from tracekit.model.analysis import Analysis
from tracekit.model.comparison import Comparison, Side
from tracekit.model.run import FormName, FormResult, RecordingKind, Run
from tracekit.report.markdown import comparison_markdown
from tracekit.report.page import comparison_page


def load_side(
    path: Path, *, form: FormName | None = None, window: str = "auto", cpu: bool = False, label: str | None = None
) -> Side:
    """The side that `path` names: a trace file, or one form of a run folder (see `choose_form`).

    The label is the form's name for a run, the file's name for a file, unless one is given. Raises TracekitError for
    whatever keeps it from being read.
    """
    if not path.is_dir() and not store.was_interrupted(path):
        if form is not None:
            raise TracekitError(f"{path} is a trace file: it has no forms to choose from; leave --form out")
        analysis = analyze(read_with_bar(path), window=window, cpu=cpu)
        return Side(label or file_label(path), str(path), analysis, form=None, settings=None, environment=None)
    run = store.load(path)
    chosen = choose_form(run, path, form)
    kind, analysis, rich = _analyze_recordings(path, chosen, window, cpu)
    return Side(
        label=label or chosen.name,
        path=str(store.recording_path(path, chosen, kind)),
        analysis=analysis,
        form=chosen,
        settings=run.settings,
        environment=run.environment,
        rich=rich,
    )


def interrupted_run(path: Path) -> Run | None:
    """The run in this folder if it was never finished."""
    if not store.is_run(path):
        return None
    run = store.load(path)
    return run if run.status == "incomplete" else None


def choose_form(run: Run, folder: Path, form: FormName | None) -> FormResult:
    """The form that was asked for; if none was, the compiled one where there is one, else the eager one."""
    names = [form] if form else ["compiled", "eager"]
    found = next((each for name in names for each in run.forms if each.name == name), None)
    if found is None:
        there = " and ".join(each.name for each in run.forms) or "nothing"
        raise TracekitError(
            f"{folder} has no {form or 'measured'} form: it holds {there};"
            " `tracekit profile ... --compiled` records both"
        )
    return found


def _has_recording(form: FormResult, kind: RecordingKind) -> bool:
    return any(recording.kind == kind for recording in form.recordings)


def _analyze_recordings(
    folder: Path, form: FormResult, window: str, cpu: bool
) -> tuple[RecordingKind, Analysis, Analysis | None]:
    """Which recording the figures are of, its analysis, and the rich one's beside it.

    The figures are the light one's, unless the window is a span of another name than the steps': a light recording of a
    GPU holds no others, so they are the rich one's then.
    """
    has_rich = _has_recording(form, "rich")
    rich = _analyze_recording(folder, form, "rich", window, cpu) if has_rich else None
    if rich is not None and rich.window.kind == "span" and rich.gpu is not None:
        return "rich", rich, None
    return "light", _analyze_recording(folder, form, "light", window, cpu), rich


def _analyze_recording(folder: Path, form: FormResult, kind: RecordingKind, window: str, cpu: bool) -> Analysis:
    return analyze(read_with_bar(store.recording_path(folder, form, kind)), window=window, cpu=cpu)


def file_label(path: Path) -> str:
    """A trace file's name without its endings."""
    name = path.name
    for ending in (".gz", ".json", ".pt.trace", ".trace"):
        name = name.removesuffix(ending)
    return name or path.name


def raise_if_damaged(*analyses: Analysis) -> None:
    """Ends a command with an error, after its output, when a trace could be read in part only: nothing is lost, and no
    script takes the figures for whole ones."""
    for analysis in analyses:
        damage = next((finding for finding in analysis.health if finding.severity == "error"), None)
        if damage is not None:
            raise TracekitError(f"{analysis.trace.path} is damaged: {damage.message}; copy or record it again")


def write_report(comparison: Comparison, run: Run | None, command: str, folder: Path, name: str) -> tuple[Path, Path]:
    """Writes `NAME.html` and `NAME.md` into `folder`, and says where."""
    page, twin = folder / f"{name}.html", folder / f"{name}.md"
    write_file(page, comparison_page(comparison, run, command))
    write_file(twin, comparison_markdown(comparison, run, command))
    return page, twin
