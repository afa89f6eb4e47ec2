"""A table of a report, before it is rendered: terminal, markdown and page show the same ones."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Name:
    """A kernel, call or operator name: `short` to read, `full` where there is room."""

    full: str
    short: str


@dataclass(frozen=True, slots=True)
class Column:
    label: str
    numeric: bool = True


Cell = str | Name


@dataclass(frozen=True, slots=True)
class Table:
    """`note` says what a reader must know of the figures; empty when nothing."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
