"""Errors a user can act on."""


class TracekitError(Exception):
    """Something the user can mend; the message is one line that says how.

    The command line prints the message, the lines that go `below` it, such as a short table, and exits with 1. Any
    other exception is a bug and keeps its traceback.
    """

    def __init__(self, message: str, below: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.below = below


class CompileError(TracekitError):
    """torch.compile failed. Its whole text, too long to be told, is in the run's log."""


class NothingCompiledError(TracekitError):
    """torch.compile made no graph of what it was given: an answer where a run is made, which says why, and an error
    elsewhere."""


class StrictError(TracekitError):
    """What is only noted otherwise, and fails a command that was told to be strict."""


class DoesNotFitError(TracekitError):
    """A model that needs more memory than there is, known before it was built."""


class LateRankError(TracekitError):
    """Ranks of a job that the others waited for in vain; none where it is not known which."""

    def __init__(self, message: str, ranks: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.ranks = ranks


class KilledRankError(TracekitError):
    """A rank of a job that a signal ended, as the system does where memory runs out."""


class TheirCodeError(TracekitError):
    """What code of the user's own raised. `traceback` is theirs, without tracekit's frames; the command line prints it
    above the message."""

    def __init__(self, message: str, traceback: str) -> None:
        super().__init__(message)
        self.traceback = traceback


class EngineError(TracekitError):
    """An engine that gives no answer, or another one than was asked for."""


class WorkerDiedError(TracekitError):
    """What worked on one item elsewhere died, whatever of; that of others may be well."""

    def __init__(self, message: str, *, out_of_memory: bool = False) -> None:
        super().__init__(message)
        self.out_of_memory = out_of_memory
