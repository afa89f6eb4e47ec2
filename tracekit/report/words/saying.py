"""Sentences made of facts: a template where figures are only to be written, a function where words depend on them."""

import string
from collections.abc import Callable, Mapping
from typing import Any

from tracekit.numbers import count, counted, duration, percent, times

Sentence = str | Callable[..., str]


class Facts(string.Formatter):
    """Writes a fact as its template asks: `{share:percent 0}`, `{cells:counted cell}`, `{cells:is|are}`,
    `{call_us:duration}`, `{kernels:count}`, `{speedup:times}`, `{names:list}`; all else as `str.format` does."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, more = format_spec.partition("|")
        if bar:
            return one if value == 1 else more
        kind, _, argument = format_spec.partition(" ")
        if kind == "percent":
            return percent(value, int(argument))
        if kind == "counted":
            return counted(value, argument)
        if kind == "list":
            return ", ".join(map(str, value))
        written = {"count": count, "duration": duration, "times": times}.get(kind)
        return written(value) if written else str(super().format_field(value, format_spec))


def say(sentence: Sentence, facts: Mapping[str, Any], subject: str | None = None) -> str:
    """The sentence of these facts; `subject` is what it is about."""
    if isinstance(sentence, str):
        return Facts().vformat(sentence, (), {"subject": subject, **facts})
    return sentence(**facts) if subject is None else sentence(subject, **facts)
