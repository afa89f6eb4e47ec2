"""What each key of a schema means, from what the docstrings of its nouns say: a noun's stands with its object, and the
sentences in it that name a field stand with the field."""

from __future__ import annotations

import re
from typing import Any

#: Where one sentence ends and another begins, or a half of one that stands by itself.
BETWEEN_SENTENCES = re.compile(r"(?<=[.;])\s+(?=[A-Z`])")

#: The unit that ends a key's name.
UNITS = {
    "ci95": "The two ends of a 95 % interval.",
    "ms": "Milliseconds.",
    "us": "Microseconds.",
    "seconds": "Seconds.",
    "bytes": "Bytes.",
    "mhz": "Megahertz.",
    "w": "Watts.",
    "c": "Degrees Celsius.",
    "share": "A share, 0 to 1.",
    "fraction": "A share, 0 to 1.",
    "count": "How many.",
}


def described(told: Any) -> Any:
    """The schema with a description of every key that its object's own description names, or whose name has a unit."""
    if isinstance(told, list):
        return [described(each) for each in told]
    if not isinstance(told, dict):
        return told
    found = {key: described(value) for key, value in told.items()}
    if isinstance(told.get("properties"), dict):
        sentences = BETWEEN_SENTENCES.split(" ".join(str(told.get("description", "")).split()))
        found["properties"] = {key: _with_words(key, value, sentences) for key, value in found["properties"].items()}
    return found


def _with_words(key: str, told: dict[str, Any], sentences: list[str]) -> dict[str, Any]:
    named = [each for each in sentences if re.search(rf"`[^`]*\b{re.escape(key)}\b[^`]*`", each)]
    words = " ".join(each[:1].upper() + each[1:].rstrip(";") for each in named) or UNITS.get(key.rsplit("_", 1)[-1], "")
    return {**told, "description": words} if words and "description" not in told else told
