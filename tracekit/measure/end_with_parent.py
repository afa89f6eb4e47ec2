"""`python -m tracekit.measure.end_with_parent PARENT MODULE WORD...` runs the module in a process that ends when its
parent does.

Nothing heavy is imported before that is sure: importing takes longer than a parent may live.
"""

import os
import signal
import sys

#: As Linux has it in sys/prctl.h.
PR_SET_PDEATHSIG = 1
#: What a process whose parent is gone ends with.
ORPHANED = 3


def end_with(parent: int) -> None:
    """The kernel ends this process when the one that started it ends, however that does: nobody times on for it. Where
    that has ended already, this one does now."""
    if sys.platform == "linux":
        from ctypes import CDLL

        CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have gone before the kernel was told.
    if os.getppid() != parent:
        os._exit(ORPHANED)


def main() -> None:
    """Ties the process, and runs the module in it as `python -m MODULE WORD...` does."""
    end_with(int(sys.argv[1]))
    import runpy

    from tracekit.interpreter import end_at_once

    del sys.argv[0:2]
    try:
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            end_at_once(end.code or 0)
        raise
    end_at_once(0)


if __name__ == "__main__":
    main()
