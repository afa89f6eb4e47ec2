"""What did torch.compile do to this model on this GPU, and why?"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracekit.api import (
        ProfiledComparison,
        ProfiledRun,
        ProfiledTrace,
        Workload,
        analyze,
        compare,
        load,
        profile,
        record,
        region,
        step,
    )

__version__ = "0.1.0"
__all__ = [
    "ProfiledComparison",
    "ProfiledRun",
    "ProfiledTrace",
    "Workload",
    "__version__",
    "analyze",
    "compare",
    "load",
    "profile",
    "record",
    "region",
    "step",
]


def __dir__() -> list[str]:
    """The names above, imported or not, and what every module has."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """The names above are imported when the first of them is used: the command line needs none of them."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module("tracekit.api"), name)
    # The next look finds it at once.
    globals()[name] = found
    return found
