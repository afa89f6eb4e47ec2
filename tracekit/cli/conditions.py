"""Conditions of a gate, as they are written on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracekit.model.gate import Condition


def read_conditions(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Condition, ...]:
    """Those of all `--gate` together. What is no condition is a wrong value of the option: exit code 2."""
    if not values:
        return ()
    # Only for who asks for a gate.
    from tracekit.comparison.judging.gate import parse_conditions
    from tracekit.errors import TracekitError

    try:
        return tuple(condition for value in values for condition in parse_conditions(value))
    except TracekitError as error:
        raise click.BadParameter(str(error), ctx=context, param=parameter) from error
