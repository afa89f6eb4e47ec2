"""`tracekit workloads`: what can be profiled."""

import click

from tracekit.cli.options import WIDE_HELP


@click.command(epilog="Example: tracekit workloads flux", context_settings=WIDE_HELP)
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--parts", is_flag=True, help="List the modules of the named workloads, as --scope takes them.")
@click.option("--json", "json_path", metavar="PATH|-", help="Write the list as JSON; - is standard output.")
def workloads(names: tuple[str, ...], parts: bool, json_path: str | None) -> None:
    """List the models that can be profiled, with their sizes and what --scope can compile.

    Inputs and parameters are of the largest size at batch size 1. Memory is an estimate in bfloat16. The first scope
    listed is the default. --scope also takes regional (each repeated block by itself) and the module names that --parts
    lists.
    """
    from tracekit.cli.listing_workloads import list_workloads

    list_workloads(names, json_path, parts=parts)
