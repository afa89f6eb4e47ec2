"""Workloads that are built once in a session, for all tests that only look at them or call them."""

from functools import cache
from typing import Any

import pytest

from tracekit.model.progress import Silent
from tracekit.model.workload import Request, WorkloadInfo
from tracekit.workloads import registry, scopes
from tracekit.workloads.one_forward_table import ROWS


def build(name: str, size: str | None = None, **asked: Any) -> Any:
    """A workload on the CPU: the tiny size of one of the list, the full one of a configuration."""
    for package in ROWS[name].needs if name in ROWS else ():
        pytest.importorskip(package)
    size = size or ("full" if ":" in name else "tiny")
    return registry.load_builder(registry.find(name))(Request(name, **asked), size, "cpu", Silent())


#: The same, made once for what is asked.
built = cache(build)


@cache
def nowhere(name: str, size: str | None = None) -> Any:
    """A workload of the list without weights, of its largest size or this one."""
    for package in ROWS[name].needs if name in ROWS else ():
        pytest.importorskip(package)
    info = registry.find(name)
    return scopes.build_nowhere(registry.load_builder(info), Request(name), size or next(iter(info.sizes)))


def look_into(name: str, **asked: Any) -> WorkloadInfo:
    """What the configuration of a workload tells."""
    info = registry.find(name)
    registry.load_builder(info)
    return registry.look_into(info, Request(name, **asked))
