"""A rank's digest as one Parquet file, of a versioned schema: tables below each other, what is no table in the file's
metadata."""

import io
from typing import Any

import msgspec
import polars as pl
import zstandard
from msgspec import Struct, field

from tracekit.errors import TracekitError
from tracekit.model.ranks import DigestOrigin, RankDigest, RankSummary
from tracekit.ranks.digest_packing import packed, unpacked
from tracekit.ranks.summary import pack, summarise, unpack

#: To be raised when the tables, or how they are filled, change.
SCHEMA = "tracekit.digest/5"
TABLES = ("activities", "collectives", "gaps", "places")
#: What a Parquet file begins with.
MAGIC = b"PAR1"


class _About(Struct, frozen=True):
    """All of a digest but its tables."""

    schema: str
    path: str
    rank: int | None
    world_size: int | None
    host_name: str | None
    device_name: str | None
    origin_ns: int
    first_ns: int
    groups: dict[str, tuple[int, ...]]
    window: str
    windows: tuple[tuple[int, int], ...]
    skipped: int
    truncated: bool
    columns: dict[str, list[str]]
    # What digests of older versions lack.
    device: int | None = None
    steps: tuple[int, ...] = ()
    purposes: dict[str, str] = field(default_factory=dict)


class _Version(msgspec.Struct):
    schema: str


class _MadeOf(Struct, frozen=True):
    schema: str
    origin: DigestOrigin


def digest_bytes(digest: RankDigest, origin: DigestOrigin | None = None) -> bytes:
    """The file's content; with the origin it is known again as that of a recording."""
    tables = packed({name: getattr(digest, name) for name in TABLES})
    plain = {name: getattr(digest, name) for name in _About.__annotations__ if name not in ("schema", "columns")}
    about = _About(schema=SCHEMA, columns={name: table.columns for name, table in tables.items()}, **plain)
    labelled = [table.with_columns(table=pl.lit(name)) for name, table in tables.items()]
    every = pl.concat(labelled, how="diagonal")
    content = io.BytesIO()
    metadata = {"tracekit": msgspec.json.encode(about).decode(), "summary": pack(summarise(digest))}
    if origin is not None:
        metadata["origin"] = msgspec.json.encode(_MadeOf(SCHEMA, origin)).decode()
    every.write_parquet(content, compression="zstd", metadata=metadata)
    return content.getvalue()


def read_digest(content: bytes, path: str) -> RankDigest:
    """The digest of a file's content. Raises TracekitError for another file, and for one of another version."""
    try:
        stated = pl.read_parquet_metadata(io.BytesIO(content)).get("tracekit", "")
        about = msgspec.json.decode(stated, type=_About)
        every = pl.read_parquet(io.BytesIO(content))
    except (msgspec.MsgspecError, pl.exceptions.PolarsError, OSError) as error:
        raise TracekitError(
            f"{path} is no digest of tracekit, or is damaged; make it again: tracekit digest"
        ) from error
    if about.schema != SCHEMA:
        raise TracekitError(f"{path} is of another version ({about.schema}); make it again: tracekit digest")
    tables: dict[str, Any] = unpacked(
        {name: every.filter(pl.col("table") == name).select(about.columns[name]) for name in TABLES}
    )
    plain = {name: getattr(about, name) for name in _About.__annotations__ if name not in ("schema", "columns")}
    return RankDigest(**plain, **tables)


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
        schema = msgspec.json.decode(metadata.get("tracekit", ""), type=_Version).schema
        if schema != SCHEMA:
            raise TracekitError(f"{path} is of another version ({schema}); make it again: tracekit digest")
        return unpack(metadata.get("summary", ""))
    except (msgspec.MsgspecError, zstandard.ZstdError, ValueError, pl.exceptions.PolarsError, OSError) as error:
        raise TracekitError(
            f"{path} is no digest of tracekit, or is damaged; make it again: tracekit digest"
        ) from error
