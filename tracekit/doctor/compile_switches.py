"""Does the environment turn torch.compile off?"""

from __future__ import annotations

import os

from tracekit.doctor.check import Check, ok, problem

NAME = "torch.compile"
SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")


def check_compile_switches() -> Check:
    off = [name for name in SWITCHES if os.environ.get(name, "0") == "1"]
    if off:
        return problem(NAME, f"{' and '.join(off)} set: the compiled form would run eager", f"unset {' '.join(off)}")
    return ok(NAME, "not turned off by the environment")
