"""A rank's digest as one file of a versioned schema: the digest, packed, and behind it a footer with what is read of a
thousand of them.

A file may come from anybody. Its sizes are known before anything is unpacked, types and ranges are checked as it is
decoded (`tracekit/model/bounded.py`), and what no type says in `fault.py`.
"""

from binascii import crc32
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
import zstandard
from msgspec import Meta, Struct

from tracekit.errors import TracekitError
from tracekit.ranks.digests import COLUMNS, DigestOrigin, Rank, RankDigest, RankRecording, RankSummary, schema_of
from tracekit.ranks.fault import checked
from tracekit.ranks.summary import pack, summarise, unpack, unzipped

#: To be raised when the tables, or how they are filled, change.
SCHEMA = "tracekit.digest/12"
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
#: What one column's values are when they are lists.
RANKS = tuple[Rank, ...]


class _Column(Struct, frozen=True, array_like=True):
    """A column: its numbers, each of so many bytes, and the distinct values that they are the places of; None where the
    numbers are the values."""

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
    tables = {name: getattr(digest, name) for name in COLUMNS}
    columns = {
        name: {column.name: _packed(column, COLUMNS[name][column.name]) for column in _as_differences(table)}
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


def _as_differences(table: pl.DataFrame) -> pl.DataFrame:
    """With times that pack well: a row starts so much after the one before has ended."""
    start, end = pl.col("start_ns"), pl.col("end_ns")
    ready = [pl.col(name) - start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start - end.shift(fill_value=0), end - start, *ready)


def _as_times(table: pl.DataFrame) -> pl.DataFrame:
    start = (pl.col("start_ns") + pl.col("end_ns").shift(fill_value=0)).cum_sum()
    ready = [pl.col(name) + start for name in table.columns if name == "ready_ns"]
    return table.with_columns(start, pl.col("end_ns") + start, *ready)


def _packed(column: pl.Series, kind: object) -> _Column:
    values, numbers = None, column
    if kind is not int:
        places: dict[Any, int] = {}
        rows = (tuple(each) if isinstance(each, list) else each for each in column.to_list())
        numbers = pl.Series([places.setdefault(each, len(places)) for each in rows], dtype=pl.Int64)
        values = [*places]
    least = numbers.cast(pl.Int64).shrink_dtype().to_numpy()
    return _Column(least.itemsize, least.tobytes(), msgspec.Raw(msgspec.msgpack.encode(values)))  # type: ignore[arg-type]


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
        tables: dict[str, Any] = _tables_of(found.tables)
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}; {AGAIN}") from error
    return checked(RankDigest(**recording.stated(), **tables), path)


def _tables_of(stored: dict[str, dict[str, _Column]]) -> dict[str, pl.DataFrame]:
    """Raises ValueError, or what msgspec does, where they are none."""
    if {name: {*columns} for name, columns in stored.items()} != {name: {*kinds} for name, kinds in COLUMNS.items()}:
        raise ValueError("other tables or columns")
    heights = [{len(each.numbers) / each.width for each in columns.values()} for columns in stored.values()]
    if any(len(each) != 1 for each in heights) or sum(map(sum, heights)) > MOST_ROWS:
        raise ValueError("columns of several lengths, or too many rows")
    return {name: _as_times(pl.DataFrame(_unpacked(name, stored[name]))) for name in COLUMNS}


def _unpacked(table: str, columns: dict[str, _Column]) -> Iterator[pl.Series]:
    for (name, dtype), kind in zip(schema_of(table).items(), COLUMNS[table].values(), strict=True):
        column = columns[name]
        numbers = np.frombuffer(column.numbers, f"<i{column.width}").astype(np.int64)
        if kind is int:
            yield pl.Series(name, numbers)
            continue
        if kind == RANKS and len(column.values) > MOST_LISTED:
            raise ValueError("too many ranks")
        distinct = Annotated[list[kind], Meta(max_length=len(numbers))]  # type: ignore[valid-type]
        values = msgspec.msgpack.decode(column.values, type=distinct)
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < len(values):
            raise ValueError("a value that is not there")
        if kind == RANKS and sum(np.array([len(each) for each in values])[numbers].tolist()) > MOST_LISTED:
            raise ValueError("too many ranks")
        yield pl.Series(name, values, dtype=dtype).gather(numbers)


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
    return checked(summary, path)
