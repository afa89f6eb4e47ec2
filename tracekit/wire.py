"""Nouns as JSON, in files and between processes, with what was noted in them."""

from functools import cache, partial
from inspect import get_annotations
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from tracekit.model.statement import written
from tracekit.names import clipped

Decoded = TypeVar("Decoded")
#: A note may hold another, or a reason, and that one more.
DEEPEST = 3


def encode(noun: object) -> bytes:
    return msgspec.json.encode(noun, enc_hook=written)


def decode(content: bytes, kind: type[Decoded]) -> Decoded:
    """Raises what msgspec does, which names the place of a note whose facts are not those of its code."""
    return msgspec.json.decode(content, type=kind, dec_hook=_read)


class _UnknownCodeError(ValueError):
    """What only a later version knows."""


def _read(kind: type, told: object, depth: int = 0) -> object:
    """msgspec's `dec_hook`: what JSON holds of something that was noted, or of a reason within that."""
    from tracekit.model.note import Noted, WrittenNoted
    from tracekit.model.numerics import AccuracyReason
    from tracekit.statements import accuracy, rank_differences  # noqa: F401 - these are read too.
    from tracekit.statements.noted import UnknownNoted

    if kind not in (Noted, AccuracyReason):
        raise NotImplementedError(f"{kind.__name__} is read from no file")
    code, facts = (told.get("code", ""), told.get("facts", {})) if isinstance(told, dict) else ("", {})
    if kind is AccuracyReason:
        if str(code) not in AccuracyReason.classes:
            raise _UnknownCodeError(code)
        return _made(AccuracyReason.classes[str(code)], facts, depth)
    known: Any = Noted.classes.get(str(code), UnknownNoted)
    try:
        if known is not UnknownNoted:
            return _made(known, known.as_held(facts) if isinstance(facts, dict) else facts, depth)
    except msgspec.ValidationError as error:
        if not isinstance(error.__cause__, _UnknownCodeError):
            raise ValueError(f'the facts of a note "{clipped(str(code), 60)}": {error}') from None
    return UnknownNoted(msgspec.convert(told, WrittenNoted))


def _made(known: Any, facts: object, depth: int) -> object:
    if depth == DEEPEST:
        raise ValueError("statements within statements")
    made = msgspec.convert(facts, _facts_of(known), dec_hook=partial(_read, depth=depth + 1))
    return known(**msgspec.structs.asdict(made))


@cache
def _facts_of(known: type[Any]) -> type[Struct]:
    """The facts of that class, as msgspec reads them."""
    hints = get_annotations(known).items()
    fields = [(name, hint, getattr(known, name)) if hasattr(known, name) else (name, hint) for name, hint in hints]
    return msgspec.defstruct(known.__name__, fields)
