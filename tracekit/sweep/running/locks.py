"""Locks that go with the process that holds them, in files that stay.

Not filelock's: where a file system has no locks that takes a file's existence for one, and what a killed process
leaves would hold a cell for ever.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: What a file system says that has no locks, as some that are mounted over a network.
UNSUPPORTED = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
#: What it says of a lock that somebody else holds.
TAKEN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES})


class NoLocksError(Exception):
    """The file system has no locks; the message is its own."""


@contextmanager
def locked(path: Path, *, blocking: bool, shared: bool = False) -> Iterator[bool]:
    """Whether the file is this block's alone, or, if `shared`, nobody's alone; False where somebody else has it. With
    `blocking` it is waited for.

    Raises NoLocksError where there are no locks, OSError where the file cannot be made, and where a link, a pipe or a
    device has its name: the folder may be a stranger's.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EEXIST, f"{path.name} is not a regular file")
        ours = True
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if blocking else fcntl.LOCK_NB))
        except OSError as error:
            if error.errno in UNSUPPORTED:
                raise NoLocksError(error.strerror) from error
            if error.errno not in TAKEN or blocking:
                raise
            ours = False
        yield ours
    finally:
        # Closing gives the lock back.
        os.close(handle)
