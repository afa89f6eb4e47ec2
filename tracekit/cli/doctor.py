"""`tracekit doctor`: can this machine profile?"""

import click
import msgspec
from msgspec.structs import asdict

from tracekit.cli.options import WIDE_HELP
from tracekit.cli.output import console_beside, write_json

#: How a status looks: its sign, and its colour in the terminal.
LOOKS = {
    "ok": ("ok", "green"),
    "warning": ("warning", "yellow"),
    "problem": ("problem", "red"),
    "skipped": ("-", "dim"),
}
NAME_WIDTH = 20


@click.command(epilog="Example: tracekit doctor --json doctor.json", context_settings=WIDE_HELP)
@click.option("--json", "json_path", metavar="PATH|-", help="Write the results as JSON; - is standard output.")
@click.pass_context
def doctor(ctx: click.Context, json_path: str | None) -> None:
    """Check that this machine can profile, and print the command that fixes each problem.

    Checks Python, torch, driver, GPU, triton, compilers, the permission to record kernels, and model libraries. Exit
    code: 0 without problems, else 1.
    """
    from rich.text import Text

    from tracekit.doctor.checks import CHECKS, answer

    console = console_beside(json_path)
    found = []
    for name, ask in CHECKS.items():
        with console.status(f"checking {name}"):
            check = answer(ask)
        sign, colour = LOOKS[check.status]
        line = Text.assemble((f"{sign:<8}", colour), (f"{name:<{NAME_WIDTH}}", "bold"), check.message)
        console.print(line, soft_wrap=True)
        if check.fix:
            # On a line of its own and unbroken, so that it can be copied.
            console.print(Text(f"{'':8}{check.fix}", "cyan"), soft_wrap=True)
        found.append({"name": name, **asdict(check)})
    statuses = [each["status"] for each in found]
    problems, warnings = statuses.count("problem"), statuses.count("warning")
    console.print(f"\n{_counted(problems, 'problem')}, {_counted(warnings, 'warning')}")
    document = {"schema": "tracekit.doctor/1", "checks": found}
    write_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n", json_path)
    ctx.exit(1 if problems else 0)


def _counted(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
