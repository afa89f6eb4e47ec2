"""A command of `tracekit profile` without what every run has: its model, and the options that are not the default."""

from __future__ import annotations

import shlex
from dataclasses import fields

from tracekit.cli.profile import profile
from tracekit.comparison.sweeping.cells import option_words
from tracekit.model.workload import Request
from tracekit.shell import split_variables, with_variables
from tracekit.workloads.registry import find

#: What is generated, and with which cache, where nobody says.
GENERATING = {"phase": "generate", "cache": "dynamic"}


def shortened(command: str) -> str:
    """Of `tracekit profile flux --compiled --out X`: `flux`. What is asked for in another order is the same. Of a
    command with variables set for it everything: `NAME=value tracekit profile flux`."""
    variables, words = split_variables(command)
    given = profile.make_context("profile", words[2:]).params
    asked = asked_for(Request(**{field.name: given[field.name] for field in fields(Request) if field.name in given}))
    return with_variables(f"tracekit profile {asked}", variables) if variables else asked


def asked_for(request: Request) -> str:
    """What is asked for beside what `tracekit profile` does of itself: `flux --scope all`."""
    info, plain = find(request.workload), Request(request.workload)
    usual = {"size": next(iter(info.sizes)), "scope": next(iter(info.scopes)), "iterations": request.iterations}
    usual |= GENERATING
    words = [request.workload]
    for name in (field.name for field in fields(Request)):
        value = getattr(request, name)
        if value in (getattr(plain, name), usual.get(name)):
            continue
        words += ["--", *value] if name == "options" else option_words(name, value)
    return shlex.join(words)
