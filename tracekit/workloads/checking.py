"""What is known to keep a workload from being built, before anything of it is? Imports what the workload needs."""

from __future__ import annotations

import importlib

from tracekit.model.workload import Request
from tracekit.workloads.own_info import is_own
from tracekit.workloads.registry import all_workloads, find, load_builder, look_into


def check_buildable(request: Request) -> None:
    """Raises TracekitError for packages that are missing, a configuration that is not here or cannot be used, a file of
    the user's that cannot be run, options that it does not take, and parts that a model has not.

    What real weights are made of, and what a user's own `build()` returns, is known only once they are there.
    """
    info = find(request.workload)
    builder = load_builder(info)
    if is_own(request.workload):
        importlib.import_module(info.module).check(request)
        return
    info = look_into(info, request)
    if request.pretrained:
        return
    from tracekit.workloads.scopes import build_nowhere, compile_targets

    size = next(iter(info.sizes)) if request.size == "auto" else request.size
    of_list = request.scope is None or request.scope in info.scopes
    if info in all_workloads() or not of_list:
        found = build_nowhere(builder, request, size)
        if request.scope is not None and not of_list:
            compile_targets(found, request.scope)
