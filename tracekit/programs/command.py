"""`tracekit run`: a program as it is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from tracekit import store
from tracekit.cli.options import PERCENT, WIDE_HELP, FiniteRange, OutputPath, with_detail
from tracekit.cli.output import check_output_path, measuring_command_line
from tracekit.errors import TracekitError
from tracekit.measure.plan import rank_here
from tracekit.programs.plan import ProgramPlan, parse_step

if TYPE_CHECKING:
    from tracekit.report.thirty_lines import Detail

HOST = "tracekit.programs.host"


@click.command(
    epilog="Example: tracekit run --stop train.py",
    context_settings={**WIDE_HELP, "allow_interspersed_args": False},
)
@click.option("-m", "is_module", is_flag=True, help="SCRIPT is a module's name, as for python -m.")
@click.option(
    "--step",
    metavar="STEP",
    help="What a step is: optimizer, call (of what is compiled), span:NAME or function:MODULE:NAME.",
)
@click.option("--no-eager", is_flag=True, help="Make no step eager: time and record the compiled program alone.")
@click.option("--stop", is_flag=True, help="End the program when it is measured.")
@click.option(
    "--time-budget",
    type=FiniteRange(min=0),
    metavar="SECONDS",
    help="Stop timing after SECONDS (default 30; CPU 3; or 40 rounds). 0: watch the first steps alone.",
)
@click.option("--target", type=PERCENT, metavar="PERCENT", help="Stop timing at ±PERCENT.")
@click.option("--out", type=OutputPath(), help="Run folder to write (default traces/SCRIPT).")
@click.option("--force", is_flag=True, help="Replace an existing run.")
@click.option("--json", "json_path", metavar="PATH", help="Write the comparison as JSON.")
@with_detail
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS...]")
def run(
    script: str,
    arguments: tuple[str, ...],
    is_module: bool,
    step: str | None,
    no_eager: bool,
    stop: bool,
    time_budget: float | None,
    target: float | None,
    out: Path | None,
    force: bool,
    json_path: str | None,
    detail: Detail,
) -> None:
    """Run SCRIPT as python does, and measure what torch.compile does for it.

    All that the program compiles is switched between compiled and eager, block by block of its steps. Eager steps are
    real steps of the program. What tracekit says goes to standard error.
    """
    if json_path == "-":
        raise TracekitError("--json -: standard output is the program's; pass a file name")
    check_output_path("--json", json_path)
    if not is_module and not Path(script).is_file():
        raise TracekitError(f"{script} does not exist; pass a Python file, or -m MODULE")
    parse_step(step)
    folder = (out or Path("traces") / _name_of(script, is_module=is_module)).absolute()
    if not rank_here():
        # Asked here, before anything is run; the program's process does it.
        with store.begun(folder, force=force):
            pass
    report = ["--json", json_path] if json_path else []
    report += {"all": ["-v"], "verdict": ["-q"]}.get(detail, [])
    plan = ProgramPlan(
        script,
        arguments,
        is_module,
        str(folder),
        measuring_command_line(),
        force=force,
        step=step,
        eager=not no_eager,
        stop=stop,
        budget_seconds=time_budget,
        target_percent=target,
        report=tuple(report),
    )
    words = [sys.executable, *(["-P"] if sys.flags.safe_path else []), "-m", HOST, msgspec.json.encode(plan).decode()]
    # This process becomes the program: its number, signals and exit code are the program's.
    os.execv(sys.executable, words)


def _name_of(script: str, *, is_module: bool) -> str:
    return script.replace(".", "-") if is_module else Path(script).stem
