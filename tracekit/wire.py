"""Nouns as JSON, in files and between processes, with what was noted in them."""

from collections.abc import Callable
from functools import cache
from inspect import get_annotations
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.model.statement import written

Decoded = TypeVar("Decoded")


def encode(noun: object) -> bytes:
    return msgspec.json.encode(noun, enc_hook=written)


def decode(content: bytes, kind: type[Decoded]) -> Decoded:
    """Raises what msgspec does, and TracekitError for a note whose facts are not those of its code."""
    return msgspec.json.decode(content, type=kind, dec_hook=_read)


def _read(kind: type, told: object) -> object:
    """msgspec's `dec_hook`: what JSON holds of something that was noted."""
    return _read_statement(kind, told, _read_within)


def _read_within(kind: type, told: object) -> object:
    """The same of what another statement holds, which holds one more at most."""
    return _read_statement(kind, told, _read_last)


def _read_last(kind: type, told: object) -> object:
    return _read_statement(kind, told, None)


def _read_statement(kind: type, told: object, within: Callable[[type, object], object] | None) -> object:
    from tracekit.model.note import Noted, WrittenNoted
    from tracekit.model.numerics import AccuracyReason
    from tracekit.statements import accuracy, rank_differences  # noqa: F401 - these are read too.
    from tracekit.statements.noted import UnknownNoted

    if kind not in (Noted, AccuracyReason):
        raise NotImplementedError(f"{kind.__name__} is read from no file")
    code, facts = (told.get("code", ""), told.get("facts", {})) if isinstance(told, dict) else ("", {})
    known: Any = (Noted if kind is Noted else AccuracyReason).classes.get(str(code))
    if known is None or known is UnknownNoted:
        if kind is AccuracyReason:
            raise ValueError(f"no reason {code}")
        return UnknownNoted(msgspec.convert(told, WrittenNoted))
    try:
        held = known.as_held(facts) if kind is Noted and isinstance(facts, dict) else facts
        return known(**msgspec.structs.asdict(msgspec.convert(held, _facts_of(known), dec_hook=within)))
    except (ValueError, msgspec.ValidationError):
        raise TracekitError(f'a note "{code}" of the run cannot be read; record the run again') from None


@cache
def _facts_of(known: type[Any]) -> type[Struct]:
    """The facts of that class, as msgspec reads them."""
    hints = get_annotations(known).items()
    fields = [(name, hint, getattr(known, name)) if hasattr(known, name) else (name, hint) for name, hint in hints]
    return msgspec.defstruct(known.__name__, fields)
