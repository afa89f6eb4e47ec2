"""Whatever digests of ranks hold: a result of plausible figures, or one line of error."""

import contextlib
import json
import resource
import time
from binascii import crc32
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given
from msgspec.structs import replace
from tests.cli.runs import invoke
from tests.fuzzing import damaged, fuzzed
from tests.ranks.fleets.grown import make_fleet
from tests.ranks.jobs import simulate

from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import END_BYTES, MAGIC, digest_bytes, footer_bytes
from tracekit.ranks.digests import COLUMNS, RankDigest
from tracekit.ranks.reading import telling
from tracekit.ranks.reading.loading import RanksReading

Document = dict[str, Any]
#: Of a summary.
ARRAYS = ("spans_ns", "compute_ns", "idle_ns", "beside_ns", "parts")
#: What one example may take; most take a hundredth of it.
MOST_SECONDS, MOST_GROWTH_MIB = 10, 400
#: Of a rank and of a collective, never negative and never more than all ranks' sums are bounded by.
OF_RANK = (
    *("span_us", "compute_us", "communication_us", "waiting_us", "transfer_us", "exposed_us", "exposed_waiting_us"),
    *("exposed_transfer_us", "idle_us", "collectives", "last_arrivals", "start_skew_us"),
)
OF_COLLECTIVE = (
    "bytes",
    "count",
    "transfer_us",
    "arrival_spread_us",
    "algbw_gbps",
    "busbw_gbps",
    "exposed_transfer_us",
)
MOST_FIGURE = 2.0**63


def opened(content: bytes) -> Document:
    """A digest's file as what JSON has, to be damaged: arrays are lists of their numbers."""
    end = footer_bytes(content)
    footer = msgspec.msgpack.decode(content[-end:-END_BYTES])
    whole = msgspec.msgpack.decode(zstandard.decompress(content[len(MAGIC) : -end]))
    summary = msgspec.msgpack.decode(zstandard.decompress(footer["summary"]))
    for columns in whole["tables"].values():
        for name, (width, numbers, values) in columns.items():
            columns[name] = [width, np.frombuffer(numbers, f"<i{width}").tolist(), values]
    for name in ARRAYS:
        shape, data = summary[name]
        summary[name] = [shape, np.frombuffer(data, "<i8").tolist()]
    return {"schema": footer["schema"], "origin": footer["origin"], "summary": summary, **whole}


def closed(document: Document) -> bytes:
    """The file again, with right sums."""
    tables, summary = document.get("tables"), document.get("summary")
    if isinstance(tables, dict):
        tables = {name: _with_bytes(columns) for name, columns in tables.items()}
    if isinstance(summary, dict):
        arrays = {name: summary[name] for name in ARRAYS if name in summary}
        summary = summary | {
            name: [each[0], _bytes(each[1], 8)] if _has(each, 2) else each for name, each in arrays.items()
        }
    return file_of(document, {"recording": document.get("recording"), "tables": tables}, summary)


def file_of(about: Document, content: object, summary: object) -> bytes:
    stated = {name: about[name] for name in ("schema", "origin") if name in about}
    body = MAGIC + _zipped(content)
    footer = _packed(stated | {"sum": crc32(body), "summary": _zipped(summary)})
    return b"".join((body, footer, len(footer).to_bytes(4, "little"), crc32(footer).to_bytes(4, "little"), MAGIC))


def _packed(document: object) -> bytes:
    try:
        return msgspec.msgpack.encode(document)
    except OverflowError:
        # A number that MessagePack does not have; this is a byte that it does not have.
        return b"\xc1"


def _zipped(document: object) -> bytes:
    """What is bytes is packed already."""
    return document if isinstance(document, bytes) else zstandard.ZstdCompressor(1).compress(_packed(document))


def _with_bytes(columns: object) -> object:
    if not isinstance(columns, dict):
        return columns
    return {
        name: [each[0], _bytes(each[1], each[0]), *each[2:]] if _has(each, 2) else each
        for name, each in columns.items()
    }


def _has(column: object, least: int) -> bool:
    return isinstance(column, list) and len(column) >= least


def _bytes(numbers: object, width: object) -> object:
    if not isinstance(numbers, list) or not all(isinstance(each, int) for each in numbers):
        return numbers
    wide = width if width in (1, 2, 4, 8) else 8
    return b"".join((int(each) % 2 ** (8 * wide)).to_bytes(wide, "little") for each in numbers)


def job() -> list[RankDigest]:
    return simulate(3, 3, lambda rank, step: 300.0 + 70 * rank, sequenced=True, host_name="host")


def fleet() -> list[RankDigest]:
    """Two ranks of one stage of a pipeline, and two of the next; of each the first step."""
    ranks = [digest for at, digest in enumerate(islice(make_fleet().digests(), 26)) if at in (0, 1, 24, 25)]
    return [first_steps(digest, 2) for digest in ranks]


def first_steps(digest: RankDigest, count: int) -> RankDigest:
    over = digest.windows[count - 1][1]
    tables = {name: getattr(digest, name).filter(pl.col("end_ns") <= over) for name in COLUMNS}
    return replace(digest, windows=digest.windows[:count], steps=digest.steps[:count], **tables)


@pytest.fixture(scope="module", params=[job, fleet])
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    """A folder of digests, and what is in that of rank 1."""
    folder = tmp_path_factory.mktemp("digests")
    for at, digest in enumerate(request.param()):
        (folder / f"rank{at}.digest").write_bytes(digest_bytes(digest))
    return folder, opened((folder / "rank1.digest").read_bytes())


def told(folder: Path) -> Document:
    """What `ranks` says of the folder in JSON. Fails unless its figures are plausible, or it said one line."""
    growth, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    result = invoke("ranks", folder, "--json", "-", "--html", folder / "page", "--force")
    assert time.monotonic() - began < MOST_SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - growth < MOST_GROWTH_MIB << 10
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise AssertionError(f"left {result.exception!r}") from result.exception
    if result.exit_code:
        assert result.exit_code == 1 and result.output.startswith("error: ") and result.output.count("\n") == 1
        return {}
    ranks: Document = json.loads(result.stdout, parse_constant=refuse)
    for each in ranks["ranks"]:
        assert all(0 <= (each[name] or 0) < MOST_FIGURE for name in OF_RANK), each
        assert each["compute_us"] + each["exposed_us"] + each["idle_us"] == pytest.approx(each["span_us"], rel=1e-6)
        assert sum(cause["us"] for cause in each["idle_causes"]) <= each["idle_us"] * (1 + 1e-9)
    for each in ranks["collectives"]:
        assert all(0 <= (each[name] or 0) < MOST_FIGURE for name in OF_COLLECTIVE), each
        assert all(it["us"] >= 0 for it in each["waiting_us"])
    return ranks


def refuse(constant: str) -> NoReturn:
    raise AssertionError(f"{constant} in the JSON")


@pytest.mark.parametrize("most_held", [64, 2])
def test_any_digest_is_a_result_or_left_out(
    jobs: tuple[Path, Document],
    most_held: int,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder, document = jobs
    monkeypatch.setattr(telling, "MOST_HELD", most_held)
    place, reading = folder / "rank1.digest", RanksReading()
    sound = place.read_bytes()
    read, names = (reading.summary, ("summary",)) if most_held == 2 else (reading.digest, ("recording", "tables"))
    place.write_bytes(closed(document))
    assert told(folder)["world"]["recorded"][1] == 1

    @fuzzed(30)
    @given(changed=damaged({name: document[name] for name in names}))
    def check(changed: Document) -> None:
        place.write_bytes(closed(document | changed))
        # What is left out is so always: a test of its own.
        with contextlib.suppress(TracekitError):
            read(str(place))
            told(folder)

    try:
        check()
    finally:
        place.write_bytes(sound)
    # Nor does a library write to the terminal what it thinks of it.
    assert not capfd.readouterr().err
