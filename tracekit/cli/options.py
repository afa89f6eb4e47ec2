"""What several commands' options share: numbers in a range, places, and what models take."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tracekit.model.option import COUNT, FLAG, GROUPS, INTEGER, MODES, OPTIONAL, OWN_WEIGHTS, PAIR, TYPED, Option

Function = TypeVar("Function", bound=Callable[..., Any])


class OutputPath(click.Path):
    """A path that is not empty: an empty one would be the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "":
            self.fail("the path is empty; leave the option out, or name a path", param, ctx)
        return Path(str(value))


class FiniteRange(click.FloatRange):
    """A number in a range; `nan` is in none, though no comparison says so."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


FORMS = click.Choice(("eager", "compiled"))
PERCENT = FiniteRange(min=0, min_open=True, max=100)
SECONDS = FiniteRange(min=0, min_open=True)
#: Help that is wider than click's own.
WIDE_HELP = {"max_content_width": 110}


class Grouped(click.Option):
    """An option that `--help` lists under a heading."""

    def __init__(self, *words: Any, group: str = "Output", **more: Any) -> None:
        super().__init__(*words, **more)
        self.group = group


class InGroups(click.Command):
    """A command whose `--help` lists its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        listed: dict[str, list[tuple[str, str]]] = {group: [] for group in GROUPS}
        for each in self.get_params(ctx):
            if isinstance(each, click.Option) and (record := each.get_help_record(ctx)) is not None:
                listed[getattr(each, "group", GROUPS[-1])].append(record)
        # Texts stand below each other.
        width = max(len(words) for records in listed.values() for words, _ in records)
        for group, records in listed.items():
            with formatter.section(group):
                formatter.write_dl([(words.ljust(width), text) for words, text in records])


grouped = functools.partial(click.option, cls=Grouped)


def with_settings(command: Function) -> Function:
    """An option for each setting of a run, which the function gets under the name of the field of a Request."""
    for option in reversed(TYPED):
        command = _setting(option, option.help, option.default)(command)
    return command


def with_settings_of_cells(command: Function) -> Function:
    """The same for a sweep: of what its cells may differ in, values between commas. None where one is not given."""
    for option in reversed(TYPED):
        text = option.help_of_sweep or option.help
        if option.several:
            takes = ("eager", *MODES) if option.takes == MODES else option.takes
            one = several(option.option, _type(takes, option.most), f"{option.metavar},...", text, option.group)
        else:
            one = _setting(option, text, None)
        command = one(command)
    return command


def _setting(option: Option, text: str, default: object) -> Callable[[Function], Function]:
    words = option.option if option.takes != PAIR else f"{option.option}/--no-{option.option.removeprefix('--')}"
    more: dict[str, Any] = {"type": _type(option.takes, option.most)}
    if option.takes in (FLAG, PAIR):
        more = {"is_flag": True}
    elif option.takes == OPTIONAL:
        more = {"is_flag": False, "flag_value": OWN_WEIGHTS}
    return grouped(words, group=option.group, help=text, metavar=option.metavar, default=default, **more)


def _type(takes: str | tuple[str, ...], most: int | None) -> click.ParamType[Any]:
    if isinstance(takes, tuple):
        return click.Choice(takes)
    return click.IntRange(1, most) if takes == COUNT else click.INT if takes == INTEGER else click.STRING


def several(
    option: str, one: click.ParamType[Any], metavar: str, text: str, group: str
) -> Callable[[Function], Function]:
    """An option of values between commas, each as `one` reads it; one that is named twice counts once. None where the
    option is not given."""

    def split(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        parts = (part.strip() for part in value.split(","))
        return tuple(dict.fromkeys(one.convert(part, parameter, context) for part in parts))

    return grouped(option, callback=split, metavar=metavar, help=text, group=group)


with_window = click.option(
    "--window",
    default="auto",
    metavar="steps|whole|NAME",
    help="What to analyze: marked steps, the whole trace, or spans by name or regular expression.",
)
with_steps = click.option("--steps", metavar="N|N-M", help="Analyze only these marked steps.")
with_rank = click.option(
    "--rank", type=click.IntRange(min=0), metavar="N", help="Analyze this rank of a folder with the traces of many."
)
with_cpu = click.option("--cpu", is_flag=True, help="Analyze host operators of a trace without GPU activity.")
with_target = grouped(
    "--target",
    type=PERCENT,
    metavar="PERCENT",
    group="Timing",
    help="Stop timing at a 95 % CI of ±PERCENT (default 1).",
)
with_time_budget = grouped(
    "--time-budget",
    type=SECONDS,
    metavar="SECONDS",
    group="Timing",
    help="Stop timing after SECONDS (default 30; CPU 3).",
)
with_rank_timeout = grouped(
    "--timeout",
    type=SECONDS,
    metavar="SECONDS",
    group="Ranks",
    help="With --nproc: wait for a rank so long (default 600).",
)
with_html = click.option(
    "--html",
    "html_path",
    is_flag=False,
    flag_value="",
    metavar="[PATH]",
    help="Report: PATH.html, or a folder (default reports). Put it last.",
)
with_json = click.option(
    "--json", "json_path", metavar="PATH|-", help="Write the result as JSON; - is standard output."
)
with_no_cache = click.option("--no-cache", is_flag=True, help="Do not read or write the cache of parsed traces.")


def with_detail(command: Function) -> Function:
    """-v and -q; the function gets them as `detail`."""

    @functools.wraps(command)
    def with_one(*args: Any, verbose: bool, quiet: bool, **others: Any) -> Any:
        if verbose and quiet:
            raise click.UsageError("-v and -q exclude each other: pass one of them")
        return command(*args, detail="all" if verbose else "verdict" if quiet else "brief", **others)

    flags = (
        click.option("-v", "--verbose", is_flag=True, help="Print every section, not only the summary."),
        click.option("-q", "--quiet", is_flag=True, help="Print only the verdict and the path of the report."),
    )
    return functools.reduce(lambda made, flag: flag(made), reversed(flags), with_one)  # type: ignore[return-value]


def complete_workload(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """The names of workloads that begin so."""
    from tracekit.workloads.registry import all_workloads

    return [info.name for info in all_workloads() if info.name.startswith(incomplete)]
