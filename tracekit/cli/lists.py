"""Options that take several values, as `--batch-size 1,4,16`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    Kind = click.ParamType[Any]

Function = TypeVar("Function", bound=Callable[..., Any])


def several(option: str, one: Kind, metavar: str, text: str) -> Callable[[Function], Function]:
    """An option of values between commas, each as `one` reads it; one that is named twice counts once. None where the
    option is not given."""

    def split(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        parts = (part.strip() for part in value.split(","))
        return tuple(dict.fromkeys(one.convert(part, parameter, context) for part in parts))

    return click.option(option, callback=split, metavar=metavar, help=text)
