"""A rank's digest as one Parquet file, of a versioned schema: tables below each other, what is no table in the file's
metadata."""

import io
from binascii import crc32
from typing import Any

import msgspec
import polars as pl
import zstandard
from msgspec import Struct

from tracekit.errors import TracekitError
from tracekit.model.digests import DigestOrigin, RankDigest, RankRecording, RankSummary
from tracekit.ranks.digest_packing import packed, unpacked
from tracekit.ranks.summary import pack, summarise, unpack

#: To be raised when the tables, or how they are filled, change.
SCHEMA = "tracekit.digest/9"
TABLES = ("activities", "collectives", "gaps", "places")
#: Of zstd: what is written once is read often.
LEVEL = 19
#: What a Parquet file begins with.
MAGIC = b"PAR1"
#: What reading another file, or a damaged one, raises.
DAMAGE = (
    msgspec.MsgspecError,
    zstandard.ZstdError,
    pl.exceptions.PolarsError,
    OSError,
    ValueError,
    LookupError,
    pl.exceptions.PanicException,
)
#: Stands for the sum while it is taken.
UNKNOWN_SUM = b"crc32:00000000"
NO_DIGEST = "is no digest of tracekit, or is damaged; make it again: tracekit digest"


class _Version(Struct, frozen=True, kw_only=True):
    schema: str


class _About(RankRecording, frozen=True, kw_only=True):
    """All of a digest but its tables."""

    schema: str
    columns: dict[str, list[str]]


class _MadeOf(_Version, frozen=True, kw_only=True):
    origin: DigestOrigin


def digest_bytes(digest: RankDigest, origin: DigestOrigin | None = None) -> bytes:
    """The file's content; with the origin it is known again as that of a recording."""
    tables = packed({name: getattr(digest, name) for name in TABLES})
    columns = {name: table.columns for name, table in tables.items()}
    about = _About(schema=SCHEMA, columns=columns, **digest.stated())
    labelled = [table.with_columns(table=pl.lit(name)) for name, table in tables.items()]
    every = pl.concat(labelled, how="diagonal")
    metadata = {"tracekit": msgspec.json.encode(about).decode(), "summary": pack(summarise(digest))}
    if origin is not None:
        metadata["origin"] = msgspec.json.encode(_MadeOf(schema=SCHEMA, origin=origin)).decode()
    content = io.BytesIO()
    metadata["sum"] = UNKNOWN_SUM.decode()
    every.write_parquet(content, compression="zstd", compression_level=LEVEL, statistics=False, metadata=metadata)
    whole = content.getvalue()
    return whole.replace(UNKNOWN_SUM, f"crc32:{crc32(whole):08x}".encode())


def _is_whole(content: bytes) -> bool:
    """Parquet has no sums: of a damaged file it would give other figures."""
    stated = content[content.rfind(UNKNOWN_SUM[:6]) :][: len(UNKNOWN_SUM)]
    return stated == f"crc32:{crc32(content.replace(stated, UNKNOWN_SUM)):08x}".encode()


def read_digest(content: bytes, path: str) -> RankDigest:
    """The digest of a file's content. Raises TracekitError for another file, and for one of another version."""
    try:
        metadata = pl.read_parquet_metadata(io.BytesIO(content))
        about = msgspec.json.decode(metadata.get("tracekit", ""), type=_About)
        _check_version(about, path)
        if not _is_whole(content):
            raise ValueError("another sum")
        every = pl.read_parquet(io.BytesIO(content))
        tables: dict[str, Any] = unpacked(
            {name: every.filter(pl.col("table") == name).select(about.columns[name]) for name in TABLES}
        )
        return RankDigest(**about.stated(), **tables)
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}") from error


def _check_version(made: _Version | _About, path: str) -> None:
    if made.schema != SCHEMA:
        raise TracekitError(f"{path} is of another version ({made.schema}); make it again: tracekit digest")


def footer_bytes(end: bytes) -> int:
    """How long a Parquet file's footer is, by the last bytes of the file."""
    return int.from_bytes(end[-8:-4], "little") + 8


def read_origin(footer: bytes) -> DigestOrigin | None:
    """What a digest was made of, by its file's footer; None for another file, a damaged one, and one of another
    version."""
    try:
        made_of = msgspec.json.decode(pl.read_parquet_metadata(io.BytesIO(footer)).get("origin", ""), type=_MadeOf)
    except (msgspec.MsgspecError, pl.exceptions.PolarsError, OSError):
        return None
    return made_of.origin if made_of.schema == SCHEMA else None


def read_summary(footer: bytes, path: str) -> RankSummary:
    """What a fleet needs of a digest, by its file's footer. Raises TracekitError as `read_digest` does."""
    try:
        metadata = pl.read_parquet_metadata(io.BytesIO(footer))
        _check_version(msgspec.json.decode(metadata.get("tracekit", ""), type=_Version), path)
        return unpack(metadata.get("summary", ""))
    except DAMAGE as error:
        raise TracekitError(f"{path} {NO_DIGEST}") from error
