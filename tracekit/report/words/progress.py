"""What a run is doing, and how its processes end, in English."""

import signal

LOADING = "importing torch and the model's libraries"
ASKING_WHETHER_KERNELS_ARE_SEEN = "checking that the profiler sees kernels"
ONE_CALL = "test call"
#: By how a compiled form is started.
STARTING = {
    "eager": "cold start of eager",
    "compiled_no_cache": "cold start of compiled, no cache",
    "compiled_warm_cache": "cold start of compiled, warm cache",
}


def timing_process(number: int, of: int) -> str:
    return f"timing in another process, {number} of {of}"


def exit_words(code: int) -> str:
    """How a process ended that tracekit did not end; a negative code is a signal."""
    if code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name if -code in {*signal.Signals} else f"signal {-code}"
    # What Linux sends when memory runs out, and anybody else may.
    return f"killed by {name}" + (", not by tracekit: possibly out of memory" if name == "SIGKILL" else "")
