"""Digests of many recordings in one folder: whole ones are kept, bad recordings are a line each."""

import json
import shutil
from pathlib import Path

import pytest
from tests.cli.runs import assert_refused, invoke
from tests.traces import make_kernel, write_trace

from tracekit.errors import TracekitError
from tracekit.ranks.reading.digesting import UnwritableError, find_traces, make_digests, plan_digests
from tracekit.ranks.reading.loading import RanksReading, read_ranks
from tracekit.ranks.reading.recordings import find_recordings


def record_ranks(folder: Path, ranks: int = 2) -> Path:
    folder.mkdir()
    for rank in range(ranks):
        talk = make_kernel(100 + rank, 200, name="ncclDevKernel_AllReduce_Sum")
        write_trace(folder, [make_kernel(0, 100), talk]).rename(folder / f"rank{rank}.json")
    return folder


def names(places: tuple[str, ...]) -> list[str]:
    return [Path(each).name for each in places]


def test_a_folder_is_digested_once_and_bad_files_are_a_line_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    job = record_ranks(Path("job"))
    whole = (job / "rank0.json").read_text()
    (job / "rank2.json").write_text("no trace")
    (job / "rank3.json").write_text(whole[: whole.index("ncclDev")])
    (job / "rank4.json").write_text(whole[:60])
    made, again = (invoke("digest", "job", "--out", "digests") for _ in range(2))
    assert [each.exit_code for each in (made, again)] == [1, 1]
    assert made.stdout.startswith("2 digested, 0 skipped, 3 failed") and "digests" in made.stdout
    assert again.stdout.startswith("0 digested, 2 skipped, 3 failed") and again.stderr == made.stderr
    assert [each.split()[1] for each in made.stderr.splitlines()] == [f"job/rank{rank}.json" for rank in (2, 3, 4)]
    assert "cut off" in made.stderr
    assert invoke("ranks", "digests", "-q").output == invoke("ranks", "job/rank0.json", "job/rank1.json", "-q").output
    assert_refused(invoke("ranks", "digests", "--window", "whole", "-q"), "was made with other --window or --steps")
    # Alone, and as far as it goes.
    assert invoke("digest", "job/rank3.json").exit_code == 0 and Path("rank3.digest").exists()


def test_of_several_recordings_one_that_cannot_be_read_is_left_out_and_said(tmp_path: Path) -> None:
    job = record_ranks(tmp_path / "job", 3)
    (job / "rank1.json").write_text("no trace")
    told = json.loads(invoke("ranks", job, "--json", "-").stdout)
    assert told["world"]["recorded"] == [0, 2]
    (note,) = (each for each in told["notes"] if each["code"] == "unreadable")
    assert "rank1.json" in note["facts"]["reason"]
    assert_refused(invoke("ranks", job / "rank1.json"), "rank1.json")


def test_a_digest_is_made_anew_where_it_is_damaged_or_the_recording_or_the_window_has_changed(tmp_path: Path) -> None:
    job, reading = record_ranks(tmp_path / "job", ranks=3), RanksReading(cached=False)
    tasks = plan_digests(find_traces([str(job)]), str(tmp_path / "digests"))

    def come(reading: RanksReading) -> tuple[int, int]:
        came = make_digests(tasks, reading, refuse)
        assert came.bytes == sum(Path(each.place).stat().st_size for each in tasks)
        return came.made, came.kept

    assert come(reading) == (3, 0)
    digest = Path(tasks[0].place)
    digest.write_bytes(digest.read_bytes()[:-1])
    (job / "rank1.json").write_text((job / "rank1.json").read_text().replace("AllReduce", "AllGather"))
    assert come(reading) == (2, 1)
    assert come(reading) == (0, 3)
    assert come(RanksReading("whole", cached=False)) == (3, 0)


def refuse(error: TracekitError) -> None:
    raise AssertionError(error)


def test_beside_its_trace_a_digest_is_read_as_long_as_it_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = record_ranks(tmp_path / "job")
    assert invoke("digest", job, "--out", job).exit_code == 0
    found = find_recordings([str(job)])
    assert names(found) == ["rank0.json", "rank1.json"] == names(find_traces([str(job)]))
    read: list[str] = []
    monkeypatch.setattr("tracekit.ranks.reading.loading.read_digest", lambda content, place: read.append(place))
    monkeypatch.setattr("tracekit.ranks.reading.loading.read_trace", lambda place, **_: read.append(place))
    monkeypatch.setattr("tracekit.ranks.reading.loading.digest_rank", lambda *_, **__: None)
    monkeypatch.setattr("tracekit.ranks.reading.loading.checked", lambda digest, place: digest)
    monkeypatch.setattr("tracekit.ranks.reading.loading._with_rank_of_name", lambda digest, place: digest)
    for reading, kind in ((RanksReading(), "digest"), (RanksReading(steps=(1, 1)), "json")):
        read_ranks(found, reading)
        assert read == [str(job / f"rank{rank}.{kind}") for rank in (0, 1)]
        read.clear()
    (job / "rank1.json").write_text("{}")
    read_ranks(found, RanksReading())
    assert names(tuple(read)) == ["rank0.digest", "rank1.json"]


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        (("a/rank0.json", "b/rank1.json.gz"), ("rank0", "rank1")),
        (("a/rank0.json", "b/rank0.json", "b/rank1.json"), ("a-rank0", "b-rank0", "rank1")),
        (("a/x/rank0.json", "b/x/rank0.json"), ("a-x-rank0", "b-x-rank0")),
        (("rank0.json", "rank0.json.gz"), ("rank0.json", "rank0.json.gz")),
        (("s3://one/rank0.json", "s3://two/rank0.json"), ("one-rank0", "two-rank0")),
        (("rank0.json", "a/rank0.json"), ("rank0.json", "a-rank0")),
    ],
)
def test_digests_are_called_like_their_traces(sources: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert [each.place for each in plan_digests(sources, "out")] == [f"out/{name}.digest" for name in expected]


def test_patterns_and_folders_and_urls_of_this_machine_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for host in ("a", "b"):
        record_ranks(tmp_path / host)
    Path("a/notes.txt").touch()
    assert find_traces(["*/rank0*"]) == ("a/rank0.json", "b/rank0.json")
    assert find_traces(["[ab]"]) == tuple(f"{host}/rank{rank}.json" for host in "ab" for rank in (0, 1))
    assert find_traces([f"{tmp_path}/a/*"]) == find_traces([f"file://{tmp_path}/a"])
    shutil.copy("a/rank0.json", "odd[1].json")
    assert find_traces(["odd[1].json"]) == ("odd[1].json",)
    for place in ("*/nothing*", "memory://nowhere"):
        assert_refused(invoke("digest", place, "--out", "digests"), place)


def test_where_no_digest_can_be_written_the_first_says_so(tmp_path: Path) -> None:
    job = record_ranks(tmp_path / "job")
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "one.digest", "", "-"):
        assert_refused(invoke("digest", job, "--out", out), "--out")
    assert_refused(invoke("ranks", job, "--html", tmp_path / "file"), str(tmp_path / "file"))
    tasks = plan_digests(find_traces([str(job)]), str(tmp_path / "file"))
    with pytest.raises(UnwritableError, match="cannot write"):
        make_digests(tasks, RanksReading(cached=False), refuse)
