"""What several commands' options share: numbers in a range, places, and what models take."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from tracekit.model.option import MOST_CALLS, MOST_PROCESSES, OWN_WEIGHTS

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


CACHES = ("dynamic", "static")
PHASES = ("generate", "prefill", "decode")
DTYPES = ("bfloat16", "float16", "float32")
PARALLEL = ("ddp", "fsdp2", "tp", "ulysses", "ring")
MOST_RANKS = 1024
ORDERS = ("after-sharding", "before-sharding")
FORMS = click.Choice(("eager", "compiled"))
PERCENT = FiniteRange(min=0, min_open=True, max=100)
SECONDS = FiniteRange(min=0, min_open=True)
#: Help that is wider than click's own.
WIDE_HELP = {"max_content_width": 110}


with_repeat_process = click.option(
    "--repeat-process",
    "repeats",
    type=click.IntRange(1, MOST_PROCESSES),
    metavar="K",
    help="Repeat timing in K more processes.",
)
with_pretrained = click.option(
    "--pretrained",
    is_flag=False,
    flag_value=OWN_WEIGHTS,
    metavar="[ID|PATH]",
    help="Real, not random weights: a model ID or folder.",
)
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
with_download = click.option(
    "--download", is_flag=True, default=None, help="Allow the download of model configurations (a few kB)."
)
with_fullgraph = click.option(
    "--fullgraph/--no-fullgraph", default=None, help="Fail on a graph break, or allow graph breaks."
)
with_dynamic = click.option(
    "--dynamic/--no-dynamic", default=None, help="Dynamic or static shapes (default: torch decides)."
)
with_prompt = click.option("--prompt", metavar="TEXT", help="Prompt of a text-to-image or text-generation model.")
with_use_fast = click.option(
    "--use-fast/--no-use-fast", default=None, help="Image processor: torchvision (fast) or PIL."
)
with_iterations = click.option(
    "--iterations", type=click.IntRange(1, MOST_CALLS), metavar="N", help="Time exactly N calls of each variant."
)
with_target = click.option(
    "--target", type=PERCENT, metavar="PERCENT", help="Stop timing at a 95 % CI of ±PERCENT (default 1)."
)
with_checkpoint = click.option(
    "--checkpoint", is_flag=True, default=None, help="gpt: activation checkpointing of each block."
)
with_compiled_autograd = click.option(
    "--compiled-autograd", is_flag=True, default=None, help="gpt: compile the whole backward, hooks too."
)
with_rank_timeout = click.option(
    "--timeout", type=SECONDS, metavar="SECONDS", help="With --nproc: wait for a rank so long (default 600)."
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
