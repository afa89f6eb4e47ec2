"""Errors a user can act on."""


class TracekitError(Exception):
    """Something the user can mend; the message is one line that says how.

    The command line prints the message and exits with 1. Any other exception is a bug and keeps its traceback.
    """


class StrictError(TracekitError):
    """What is only noted otherwise, and fails a command that was told to be strict."""


class DoesNotFitError(TracekitError):
    """A model that needs more memory than there is, known before it was built."""
