"""A part of a model as it is listed: what `--scope` can name, and how much of the model it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Part:
    """`name` is what `--scope` takes: a module's, or `LIST.*` for the members of a list of modules, which is never
    called itself. `kind` is the module's class, in a list that of its members. Parameters in several places count with
    the first part that has them."""

    name: str
    kind: str
    parameters: int
