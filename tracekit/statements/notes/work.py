"""What besides the compilation differs between the sides, and what was not run as it was asked."""

from collections.abc import Mapping, Sequence

from tracekit.model.note import Note
from tracekit.model.option import OPTIONS
from tracekit.names import clipped_within
from tracekit.shell import variable_words

#: What a setting, or a fact of the machine, is called.
WORDS = {each.name: each.word for each in OPTIONS} | {
    "gpu": "GPU",
    "gpus": "number of GPUs",
    "driver": "driver",
    "cuda": "CUDA version",
    "cpu": "CPU",
    "cpu_threads": "CPU threads",
    "python": "Python",
    "float32_matmul_precision": "float32_matmul_precision",
    "variables": "torch environment variables",
}

#: Characters of a value where there is little room.
LONGEST = 60

#: What a setting is: several words, variables by name, or one of them.
Setting = str | float | Sequence[str] | Mapping[str, str] | None


class SettingDiffers(Note):
    code = "setting_differs"
    setting: str
    a: Setting
    b: Setting
    a_name: str | None = None  #: The names of the runs, where more than two are compared.
    b_name: str | None = None

    def long(self) -> str:
        return difference_words(WORDS[self.setting], self)

    def short(self) -> str:
        return change_words(WORDS[self.setting], self)


class PackageDiffers(Note):
    code = "package_differs"
    package: str
    a: str | None
    b: str | None
    a_name: str | None = None  #: The names of the runs, where more than two are compared.
    b_name: str | None = None

    def long(self) -> str:
        return difference_words(self.package, self)

    def short(self) -> str:
        return change_words(self.package, self)


def difference_words(what: str, between: SettingDiffers | PackageDiffers) -> str:
    runs = f"{between.a_name} (A) and {between.b_name} (B): " if between.a_name is not None else ""
    return f"{runs}The sides differ in {what}: A {_shown(between.a)}, B {_shown(between.b)}."


def change_words(what: str, between: SettingDiffers | PackageDiffers) -> str:
    """`torch 2.11.0 → 2.12.0`; of more than two runs with the names of the two."""
    a, b = (clipped_within(_shown(each), LONGEST) for each in (between.a, between.b))
    runs = f" ({between.a_name} → {between.b_name})" if between.a_name is not None else ""
    return f"{what} {a} → {b}{runs}"


def _shown(value: Setting) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, Mapping):
        return variable_words(value) or "none"
    if isinstance(value, str | float | int):
        return str(value)
    return " ".join(value) or "none"


class OneSideGenerates(Note):
    code = "one_side_generates"
    side: str
    says = "Only {side} generates text."


class OneSideIsOwn(Note):
    code = "one_side_is_own"
    side: str
    says = "Only {side} is a user-defined model."


class TrainingMode(Note):
    code = "training_mode"
    modules: Sequence[str]
    side: str | None  #: None where it is so of both.

    def long(self) -> str:
        were = "was" if len(self.modules) == 1 else "were"
        return (
            f"{self._named()} {were} in training mode: any dropout is on, any batch norm updates its averages. Call"
            " .eval() to measure inference."
        )

    def short(self) -> str:
        return f"{self._named()} in training mode, any dropout is on (.eval() for inference)"

    def _named(self) -> str:
        return f"{f'{self.side}: ' if self.side else ''}{', '.join(self.modules)}"


class RanEager(Note):
    code = "ran_eager"
    usual_severity = "error"
    grave = True
    reason: str | None

    def long(self) -> str:
        because = f" ({self.reason})" if self.reason else ""
        return f"Compiled ran eager: no recorded step ran a compiled graph{because}."

    def short(self) -> str:
        return f"the compiled model ran eager{f': {self.reason}' if self.reason else ''}"


class PartRanEager(Note):
    code = "part_ran_eager"
    subject: str
    place: str  #: With the line at which it was given up, where that is known.
    reason: str
    says = "Part of {subject} ran eager: {place}: {reason}."
    says_short = "part of it ran eager: {place}"
