"""Is what a user asks for what a file may hold? This is asked before anything is run: a run with anything else in it
could never be read."""

from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, get_args

import msgspec
import numpy as np
from msgspec import Struct, inspect

from tracekit.errors import TracekitError
from tracekit.model.bounded import PLACE_PATTERN, PlaceName
from tracekit.names import clipped

#: Characters of a value that an error quotes.
LONGEST = 60
#: What options are called where it is not the field's name.
IN_A_PROGRAM = {"workload": "name", "target_percent": "target", "budget_seconds": "time_budget"}
ON_THE_COMMAND_LINE = {
    "workload": "WORKLOAD",
    "target_percent": "--target",
    "budget_seconds": "--time-budget",
    "cell_timeout_seconds": "--cell-timeout",
    "rank_timeout_seconds": "--timeout",
    "timeout_seconds": "--timeout",
    "repeats": "--repeat-process",
    "processes": "--repeat-process",
    "options": "an option after --:",
    "page": "--html",
}


def check_asked(asked: Struct, called: Mapping[str, str]) -> None:
    """Raises TracekitError for a field that holds what its type does not allow, in structs within the struct too;
    `called` is how the user calls them."""
    for field in msgspec.structs.fields(asked):
        name, kind, value = field.name, field.type, getattr(asked, field.name)
        if isinstance(value, PurePath) and (kind is Path or Path in get_args(kind)):
            # A folder's name goes into the commands and files of what is in it.
            value, kind = str(value), PlaceName
        if isinstance(value, Struct):
            check_asked(value, called)
        elif called is IN_A_PROGRAM:
            check_value(f"{called.get(name, name)}=", value, kind)
        else:
            option = called.get(name) or f"--{name.replace('_', '-')}"
            check_value(f"{option} ", value, kind)


def check_value(name: str, value: object, kind: Any) -> None:
    """The same of one value; `name` is what stands before it."""
    try:
        msgspec.convert(value, kind)
        # No file takes half of a character, or NumPy's own text and numbers.
        msgspec.json.encode(value)
    except (msgspec.ValidationError, UnicodeEncodeError, TypeError):
        shown = clipped(repr(value) if name.endswith("=") else str(value), LONGEST)
        raise TracekitError(f"{name}{shown}: pass {_words(inspect.type_info(kind))}") from None


def without_numpy(value: Any) -> Any:
    """Python's own number, of one of numpy's; anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def _words(kind: inspect.Type) -> str:
    match kind:
        case inspect.UnionType():
            return _words(next(each for each in kind.types if not isinstance(each, inspect.NoneType)))
        case inspect.StrType(max_length=None):
            return "text"
        case inspect.IntType():
            return f"a whole number from {kind.ge:,} to {kind.le:,}"
        case inspect.FloatType():
            least = f"above {kind.gt:g}" if kind.gt is not None else f"from {kind.ge:g}"
            return f"a number {least} to {kind.le:,.10g}"
        case inspect.BoolType():
            return "True or False"
        case inspect.VarTupleType():
            return _words(kind.item_type)
        case inspect.StrType():
            first = ", the first of which is no -" if (kind.pattern or "").startswith("^(?!-)") else ""
            without = "control characters" if kind.pattern == PLACE_PATTERN else "NUL"
            return f"text of at most {kind.max_length:,} characters{first}, as UTF-8 and without {without}"
    return "another value"
