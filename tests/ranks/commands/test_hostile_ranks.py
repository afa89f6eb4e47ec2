"""Files of ranks that state more than can be, or unpack to more than fits: one line each, in bounded memory."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import zstandard
from tests.cli.runs import ROOT, assert_refused, invoke
from tests.cli.test_printable import EVIL, assert_harmless
from tests.ranks.commands.test_fuzz_ranks import Document, closed, file_of, opened
from tests.ranks.jobs import simulate
from tests.traces import make_kernel

from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import MAGIC, digest_bytes, read_digest
from tracekit.ranks.summary import pack, summarise
from tracekit.ranks.summary import unpack as summary_of
from tracekit.tracefile import unpack

#: What a recording or a digest takes to be read, and some.
MOST_BYTES = 1 << 30


def record(place: Path, rank: int, size: int) -> None:
    talk = make_kernel(100 + rank, 200, name="ncclDevKernel_AllReduce_Sum", correlation=2)
    stated = {"distributedInfo": {"rank": rank, "world_size": size}, "traceEvents": [make_kernel(0, 100), talk]}
    place.write_text(json.dumps(stated))


def test_a_world_size_that_no_job_has_is_left_out(tmp_path: Path) -> None:
    for rank, size in ((0, 2), (1, 2), (2, 10**9)):
        record(tmp_path / f"rank{rank}.json", rank, size)
    told = json.loads(invoke("ranks", tmp_path, "--json", "-").stdout)
    assert told["world"]["recorded"] == [0, 1] and told["world"]["missing"] == []
    (note,) = (each for each in told["notes"] if each["code"] == "unreadable")
    assert "1,000,000,000 ranks" in note["facts"]["reason"]
    for command in (("ranks",), ("digest", "--out", str(tmp_path / "out.digest"))):
        assert_refused(invoke(*command, tmp_path / "rank2.json"), "1,000,000,000 ranks")


def test_what_steers_a_terminal_reaches_it_from_no_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / f"job{EVIL}"
    place.mkdir()
    for rank in (0, 1):
        path = place / f"rank{rank}{EVIL}.json"
        record(path, rank, 3)
        told = json.loads(path.read_text())
        slow = [make_kernel(1000, 1500 + 400 * rank, name=f"kernel{EVIL}", correlation=9)]
        path.write_text(json.dumps({**told, "hostName": EVIL, "traceEvents": [*told["traceEvents"], *slow]}))
    for words in ((), ("-v",), ("--html", f"page{EVIL}.html")):
        assert_harmless(invoke("ranks", place, *words), shows="--html" in words)
    (page,) = tmp_path.glob("page*.html")
    (twin,) = tmp_path.glob("page*.md")
    assert not {"\x1b", "\u202e"} & {*page.read_text(), *twin.read_text()}
    assert_harmless(invoke("digest", place, "--out", tmp_path / f"digests{EVIL}"))


def test_missing_ranks_are_listed_and_are_rows_from_the_first_to_the_last(tmp_path: Path) -> None:
    for rank in (0, 5000):
        record(tmp_path / f"rank{rank}.json", rank, 9000)
    told = json.loads(invoke("ranks", tmp_path, "--json", "-").stdout)
    assert told["world"]["missing_ranges"] == [[1, 4999], [5001, 8999]]
    assert told["world"]["missing"] == [*range(1, 5000), *range(5001, 9000)]


@pytest.fixture(scope="module")
def sound() -> Document:
    return opened(digest_bytes(simulate(2, 2, lambda rank, step: 300.0)[0]))


def with_column(sound: Document, table: str, rows: int, **values: object) -> bytes:
    """A digest with so many rows in a table; each column has one value."""
    column = {name: [1, bytes(rows), values.get(name, each[2])] for name, each in sound["tables"][table].items()}
    return closed(sound | {"tables": sound["tables"] | {table: column}, "summary": {}})


def zeros(count: int) -> bytes:
    """Many times 128 KiB of zeros as zstd packs them, without having them."""
    blocks = [(1 << 20 | 0b10 | (at == count - 1)).to_bytes(3, "little") + b"\0" for at in range(count)]
    return b"\x28\xb5\x2f\xfd\xe0" + (count << 17).to_bytes(8, "little") + b"".join(blocks)


def listed(packed: bytes, count: int) -> msgspec.Raw:
    """A list that has this many times, without having it."""
    return msgspec.Raw(b"\xdd" + count.to_bytes(4, "big") + packed * count)


BOMBS: dict[str, Callable[[Document], bytes]] = {
    "unpacks to two gigabytes": lambda sound: file_of(sound, zeros(1 << 14), {}),
    "its summary does": lambda sound: file_of(sound, {}, zeros(1 << 14)),
    "many rows": lambda sound: with_column(sound, "activities", 10_000_000),
    "ten billion ranks": lambda sound: with_column(sound, "collectives", 100_000, ranks=[list(range(100_000))]),
    "values of no row": lambda sound: with_column(sound, "collectives", 1, ranks=listed(b"\x90", 20_000_000)),
    "a long list of ranks": lambda sound: with_column(
        sound, "collectives", 1, ranks=msgspec.Raw(b"\x91" + bytes(listed(b"\0", 100_000_000)))
    ),
    "a large group": lambda sound: closed(
        sound | {"recording": sound["recording"] | {"groups": {"0": listed(b"\0", 150_000_000)}}, "summary": {}}
    ),
    "a footer of 4 GB": lambda sound: closed(sound)[:-12] + b"\xff" * 8 + MAGIC,
}
READ = """
import resource, sys
from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import read_digest, read_summary
resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[1]),) * 2)
for path in sys.argv[2:]:
    for read in (read_digest, read_summary):
        try:
            read(open(path, "rb").read(), path)
        except TracekitError as error:
            print(error)
"""


def test_what_unpacks_to_more_than_a_digest_has_is_one_line_in_bounded_memory(tmp_path: Path, sound: Document) -> None:
    places = []
    for name, make in BOMBS.items():
        places.append(tmp_path / f"{name}.digest")
        places[-1].write_bytes(make(sound))
    assert sum(each.stat().st_size for each in places) < 1 << 20
    read = subprocess.run(
        [sys.executable, "-c", READ, str(MOST_BYTES), *map(str, places)], cwd=ROOT, capture_output=True, text=True
    )
    assert (read.returncode, read.stderr) == (0, "")
    refused = [line.split(" is no ")[0] for line in read.stdout.splitlines()]
    assert refused == [str(each) for each in places for _ in ("digest", "summary")]


def test_no_more_columns_are_decoded_than_a_table_may_have(sound: Document) -> None:
    columns = {str(at): [1, [], None] for at in range(65)}
    with pytest.raises(TracekitError) as refused:
        read_digest(closed(sound | {"tables": {"gaps": columns}}), "rank0.digest")
    assert "length <= 64" in str(refused.value.__cause__)


def test_these_zeros_are_such() -> None:
    assert zstandard.decompress(zeros(3)) == bytes(3 << 17)


def test_a_summary_that_does_not_state_its_size_is_refused() -> None:
    content = zstandard.decompress(pack(summarise(simulate(2, 2, lambda rank, step: 300.0)[0])))
    assert summary_of(zstandard.ZstdCompressor().compress(content)).rank == 0
    with pytest.raises(ValueError, match="too large"):
        summary_of(zstandard.ZstdCompressor(write_content_size=False).compress(content))


def test_who_reads_ranks_leaves_out_what_is_no_sound_digest(tmp_path: Path) -> None:
    for at, digest in enumerate(simulate(4, 3, lambda rank, step: 300.0, sequenced=True)):
        (tmp_path / f"rank{at}.digest").write_bytes(digest_bytes(digest))
    changed = opened((tmp_path / "rank1.digest").read_bytes())
    changed["tables"]["activities"]["end_ns"][1][0] = -1
    (tmp_path / "rank1.digest").write_bytes(closed(changed))
    (tmp_path / "rank2.digest").write_bytes(b"PAR1 of an older version PAR1")
    told = json.loads(invoke("ranks", tmp_path, "--json", "-").stdout)
    assert told["world"]["recorded"] == [0, 3]
    reasons = [each["facts"]["reason"] for each in told["notes"] if each["code"] == "unreadable"]
    assert "end before they start" in reasons[0] and "no digest of this version" in reasons[1]


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_recording_that_unpacks_without_end_is_one_line(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "LIKELY_BYTES", 1 << 22)
    event = json.dumps(make_kernel(0, 5)).encode() + b","
    begun = b'{"traceEvents": [' + event
    # Events without end, and blanks: between two, in the name of one, and instead of a trace.
    for at, (begin, more) in enumerate(((begun, event), (begun, b" "), (begun + b'{"name": "', b" "), (b"", b" "))):
        content = begin + more * ((8 << 20) // len(more))
        place = tmp_path / f"rank{at}.json.{ending}"
        place.write_bytes(gzip.compress(content) if ending == "gz" else zstandard.compress(content))
        for command in (("ranks",), ("digest", "--out", str(tmp_path / "out.digest"))):
            assert_refused(invoke(*command, place), place.name)
    assert not (tmp_path / "out.digest").exists()
