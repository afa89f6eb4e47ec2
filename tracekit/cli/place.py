"""A place that a user names for what is written."""

from __future__ import annotations

from pathlib import Path

import click


class Place(click.Path):
    """A path that is not empty: an empty one would be the current folder."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        if value == "":
            self.fail("it names no place; leave it out, or write a name", param, ctx)
        return Path(str(value))
