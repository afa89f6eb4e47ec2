"""`tracekit compare`: what changed from one side to the other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracekit.model.comparison import Side
    from tracekit.model.run import FormName, Run

FORMS = click.Choice(("eager", "compiled"))


@click.command(
    epilog="Example: tracekit compare eager.json.gz compiled.json.gz",
    context_settings={"max_content_width": 110},
)
@click.argument("a", type=click.Path(path_type=Path), metavar="A")
@click.argument("b", type=click.Path(path_type=Path), metavar="[B]", required=False)
@click.option("--form-a", type=FORMS, help="Of a run folder A; compiled if it has that.")
@click.option("--form-b", type=FORMS, help="Of a run folder B; compiled if it has that.")
@click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What is counted: the marked steps, all of it, or spans by name or regular expression.",
)
@click.option("--cpu", is_flag=True, help="Look at host operators where a trace has no GPU activity.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="The report: PATH.html, or a folder for it; reports if not given."
)
@click.option("--json", "json_path", metavar="PATH|-", help="Write the comparison as JSON; - is standard output.")
@click.option("--no-cache", is_flag=True, help="Read the files anew. They always are: nothing is cached yet.")
def compare(
    a: Path,
    b: Path | None,
    form_a: FormName | None,
    form_b: FormName | None,
    window: str,
    cpu: bool,
    out: Path | None,
    json_path: str | None,
    no_cache: bool,
) -> None:
    """Say what changed from A (before) to B (after), and write a report.

    Each is a trace file or a run folder. A run folder alone is compared with itself: eager with compiled.
    """
    from tracekit.cli.output import check_json_path, command_line, console_beside, say, write_json
    from tracekit.cli.sides import raise_if_damaged, write_report
    from tracekit.comparison import compare as compare_sides
    from tracekit.report.contract import comparison_json
    from tracekit.report.terminal import comparison_summary

    check_json_path(json_path)
    one, other, run = _load_sides(a, b, (form_a, form_b), window, cpu)
    order = run.order if run and one.label != other.label else ()
    comparison = compare_sides(one, other, order)
    folder, name = _report_place(out, a.resolve().name if run else f"{one.label}-vs-{other.label}")
    written = write_report(comparison, run, command_line(), folder, name)
    console = console_beside(json_path)
    console.print(comparison_summary(comparison, (f"tracekit open {one.path}", f"tracekit open {other.path}")))
    for path in written:
        say(console, f"written: {path}")
    write_json(comparison_json(comparison), json_path)
    raise_if_damaged(one.analysis, other.analysis)


def _load_sides(
    a: Path, b: Path | None, forms: tuple[FormName | None, FormName | None], window: str, cpu: bool
) -> tuple[Side, Side, Run | None]:
    """Both sides, told apart by their labels; and the run, when both are of one."""
    from dataclasses import replace

    from tracekit import store
    from tracekit.cli.sides import load_side
    from tracekit.errors import TracekitError

    if b is None and a.exists() and not a.is_dir():
        raise TracekitError(f"{a} is one trace file: name a second one to compare it with")
    b = b or a
    if a.is_dir() and b.is_dir() and a.samefile(b):
        one = load_side(a, form=forms[0] or "eager", window=window, cpu=cpu)
        other = load_side(b, form=forms[1] or "compiled", window=window, cpu=cpu)
        return one, other, store.load(a)
    one, other = (load_side(path, form=form, window=window, cpu=cpu) for path, form in zip((a, b), forms, strict=True))
    labels = [_label(side, path) for side, path in ((one, a), (other, b))]
    if labels[0] == labels[1]:
        labels = [f"{path.resolve().parent.name}-{label}" for path, label in zip((a, b), labels, strict=True)]
    return replace(one, label=labels[0]), replace(other, label=labels[1]), None


def _label(side: Side, path: Path) -> str:
    if side.form is None:
        return side.label
    run = path.resolve().name
    return run if run.endswith(f"-{side.form.name}") else f"{run} {side.form.name}"


def _report_place(out: Path | None, name: str) -> tuple[Path, str]:
    """The folder and the name of the report: `--out x.html` names it, any other `--out` is its folder."""
    if out is not None and out.suffix in (".html", ".md"):
        return out.parent, out.stem
    return out or Path("reports"), name.replace(" ", "-")
