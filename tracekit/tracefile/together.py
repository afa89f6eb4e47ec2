"""One file decoded by several processes at once.

Each reads all of the file, and cuts it into the same batches of whole events; it decodes those that it is the first to
claim. Nothing but their columns goes from process to process. Files that are not sound throughout are left to
`decode_events`, which knows what to do about damage.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import os
import pickle
import sys
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import IO, TYPE_CHECKING, get_args

from tracekit.interpreter import collector_paused
from tracekit.tracefile.columns import Columns
from tracekit.tracefile.decode import (
    DECODE_ERRORS,
    LONGEST_BYTES,
    Decoding,
    as_list,
    decode_ending,
    last_end,
    read_beginning,
)
from tracekit.tracefile.events import Detail
from tracekit.tracefile.source import opened
from tracekit.tracefile.unpack import unpacked

if TYPE_CHECKING:
    from tracekit.tracefile.helpers import Helpers
    from tracekit.tracefile.unpack import Unpacked


#: So few that no process waits long for another one's last batch.
STRETCHES = 4
#: No file has so many batches: who claims this number has nothing to do.
STOPPED = 1 << 60

#: What decodes as one list: the caches of a processor hold it. The parts that end in it, and the one it ends in.
Stretch = tuple[list[bytes], memoryview]
#: The columns of some batches, by number.
Parts = Iterator[tuple[int, Columns]]


class UnsoundError(Exception):
    """The file must be read from one end to the other by one process."""


class Claims:
    """The number of the next batch that nobody has claimed, in a file that all processes have open."""

    def __init__(self, number: int) -> None:
        self._number = number

    def claim(self) -> int:
        """The batch that is the caller's; `STOPPED` or more where there is nothing to do any more."""
        fcntl.lockf(self._number, fcntl.LOCK_EX)
        try:
            found = int.from_bytes(os.pread(self._number, 8, 0), "big")
            os.pwrite(self._number, (found + 1).to_bytes(8, "big"), 0)
        finally:
            fcntl.lockf(self._number, fcntl.LOCK_UN)
        return found

    def stop(self) -> None:
        """Whoever claims from now on has nothing to do."""
        os.pwrite(self._number, STOPPED.to_bytes(8, "big"), 0)


class Batches:
    """The batches of a file. Once they are over, `count` is how many there are, and `rest` what follows the last one:
    the last events and what stands behind them."""

    def __init__(self, pieces: Iterator[bytes], begun: bytes) -> None:
        self._pieces = pieces
        self.rest = begun
        self.count = 0

    def __iter__(self) -> Iterator[list[Stretch]]:
        """Some stretches each. Raises UnsoundError where an event does not end."""
        batch: list[Stretch] = []
        held, size = [self.rest], len(self.rest)
        for piece in self._pieces:
            end = last_end(piece)
            if end is None:
                held.append(piece)
                size += len(piece)
                if size > LONGEST_BYTES:
                    raise UnsoundError
                continue
            batch.append((held, memoryview(piece)[:end]))
            held, size = [piece[end:]], len(piece) - end
            if len(batch) == STRETCHES:
                self.count += 1
                yield batch
                batch = []
        if batch:
            self.count += 1
            yield batch
        self.rest = b"".join(held)


def decode_claimed(batches: Batches, claims: Claims, detail: Detail) -> Parts:
    """The columns of the batches that this process claims. Raises UnsoundError, there and where the others claim next,
    where the events of a batch are no list of JSON, or one of them begins in one event and ends in another."""
    decoding = Decoding("", detail)
    mine = claims.claim()
    for number, batch in enumerate(batches):
        if mine >= STOPPED:
            raise UnsoundError
        if number < mine:
            continue
        columns = Columns(detail)
        try:
            for held, more in batch:
                columns.add(decoding.events(as_list(b"".join(held), more)))
            if columns.paired:
                raise UnsoundError
        except (UnsoundError, *DECODE_ERRORS):
            claims.stop()
            raise UnsoundError from None
        yield number, columns
        mine = claims.claim()


def decode_together(content: Unpacked, decoding: Decoding, helpers: Helpers) -> Columns | None:
    """What `decode_events` gives of the content, in columns, made with the helpers; None where one process must read
    all of it. Raises TracekitError for what is no trace."""
    batches = Batches(content.pieces, read_beginning(content.pieces, decoding))
    try:
        own = list(decode_claimed(batches, Claims(helpers.claimed.fileno()), decoding.detail))
        # Where this process was first everywhere nobody is waited for.
        others = helpers.decoded if len(own) < batches.count else []
        if content.damaged or (others and not helpers.wait()):
            return None
    except UnsoundError:
        return None
    columns, done = Columns(decoding.detail), 0
    for number, part in heapq.merge(own, *map(_parts_in, others), key=itemgetter(0)):
        if number != done:
            return None
        columns.append(part)
        done += 1
    if done != batches.count:
        return None
    for events in decode_ending(batches.rest, decoding):
        columns.add(events)
    return columns


def _parts_in(decoded: IO[bytes]) -> Parts:
    decoded.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(decoded)


def main(path: str, word: str) -> None:
    """Takes part in decoding the file in this detail: the claims are this process's standard input, its columns its
    output."""
    detail = next(each for each in get_args(Detail) if each == word)
    with collector_paused(), opened(Path(path)) as source, unpacked(source) as content:
        batches = Batches(content.pieces, read_beginning(content.pieces, Decoding(source.name, detail)))
        for part in decode_claimed(batches, Claims(sys.stdin.fileno()), detail):
            pickle.dump(part, sys.stdout.buffer, pickle.HIGHEST_PROTOCOL)
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
