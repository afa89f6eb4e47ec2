"""What `tracekit workloads` lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tracekit.cli.output import check_output_path, console_beside, write_json
from tracekit.errors import TracekitError
from tracekit.measure.building import quiet_libraries
from tracekit.numbers import count, parameter_count, percent
from tracekit.workloads import registry
from tracekit.workloads.registry import load_builder
from tracekit.workloads.unlisted import ANY

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tracekit.model.workload import WorkloadInfo

#: Keys stay when a field gets another name.
KEYS = {"needs_only_torch": "torch_alone"}


#: What stands below the short list.
MORE = (
    "With -v, or of a NAME: memory, inputs, parameters, --scope, graph breaks.",
    "Your own model: tracekit profile my_model.py:build --compiled",
)


def list_workloads(names: tuple[str, ...], json_path: str | None, *, parts: bool, verbose: bool) -> None:
    """Those of the names, or a line of each; all of each where `verbose`, the modules of named ones where `parts`."""
    found = tuple(registry.find(name) for name in names) or registry.all_workloads()
    if parts and (json_path or not names):
        raise TracekitError("--parts needs the names of workloads and takes no --json: tracekit workloads vit --parts")
    check_output_path("--json", json_path)
    unnamed = () if names else tuple(ANY.values())
    console = console_beside(json_path)
    if names or verbose:
        for info in (*found, *unnamed):
            console.print(_parts(info) if parts else _described(info))
    else:
        console.print(_short((*found, *unnamed)))
    if not parts:
        document = {"schema": "tracekit.workloads/1", "workloads": _entries(found), "any": _entries(unnamed)}
        write_json(msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n", json_path)


def _entries(infos: tuple[WorkloadInfo, ...]) -> list[dict[str, object]]:
    """The workloads as they are, without where their code lies."""
    return [
        {KEYS.get(name, name): value for name, value in msgspec.to_builtins(info).items() if name != "module"}
        for info in infos
    ]


def _short(infos: tuple[WorkloadInfo, ...]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for info in infos:
        table.add_row(Text(info.name, "bold"), Text(info.title.partition(":")[0]), Text(" ".join(info.sizes), "cyan"))
    return Group(table, Text(), *map(Text, MORE))


def _described(info: WorkloadInfo) -> RenderableType:
    heading = Text.assemble((info.name, "bold"), f"  {info.title}")
    # Of a model of the user's own nothing is known, and nothing computed.
    sizes = dict(info.sizes)
    if "options" not in info.takes:
        for name, what in info.sizes.items():
            known = info.memory_gib.get(name)
            sizes[name] = (
                f"{what}; {known:g} GiB" if known is not None else f"{what}; memory computed from the configuration"
            )
    facts = {
        "inputs": info.inputs,
        "parameters": count(info.parameters) if info.parameters else None,
        "checkpoints": ", ".join(info.checkpoints.values()),
        "--parallel": ", ".join(info.parallel),
        "graph breaks": info.breaks or "unknown before compilation",
    }
    table = Table.grid(padding=(0, 2))
    for name, text in facts.items():
        if text:
            table.add_row(Text(name, "dim"), Text(text))
    tables = _pairs("--size", sizes), _pairs("--scope", info.scopes), table
    return Group(heading, *(Padding(each, (0, 0, 0, 2)) for each in tables), Text())


def _parts(info: WorkloadInfo) -> RenderableType:
    """The modules at the largest size, built without weights."""
    quiet_libraries()
    builder = load_builder(info)
    from tracekit.workloads.scopes import read_parts

    size = next(iter(info.sizes))
    whole, found = read_parts(builder, info.name, size)
    table = Table.grid(padding=(0, 2))
    # Names are there to be copied, so they stay in one piece.
    table.add_column(style="cyan", no_wrap=True)
    for justify in ("right", "right", "left"):
        table.add_column(justify=justify)
    for part in found:
        table.add_row(part.name, parameter_count(part.parameters), percent(part.parameters / whole, 0), part.kind)
    heading = Text.assemble((info.name, "bold"), f"  {size}: {parameter_count(whole)} parameters")
    return Group(heading, table, Text())


def _pairs(option: str, meanings: dict[str, str]) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for number, (name, what) in enumerate(meanings.items()):
        table.add_row(Text(option if number == 0 else "", "dim"), Text(name, "cyan"), Text(what))
    return table
