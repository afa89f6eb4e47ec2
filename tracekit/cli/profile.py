"""`tracekit profile`: run a workload, time it, record it, compare it."""

from __future__ import annotations

from typing import Any

import click

from tracekit.cli import options
from tracekit.model.option import MODES


@click.command(
    epilog="Example: tracekit profile flux --compiled --mode reduce-overhead", context_settings=options.WIDE_HELP
)
@click.argument("workload", shell_complete=options.complete_workload)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[-- NAME=VALUE...]")
@click.option("--compiled", is_flag=True, help="Also run under torch.compile, and compare with eager.")
@click.option("--no-baseline", is_flag=True, help="With --compiled: skip eager, compare nothing.")
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="default",
    metavar="MODE",
    help=f"Mode of torch.compile: {', '.join(MODES)}.",
)
@options.with_fullgraph
@options.with_dynamic
@click.option("--scope", metavar="PART", help="all, regional (repeated blocks) or modules: vit.layers.*,head.")
@click.option("--batch-size", type=click.IntRange(min=1), metavar="N", default=1, help="Inputs per call (default 1).")
@click.option("--height", type=click.IntRange(min=1), metavar="N", help="Image height in pixels.")
@click.option("--width", type=click.IntRange(min=1), metavar="N", help="Image width in pixels.")
@click.option("--steps", type=click.IntRange(min=1), metavar="N", help="Diffusion models: denoising steps per call.")
@options.with_prompt
@click.option("--max-new-tokens", type=click.IntRange(min=1), metavar="N", help="Text generation: new tokens per call.")
@click.option(
    "--cache", type=click.Choice(options.CACHES), metavar="KIND", help="Text generation: KV cache, dynamic or static."
)
@click.option(
    "--phase",
    type=click.Choice(options.PHASES),
    metavar="PHASE",
    help="Text generation: measure generate, prefill or decode.",
)
@options.with_use_fast
@click.option(
    "--dtype",
    type=click.Choice(options.DTYPES),
    metavar="DTYPE",
    help="Data type: bfloat16 (default on a GPU), float16, float32.",
)
@click.option(
    "--size", default="auto", metavar="SIZE", help="full, small, tiny, or auto (default): the largest that fits."
)
@click.option("--seq-length", type=click.IntRange(min=1), metavar="N", help="Input sequence length in tokens.")
@options.with_pretrained
@options.with_download
@click.option("--seed", type=int, default=0, metavar="N", help="Random seed of weights, noise and run order.")
@options.with_iterations
@options.with_target
@click.option(
    "--time-budget", type=options.SECONDS, metavar="SECONDS", help="Stop timing after SECONDS (default 30; CPU 3)."
)
@options.with_repeat_process
@click.option("--startup", is_flag=True, help="Measure cold start in new processes, without and with cache.")
@click.option("--verify-advice", is_flag=True, help="Measure the speed-up of the most promising advice.")
@click.option("--warmup", metavar="SIZE=N,...", help="Warm up at other sizes (batch=4), to see recompiles.")
@click.option(
    "--nproc", type=click.IntRange(1, options.MOST_RANKS), metavar="N", help="Run N ranks, a GPU each; gloo on a CPU."
)
@click.option(
    "--parallel",
    type=click.Choice(options.PARALLEL),
    metavar="KIND",
    help="Over ranks: ddp, fsdp2, tp, ulysses or ring.",
)
@options.with_checkpoint
@click.option(
    "--compile-order",
    type=click.Choice(options.ORDERS),
    metavar="ORDER",
    help="fsdp2, --scope regional: compile after-sharding (default) or before-sharding.",
)
@options.with_compiled_autograd
@options.with_rank_timeout
@click.option("--no-provenance", is_flag=True, help="Skip Inductor provenance (the operators of a kernel).")
@click.option("--no-numerics", is_flag=True, help="Do not compare the outputs of eager and compiled.")
@click.option("--out", type=options.OutputPath(), help="Run folder to write (default traces/WORKLOAD-VARIANT).")
@click.option("--force", is_flag=True, help="Replace an existing run.")
@options.with_json
@click.option("--strict", is_flag=True, help="Exit with code 1 if torch.compile compiled nothing.")
@options.with_detail
@click.pass_context
def profile(context: click.Context, /, **asked: Any) -> None:
    """Run WORKLOAD, time it without the profiler, then record it with the profiler.

    WORKLOAD is a name that `tracekit workloads` lists, or a function that builds your own model: my_model.py:build or
    package.module:build. Arguments after -- are passed to that function.

    With --compiled, eager and compiled are interleaved and compared in reports/RUN.html.
    """
    from tracekit.cli.running_workload import plan_and_run

    plan_and_run(context, **asked)
