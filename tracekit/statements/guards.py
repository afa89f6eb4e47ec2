"""Checks that compiled code did not pass, read from torch's words, without addresses: these tell a reader nothing."""

import re
from collections.abc import Callable

from msgspec import Struct

from tracekit.model.compilation import FailedGuard
from tracekit.model.statement import Statement, Written

#: That something is the very object, or of the very type, that it was.
IDENTITY_CHECK = re.compile(r"___check_(?P<of>obj|type)_id\((?P<name>.+?), \d+\)(?:, type=(?P<then>.+))?")
CODE_OBJECT = re.compile(r'<code object (?P<function>\S+) at \S+ file "(?P<file>[^"]+)", line (?P<line>\d+)>')
TYPE_NAME = re.compile(r"<class '(?P<name>[^']+)'>")


class Check(Statement):
    """What was checked: what something was `then`, when the code was compiled, and is `now`. JSON has the code as
    `kind` among the facts."""

    as_written = Written

    @property
    def is_zero_or_one(self) -> bool:
        """Whether it is of a size that is or was 0 or 1, for which torch makes code of its own also where it compiles
        for any size."""
        return False

    def written(self) -> dict[str, object]:
        return {"kind": self.code, **self.facts}


class SizeMany(Check):
    """That a size is neither 0 nor 1: for these torch compiles code of their own, whatever is asked."""

    code = "size_many"
    name: str
    index: str
    says = "size {index} of {name} is 1 or 0, compiled for 2 or more"

    @property
    def is_zero_or_one(self) -> bool:
        return True


class Size(Check):
    code = "size"
    name: str
    index: str
    then: str
    now: str
    says = "size {index} of {name} is {now}, compiled for {then}"

    @property
    def is_zero_or_one(self) -> bool:
        return bool({self.then, self.now} & {"0", "1"})


class TensorProperty(Check):
    code = "tensor"
    name: str
    what: str
    index: str | None
    then: str
    now: str

    def long(self) -> str:
        at = f" {self.index}" if self.index else ""
        return f"{self.what}{at} of {self.name} is {self.now}, compiled for {self.then}"


class Length(Check):
    code = "length"
    name: str
    then: str
    says = "length of {name} changed, compiled for {then}"


class CodeObject(Struct, frozen=True):
    """A function, and where it begins."""

    function: str
    file: str
    line: str


class Function(Check):
    code = "function"
    name: str
    then: CodeObject | None

    def long(self) -> str:
        if self.then is None:
            return f"{self.name} is another function"
        return f"{self.name} is another function, compiled for {self.then.function} ({self.then.file}:{self.then.line})"


class TypeOfObject(Check):
    code = "type"
    name: str
    then: str | None

    def long(self) -> str:
        return f"{self.name} has another type{f', compiled for {self.then}' if self.then else ''}"


class VeryObject(Check):
    code = "object"
    name: str
    says = "{name} is another object"


class OtherCheck(Check):
    """Of a kind not known here: as torch writes it."""

    code = "other"
    check: str
    says = "guard {check} failed"


#: Those that torch's words tell by one pattern, whose groups are their attributes; the first that fits says so.
BY_PATTERN: tuple[tuple[re.Pattern[str], Callable[..., Check]], ...] = (
    (re.compile(r"2 <= (?P<name>\S+)\.size\(\)\[(?P<index>\d+)\]$"), SizeMany),
    (
        re.compile(
            r"tensor '(?P<name>.+)' size mismatch at index (?P<index>\d+)\. expected (?P<then>\d+), actual (?P<now>\d+)"
        ),
        Size,
    ),
    (
        re.compile(
            r"tensor '(?P<name>.+)' (?P<what>[\w ]+?) mismatch(?: at index (?P<index>\d+))?\. "
            r"expected (?P<then>.+?), actual (?P<now>.+)"
        ),
        TensorProperty,
    ),
    (re.compile(r"len\((?P<name>\S+)\) == (?P<then>\d+)$"), Length),
)


def check_of(guard: FailedGuard) -> Check:
    """What torch's words say was checked."""
    check = guard.check.rstrip(".")
    for pattern, made in BY_PATTERN:
        if found := pattern.match(check):
            return made(**found.groupdict())
    identity = IDENTITY_CHECK.match(check)
    if identity is None:
        return OtherCheck(check)
    name, then = identity["name"], identity["then"] or ""
    code, type_name = CODE_OBJECT.match(then), TYPE_NAME.match(then)
    if code or (identity["of"] == "obj" and name.endswith(".__code__")):
        return Function(name.removesuffix(".__code__"), CodeObject(**code.groupdict()) if code else None)
    if identity["of"] == "type":
        return TypeOfObject(name, type_name["name"] if type_name else None)
    return VeryObject(name)
