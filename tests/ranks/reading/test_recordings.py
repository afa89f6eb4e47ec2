"""Real recordings of many ranks, whose figures a plain oracle worked out (tests/data/README.md)."""

import csv
import gzip
import io
import json
import shutil
from pathlib import Path

import polars as pl
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace
from tests.cli.runs import assert_refused, invoke, make_run_folder
from tests.ranks.recorded import DATA, unpack, unpack_dlrm
from tests.traces import make_kernel, write_trace

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.run import RankOfRun
from tracekit.ranks.digest_file import digest_bytes, read_digest
from tracekit.ranks.digests import RankDigest
from tracekit.ranks.listing import PART_SCHEMA
from tracekit.ranks.reading import many_files
from tracekit.ranks.reading.loading import RanksReading, read_ranks
from tracekit.ranks.reading.recordings import are_ranks, find_recordings, is_run_of_ranks, with_operators
from tracekit.ranks.statements.notes import RankTwice
from tracekit.ranks.telling import join_ranks
from tracekit.report.contract import schema
from tracekit.report.thirty_lines import MOST_LINES


@pytest.fixture(scope="module")
def digests(tmp_path_factory: pytest.TempPathFactory) -> list[RankDigest]:
    """Of the recordings of eight ranks."""
    folder = unpack_dlrm(tmp_path_factory.mktemp("recorded"))
    return [*read_ranks(find_recordings([str(folder)]), RanksReading(cached=False)).values()]


@pytest.fixture(scope="module")
def dlrm(digests: list[RankDigest], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these digests, which stand for the recordings and are read sooner."""
    folder = tmp_path_factory.mktemp("dlrm")
    for each in digests:
        (folder / f"rank{each.rank}.digest").write_bytes(digest_bytes(each))
    return folder


def test_the_waits_of_eight_ranks_are_those_of_the_oracle_and_a_digest_says_the_same(
    digests: list[RankDigest],
) -> None:
    told = join_ranks(digests)
    oracle = (5580, 11125, 3280, 9571, 6370, 6041, 3342, 1534)
    assert [each.waiting_us for each in told.ranks] == pytest.approx(oracle, abs=1)
    assert [each.last_arrivals for each in told.ranks] == [0, 0, 0, 0, 1, 2, 0, 5]
    assert told.clock.basis == "one_host" and told.world.size == 8 and not told.world.missing
    assert not [each for each in told.findings if each.code == "late_rank"]
    assert join_ranks([read_digest(digest_bytes(each), each.path) for each in digests]) == told


def test_a_digest_stands_for_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "digests").mkdir()
    for rank in (0, 1):
        made = invoke(
            "digest",
            str(DATA / f"tp_reduce-overhead.rank{rank}.json.gz"),
            "--out",
            f"digests/rank{rank}.digest",
        )
        assert made.exit_code == 0, made.output
    of_traces, of_digests = (invoke("ranks", str(place), "-q").output for place in (DATA, "digests"))
    assert of_traces == of_digests


def test_collectives_of_cuda_graphs_are_matched_by_order() -> None:
    told = join_ranks([*read_ranks(find_recordings([str(DATA)]), RanksReading("whole", cached=False)).values()])
    first, second = told.ranks
    assert (first.waiting_us, first.transfer_us, first.last_arrivals) == pytest.approx((69.3, 321.1, 13), abs=0.06)
    assert (second.waiting_us, second.transfer_us, second.last_arrivals) == pytest.approx((21.6, 321.3, 23), abs=0.06)
    assert (first.compute_us, second.compute_us) == pytest.approx((1030.3, 1040.8), abs=0.06)
    assert {each.matched_by for each in told.collectives} == {"order"}


def test_the_command_tells_it_in_thirty_lines_as_json_and_as_a_page(
    dlrm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    told = invoke("ranks", str(dlrm), "--json", str(tmp_path / "out.json"), "--html", str(tmp_path / "pages"))
    assert told.exit_code == 0, told.output
    assert len(told.output.splitlines()) <= MOST_LINES
    assert max(map(len, told.output.splitlines())) <= 100 + len(str(tmp_path))
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["schema"] == "tracekit.ranks/1"
    # The contract's keys; there may be more.
    assert set(document) >= {
        "world",
        "clock",
        "steps",
        "ranks",
        "collectives",
        "late",
        "unmatched",
        "findings",
        "warnings",
    }
    assert set(document["collectives"][0]) >= {"class", "arrival_spread_us", "late_ranks", "waiting_us", "busbw_gbps"}
    Draft202012Validator(schema("ranks")).validate(document)
    (page,) = (tmp_path / "pages").glob("*.html")
    assert page.with_suffix(".md").exists() and "<table" in page.read_text()
    everything = invoke("ranks", str(dlrm), "-v")
    assert len(everything.output.splitlines()) > len(told.output.splitlines())


def test_the_json_holds_each_single_collective_where_that_is_asked_for(dlrm: Path) -> None:
    asked = (("ranks", str(dlrm), "--collectives", which, "--json", "-") for which in ("kinds", "all"))
    kinds, every = (json.loads(invoke(*each).stdout) for each in asked)
    Draft202012Validator(schema("ranks")).validate(every)
    single = every["collectives"]
    # As an oracle found them (tests/data/README.md).
    assert [each["last_rank"] for each in single] == [7, 7, 7, 7, 7, 5, 5, 4]
    assert {key for each in kinds["collectives"] for key in each} < set(single[0]) == set(every["worst"][0])
    assert {**every, "collectives": None} == {**kinds, "collectives": None}
    for rank in every["ranks"]:
        parts = [part for each in single for part in each["parts"] if part["rank"] == rank["rank"]]
        assert sum(part["waiting_us"] for part in parts) == pytest.approx(rank["waiting_us"])
        assert sum(part["transfer_us"] for part in parts) == pytest.approx(rank["transfer_us"])
    for each in single:
        arrivals = {part["rank"]: part["start_us"] for part in each["parts"]}
        assert min(arrivals.values()) == each["start_us"]
        assert max(arrivals, key=lambda rank: arrivals[rank]) == each["last_rank"]
    refused = invoke("ranks", str(dlrm), "--collectives", "all")
    assert refused.exit_code == 1 and "--json" in refused.output


def test_ranks_open_as_one_trace_that_is_no_recording_of_a_rank(tmp_path: Path) -> None:
    pair = [shutil.copy(each, tmp_path) for each in sorted(DATA.glob("tp_*.json.gz"))]
    before = invoke("ranks", str(tmp_path)).output
    opened = invoke("open", str(tmp_path), "--no-serve")
    assert opened.exit_code == 0, opened.output
    merged = tmp_path / "perfetto-ranks.json.gz"
    events = json.loads(gzip.decompress(merged.read_bytes()))["traceEvents"]
    processes = [each["args"]["name"] for each in events if each["name"] == "process_name"]
    assert [each.partition(",")[0] for each in processes] == ["rank 0", "rank 1"]
    assert {each["ph"] for each in events} >= {"X", "s", "f"}
    assert invoke("ranks", str(tmp_path)).output == before
    # Two files of different ranks are ranks, and no A and B.
    invoke("open", *pair, "--no-serve", "--out", str(tmp_path / "two.json.gz"))
    exported = invoke("export", str(tmp_path), "--perfetto", str(tmp_path / "three.json.gz"))
    assert exported.exit_code == 0, exported.output
    assert merged.read_bytes() == (tmp_path / "two.json.gz").read_bytes() == (tmp_path / "three.json.gz").read_bytes()


def test_a_recording_that_cannot_be_read_is_left_out_wherever_ranks_are_read(tmp_path: Path) -> None:
    for rank in (0, 1):
        talk = make_kernel(100 + rank, 200, name="ncclDevKernel_AllReduce_Sum")
        write_trace(tmp_path, [make_kernel(0, 100), talk]).rename(tmp_path / f"rank{rank}.json")
    for rank in (2, 3):
        (tmp_path / f"rank{rank}.json").write_text("no trace")
    drawn, table = tmp_path / "drawn.json.gz", tmp_path / "table.csv"
    commands = (("ranks",), ("open", "--no-serve", "--out", str(drawn)), ("export", "--collectives", str(table)))
    for command, *options in commands:
        told = invoke(command, str(tmp_path), *options)
        assert told.exit_code == 0, told.output
        # A line may break within a name.
        output = "".join(told.output.split())
        assert "rank2.json" in output and "rank3.json" not in output
    assert len(invoke("ranks", str(tmp_path), "-q").stdout.splitlines()) <= 4
    events = json.loads(gzip.decompress(drawn.read_bytes()))["traceEvents"]
    names = [each["args"]["name"] for each in events if each["name"] == "process_name"]
    assert [each.partition(",")[0] for each in names] == ["rank 0", "rank 1"]
    assert {row["rank"] for row in csv.DictReader(table.open())} == {"0", "1"}
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.json").write_text("no trace")
    for command, *options in commands:
        assert_refused(invoke(command, str(tmp_path), *options), "rank0.json")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("open", "{ranks}", "--form", "eager"), "--form"),
        (("open", "{ranks}", "{ranks}", "{ranks}"), "folder"),
        (("export", "{ranks}", "--collectives", "c.csv", "--kernels", "k.csv"), "take one trace"),
        (("export", "{one}", "--collectives", "c.csv"), "several ranks"),
        (("export", "{ranks}", "--perfetto", "p.json.gz", "--collectives", "-"), "standard output"),
        (("export", "{one}", "{one}", "{one}", "--groups", "g.csv"), "too many"),
        (("analyze", "{ranks}"), "tracekit ranks"),
        (("compare", "{ranks}"), "tracekit ranks"),
    ],
)
def test_what_cannot_be_asked_of_ranks_is_refused_in_one_line(arguments: tuple[str, ...], said: str) -> None:
    places = {"ranks": str(DATA), "one": str(DATA / "tp_reduce-overhead.rank0.json.gz")}
    assert_refused(invoke(*(each.format(**places) for each in arguments)), said)


def test_the_table_of_collectives_has_a_row_for_each_rank(dlrm: Path, tmp_path: Path) -> None:
    table = invoke("export", str(dlrm), "--collectives", "-")
    assert table.exit_code == 0, table.output
    rows = list(csv.DictReader(io.StringIO(table.stdout)))
    assert [(row["collective"], row["rank"]) for row in rows] == [
        (str(k), str(n)) for k in range(1, 9) for n in range(8)
    ]
    assert [int(row["last_rank"]) for row in rows[::8]] == [7, 7, 7, 7, 7, 5, 5, 4]
    assert {row["step"] for row in rows} == {"10"}
    assert invoke("export", str(dlrm), "--collectives", str(tmp_path / "c.parquet")).exit_code == 0
    first = map(str, sorted(dlrm.iterdir())[:3])
    few = invoke("export", *first, "--collectives", str(tmp_path / "f.csv"))
    assert (few.exit_code, few.stdout.count("\n")) == (0, 1) and few.stderr.startswith("note: ")
    kept = pl.read_parquet(tmp_path / "c.parquet")
    assert kept.columns == list(PART_SCHEMA) == list(rows[0])
    assert (kept["waiting_us"] + kept["transfer_us"]).to_list() == pytest.approx(kept["duration_us"].to_list())


def test_workers_read_what_one_process_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = find_recordings([str(DATA)])
    reading = RanksReading("whole", cached=False)
    alone = [digest_bytes(each) for each in read_ranks(places, reading).values()]
    monkeypatch.setattr(many_files, "WORTH_A_PROCESS_BYTES", 0)
    monkeypatch.setattr(many_files, "usable_cores", lambda: 2)
    assert [digest_bytes(each) for each in read_ranks(places, reading).values()] == alone
    (tmp_path / "rank2.json").write_text("no trace")
    with pytest.raises(TracekitError, match="is not a trace"):
        read_ranks([*places, str(tmp_path / "rank2.json")], reading)


def test_ranks_are_told_by_their_files_names_where_recordings_do_not_say(tmp_path: Path) -> None:
    for rank in (3, 11):
        talk = make_kernel(100 + rank, 200, name="ncclDevKernel_AllReduce_Sum")
        write_trace(tmp_path, [make_kernel(0, 100), talk]).rename(tmp_path / f"job_rank{rank}_step_2.json")
    (tmp_path / "settings.json").write_text("{}")
    digests = [*read_ranks(find_recordings([str(tmp_path)]), RanksReading(cached=False)).values()]
    assert [each.rank for each in digests] == [3, 11]
    assert [each.waiting_us for each in join_ranks(digests).ranks] == [8, 0]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "has no traces"),
        (lambda folder: (folder / "rank0.json").write_text("no trace"), "is not a trace"),
        (lambda folder: write_trace(folder, []).rename(folder / "rank0.json"), "has no events"),
        (lambda folder: (folder / "rank0.digest").write_bytes(b"PAR1 and no more"), "no digest"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, make: object, said: str) -> None:
    make(tmp_path)  # type: ignore[operator]
    told = invoke("ranks", str(tmp_path))
    assert told.exit_code == 1
    assert said in told.output and len(told.output.strip().splitlines()) == 1


def test_in_a_folder_of_two_jobs_what_is_left_out_is_named(tmp_path: Path) -> None:
    kernel = make_kernel(0, 5, name="ncclDevKernel_AllReduce", correlation=1)
    for name, rank in (("a-rank0", 0), ("a-rank1", 1), ("b-rank0", 0), ("other", 1)):
        stated = {"distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": [kernel]}
        (tmp_path / f"{name}.json").write_text(json.dumps(stated))
    (tmp_path / "settings.json").write_text("{}")
    found = find_recordings([str(tmp_path)])
    assert [Path(each).stem for each in found] == ["a-rank0", "b-rank0", "a-rank1", "other"]
    notes = join_ranks([*read_ranks(found, RanksReading(cached=False)).values()]).notes
    assert {Path(each.subject).stem for each in notes if isinstance(each, RankTwice)} == {"b-rank0", "other"}


def test_of_a_run_of_ranks_the_recordings_of_one_form_are_found(tmp_path: Path) -> None:
    folder = make_run_folder(tmp_path)
    with pytest.raises(TracekitError, match="a run of one process"):
        find_recordings([str(folder)])
    other = make_run_folder(tmp_path, "other").rename(folder / "rank1")
    run = store.load(folder)
    ranks = tuple(RankOfRun(rank, "host", None, place, ()) for rank, place in ((0, None), (1, "rank1")))
    store.save(replace(run, ranks=ranks), folder)
    assert find_recordings([str(folder)]) == (f"{folder}/compiled-rich.json", f"{other}/compiled-rich.json")
    assert find_recordings([str(folder)], "eager") == (f"{folder}/eager-rich.json", f"{other}/eager-rich.json")
    assert with_operators([str(folder)], "eager") and not with_operators([str(other)], None)
    # Without a form it opens as a run does: its variants beside each other.
    assert is_run_of_ranks([str(folder)]) and not are_ranks([str(folder)]) and not is_run_of_ranks([str(other)])
    with pytest.raises(TracekitError, match="--form is for run folders"):
        find_recordings([str(tmp_path)], "eager")


@pytest.mark.parametrize(
    ("job", "planted_us", "is_late"), [("tp-graphed-gpu_250", 250, True), ("ddp-eager-gpu_1000", 1000, False)]
)
def test_the_rank_with_a_planted_kernel_is_found(job: str, planted_us: float, is_late: bool, tmp_path: Path) -> None:
    unpack("shared_gpu", tmp_path)
    told = join_ranks([*read_ranks(find_recordings([str(tmp_path / job)]), RanksReading(cached=False)).values()])
    found = {each.code: each for each in told.findings}
    more, late = found["uneven_work"], found.get("late_rank")
    assert (more.rank, more.facts["count"], more.facts["usual_count"]) == (1, 3, 0)
    assert "spin_kernel" in more.facts["kernel"]
    assert more.saving_us == pytest.approx(told.steps.count * planted_us, rel=0.02)
    # Hosts of the other job are later than that, by themselves.
    assert (late is not None) is is_late
    if late:
        assert (late.rank, late.facts["cause"]) == (1, "compute") and "spin_kernel" in late.facts["where"]
