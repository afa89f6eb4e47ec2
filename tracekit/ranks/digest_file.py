"""A rank's digest as one file of a versioned schema: the digest, packed, and behind it a footer with what is read of a
thousand of them.

A file may come from anybody. Its sizes are known before anything is unpacked, types and ranges are checked as it is
decoded (`tracekit/model/bounded.py`), and what no type says in `fault.py`.
"""

from binascii import crc32
from collections.abc import Collection
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
import zstandard
from msgspec import Meta, Struct

from tracekit.errors import TracekitError
from tracekit.interval import Ints
from tracekit.model.analysis import IDLE_CAUSES
from tracekit.model.bounded import Count, Text, Whole
from tracekit.ranks.digest_packing import MOMENTS, REST, packed, unpacked
from tracekit.ranks.digests import DigestOrigin, Exchange, Rank, RankDigest, RankRecording, Ranks, RankSummary
from tracekit.ranks.fault import checked, checked_summary
from tracekit.ranks.summary import pack, summarise, unpack, unzipped

#: To be raised when the tables, or how they are filled, change.
SCHEMA = "tracekit.digest/11"
#: What a digest's file begins and ends with.
MAGIC = b"TKDG"
#: Behind the footer: its length, its sum and MAGIC.
END_BYTES = 12
#: Of zstd: what is written once is read often.
LEVEL = 19
#: Of a file, and of what it unpacks to. A digest of the most rows has half of it.
MOST_BYTES = 1 << 28
#: A fleet's rank that took part in 50,000 collectives has 2 MB. What a digest says of its recording has no more.
MOST_FOOTER_BYTES = 1 << 24
#: Of all tables: those of 2 million kernels, from 2 GB of JSON. In memory they take a gigabyte.
MOST_ROWS = 1 << 22
#: In lists of ranks, over all rows of a column, and bytes of the distinct lists.
MOST_LISTED = 1 << 24
#: Of what is decoded before its names are known: no table has half as many.
MOST_COLUMNS = 64
#: What decoding another file, or a damaged one, raises.
DAMAGE = (msgspec.MsgspecError, zstandard.ZstdError, ValueError, LookupError)
NO_DIGEST = "is no digest of this version, or is damaged"
AGAIN = "make it again: tracekit digest"


class _Kind(Struct, frozen=True):
    """What a column's values may be. A row has the place of its value among the distinct ones."""

    type: Any
    dtype: Any = pl.Int64


#: A column that has the number itself in each row.
NUMBER = None
TEXT, TEXT_OR_NONE, EXCHANGE = _Kind(Text, pl.String), _Kind(Text | None, pl.String), _Kind(Exchange, pl.String)
COUNT, WHOLE, RANK, SIZE = (_Kind(each | None) for each in (Count, Whole, Rank, Ranks))
FLAG, RANKS = _Kind(bool, pl.Boolean), _Kind(list[Rank], pl.List(pl.Int64))
TIMES = dict.fromkeys(("start_ns", "end_ns"), NUMBER)
TABLES: dict[str, dict[str, _Kind | None]] = {
    "activities": {
        "kind": TEXT,
        "name": TEXT,
        "family": TEXT,
        "stream": WHOLE,
        "step": NUMBER,
        **TIMES,
        "grid": TEXT_OR_NONE,
        "in_graph": FLAG,
    },
    "collectives": {
        **TIMES,
        "stream": WHOLE,
        "step": NUMBER,
        "in_graph": FLAG,
        "sequence": COUNT,
        "kernel": TEXT,
        "ready_ns": NUMBER,
        "collective": TEXT,
        "group": TEXT_OR_NONE,
        "ranks": RANKS,
        "size": SIZE,
        "dtype": TEXT_OR_NONE,
        "bytes": COUNT,
        "signature": TEXT,
        "exchange": EXCHANGE,
        "root": RANK,
        "targets": RANKS,
        "sources": RANKS,
        "sent_bytes": COUNT,
        "received_bytes": COUNT,
    },
    "gaps": TIMES | dict.fromkeys(IDLE_CAUSES, NUMBER),
    "places": {**TIMES, "cause": TEXT, "where": TEXT_OR_NONE},
}


class _Column(Struct, frozen=True, array_like=True):
    """A column: its numbers, each of so many bytes, and the distinct values that they stand for."""

    width: Literal[1, 2, 4, 8]
    numbers: bytes
    values: msgspec.Raw


_Columns = Annotated[dict[str, _Column], Meta(max_length=MOST_COLUMNS)]


class _Content(Struct, frozen=True):
    """A digest, packed. In memory a byte of MessagePack may take a hundred, so parts are decoded when their own sizes
    are known."""

    recording: msgspec.Raw
    tables: Annotated[dict[str, _Columns], Meta(max_length=MOST_COLUMNS)]


class _Version(Struct, frozen=True):
    schema: str


class _Footer(_Version, frozen=True):
    """What is known of a digest without reading it; `sum` is of what stands before the footer."""

    sum: int
    origin: DigestOrigin | None
    summary: bytes


def digest_bytes(digest: RankDigest, origin: DigestOrigin | None = None) -> bytes:
    """The file's content; with the origin it is known again as that of a recording. Raises TracekitError for a digest
    that is too large to be read again."""
    tables = packed({name: getattr(digest, name) for name in TABLES})
    columns = {
        name: {column: _column(table[column], TABLES[name].get(column)) for column in table.columns}
        for name, table in tables.items()
    }
    recording = msgspec.msgpack.encode(RankRecording(**digest.stated()))
    content = msgspec.msgpack.encode(_Content(msgspec.Raw(recording), columns))
    body = MAGIC + zstandard.ZstdCompressor(LEVEL).compress(content)
    footer = msgspec.msgpack.encode(_Footer(SCHEMA, crc32(body), origin, pack(summarise(digest))))
    rows = sum(table.height for table in tables.values())
    if rows > MOST_ROWS or len(content) > MOST_BYTES or max(len(recording), len(footer)) > MOST_FOOTER_BYTES:
        raise TracekitError(
            f"{digest.path} has {digest.activities.height:,} GPU activities in its window, more than a digest takes:"
            " pass fewer steps, as in --steps 3-4"
        )
    return b"".join((body, footer, len(footer).to_bytes(4, "little"), crc32(footer).to_bytes(4, "little"), MAGIC))


def _column(series: pl.Series, kind: _Kind | None) -> _Column:
    if kind is NUMBER:
        width, numbers = _as_bytes(series.to_numpy())
        return _Column(width, numbers, msgspec.Raw(msgspec.msgpack.encode(None)))
    places: dict[Any, int] = {}
    rows = (tuple(each) if isinstance(each, list) else each for each in series.to_list())
    width, numbers = _as_bytes(np.array([places.setdefault(each, len(places)) for each in rows], dtype=np.int64))
    return _Column(width, numbers, msgspec.Raw(msgspec.msgpack.encode(list(places))))


def _as_bytes(numbers: Ints) -> tuple[Literal[1, 2, 4, 8], bytes]:
    """How many bytes each needs, and all of them."""
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, 0)
    widths: tuple[Literal[1, 2, 4, 8], ...] = (1, 2, 4, 8)
    width = next(each for each in widths if max(most, -1 - least) < 1 << (8 * each - 1))
    return width, numbers.astype(f"<i{width}").tobytes()


def read_digest(content: bytes, path: str) -> RankDigest:
    """The digest of a file's content. Raises TracekitError for another file, one of another version, and one that no
    recording has."""
    footer = _read_footer(content, path)
    try:
        body = content[: -footer_bytes(content)]
        if footer.sum != crc32(body) or not body.startswith(MAGIC):
            raise ValueError("another sum")
        found = msgspec.msgpack.decode(unzipped(body[len(MAGIC) :], MOST_BYTES), type=_Content)
        if len(found.recording) > MOST_FOOTER_BYTES:
            raise ValueError("too much about the recording")
        recording = msgspec.msgpack.decode(found.recording, type=RankRecording)
        tables: dict[str, Any] = unpacked(_tables_of(found.tables))
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}; {AGAIN}") from error
    return checked(RankDigest(**recording.stated(), **tables), path)


def _tables_of(stored: dict[str, dict[str, _Column]]) -> dict[str, pl.DataFrame]:
    """Raises ValueError, or what msgspec does, where they are none."""
    heights = {name: {len(each.numbers) / each.width for each in columns.values()} for name, columns in stored.items()}
    if stored.keys() != TABLES.keys() or any(len(each) != 1 for each in heights.values()):
        raise ValueError("other tables, or columns of several lengths")
    if sum(map(sum, heights.values())) > MOST_ROWS:
        raise ValueError("too many rows")
    tables: dict[str, pl.DataFrame] = {}
    for name, columns in stored.items():
        kinds = _kinds_of_gaps(columns) if name == "gaps" else TABLES[name]
        if columns.keys() != kinds.keys():
            raise ValueError("other columns")
        tables[name] = pl.DataFrame([_series(column, columns[column], kind) for column, kind in kinds.items()])
    return tables


def _kinds_of_gaps(columns: Collection[str]) -> dict[str, None]:
    """Those that gaps are packed as."""
    (rest,) = (cause for cause in IDLE_CAUSES if cause + REST in columns)
    return dict.fromkeys((*TIMES, MOMENTS, *(each for each in IDLE_CAUSES if each != rest), rest + REST))


def _series(name: str, column: _Column, kind: _Kind | None) -> pl.Series:
    numbers = np.frombuffer(column.numbers, f"<i{column.width}").astype(np.int64)
    if kind is NUMBER:
        return pl.Series(name, numbers)
    if kind is RANKS and len(column.values) > MOST_LISTED:
        raise ValueError("too many ranks")
    distinct = Annotated[list[kind.type], Meta(max_length=len(numbers))]  # type: ignore[name-defined]
    values = msgspec.msgpack.decode(column.values, type=distinct)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(values):
        raise ValueError("a value that is not there")
    if kind is RANKS and sum(np.array([len(each) for each in values], dtype=np.int64)[numbers].tolist()) > MOST_LISTED:
        raise ValueError("too many ranks")
    return pl.Series(name, values, dtype=kind.dtype).gather(numbers)


def footer_bytes(end: bytes) -> int:
    """How long a digest's footer is with what stands behind it, by the last bytes of the file."""
    return int.from_bytes(end[-END_BYTES:-8], "little") + END_BYTES


def _read_footer(end: bytes, path: str) -> _Footer:
    """Of a file's last bytes. Raises TracekitError as `read_digest` does."""
    length = footer_bytes(end)
    footer = end[-length:-END_BYTES]
    whole = len(end) >= length and end.endswith(MAGIC) and crc32(footer) == int.from_bytes(end[-8:-4], "little")
    try:
        if not whole or length > MOST_FOOTER_BYTES:
            raise ValueError("no footer")
        schema = msgspec.msgpack.decode(footer, type=_Version).schema
        if schema != SCHEMA:
            raise TracekitError(f"{path} is of another version ({schema}); {AGAIN}")
        return msgspec.msgpack.decode(footer, type=_Footer)
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}; {AGAIN}") from error


def read_origin(end: bytes, path: str) -> DigestOrigin | None:
    """What a digest was made of, by its file's last bytes. Raises TracekitError as `read_digest` does."""
    return _read_footer(end, path).origin


def read_summary(end: bytes, path: str) -> RankSummary:
    """What a fleet needs of a digest, by its file's last bytes. Raises TracekitError as `read_digest` does."""
    footer = _read_footer(end, path)
    try:
        summary = unpack(footer.summary)
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}; {AGAIN}") from error
    return checked_summary(summary, path)
