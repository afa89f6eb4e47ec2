"""What is said of figures: typed facts, and the words made of them, one class a code.

Classes lie in `tracekit/statements/`, a wing's in the wing. Written, each is its code and its facts.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, ClassVar, Literal, Self, dataclass_transform

import msgspec
from msgspec import Struct

Severity = Literal["info", "warning", "error"]


@dataclass_transform(frozen_default=True)
class Statement:
    """Facts, in annotated attributes with units in their names, and what is said of them.

    A class without a `code` is a kind; codes are unique within one. Sentences that take facts as they are stand in
    `says` and `says_short`, with the facts' names in braces; others are made by `long()` and `short()`.
    """

    code: ClassVar[str]
    usual_severity: ClassVar[Severity] = "warning"
    says: ClassVar[str]
    says_short: ClassVar[str | None] = None  #: None where the sentence is said there too.
    classes: ClassVar[dict[str, type[Statement]]]  #: Of a kind: its classes by code.
    as_written: ClassVar[type[Struct]]  #: Of a kind: what JSON holds.
    beside: ClassVar[tuple[str, ...]] = ()  #: Of a kind: attributes that are no facts, written beside them.

    def __init_subclass__(cls) -> None:
        if any("code" in vars(base) for base in cls.__mro__[1:]):
            raise TypeError(f"{cls.__name__} is made from a class that has a code")
        if "code" not in vars(cls):
            cls.classes = {}
            return
        kinds = [kind for kind in reversed(cls.__mro__) if issubclass(kind, Statement) and "classes" in vars(kind)]
        inherited = {name: hint for kind in kinds for name, hint in get_annotations(kind).items()}
        cls.__annotations__ = inherited | get_annotations(cls)
        for kind in kinds:
            if cls.code in kind.classes:
                raise TypeError(f"two statements of a kind have the code {cls.code}")
            kind.classes[cls.code] = cls
        # Without one a dataclass makes a docstring of its signature, which takes it longer than all else.
        cls.__doc__ = cls.__doc__ or cls.code
        dataclass(repr=False, eq=False, frozen=True)(cls)
        # A dataclass msgspec writes and reads by its fields alone; for anything else it asks `written` and `read`.
        del cls.__dataclass_fields__  # type: ignore[attr-defined]

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # Facts may be lists.

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @property
    def severity(self) -> Severity:
        return self.usual_severity

    @property
    def facts(self) -> dict[str, object]:
        """Figures and names as JSON holds them, without those that may be missing and are."""
        own = {name: value for name, value in vars(self).items() if name not in self.beside}
        told = {name: value for name, value in own.items() if not (hasattr(type(self), name) and value is None)}
        facts: dict[str, object] = builtins_of(told)
        return facts

    def but(self, **changes: Any) -> Self:
        """The same with other facts."""
        return type(self)(**(vars(self) | changes))

    def written(self) -> Struct | dict[str, object]:
        """What JSON holds: for each kind the `as_written` of it."""
        return Written(self.code, self.facts)

    def long(self) -> str:
        """The sentence."""
        return self.says.format(**vars(self))

    def short(self) -> str:
        """What is said where a line of the terminal is all there is."""
        return self.long() if self.says_short is None else self.says_short.format(**vars(self))


class Written(Struct, frozen=True):
    """A statement in a file."""

    code: str  #: Which.
    facts: dict[str, Any]  #: Its figures and names, with units in their keys.


class Words(str):
    """What a noun says, or is called."""

    __slots__ = ()


def written(value: object) -> Struct | dict[str, object] | str:
    """msgspec's `enc_hook`: a statement as JSON holds it."""
    if isinstance(value, Words):
        return str(value)
    if isinstance(value, Statement):
        return value.written()
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def builtins_of(noun: object) -> Any:
    """The noun in lists, dicts and scalars, statements as JSON holds them."""
    return msgspec.to_builtins(noun, enc_hook=written)
