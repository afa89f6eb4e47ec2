import errno
import gzip
import os
import random
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracekit import files
from tracekit.errors import TracekitError
from tracekit.files import read_bounded, replaced, unpack_gzip, write_named, write_replaced


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_within_the_bound_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bounded(tmp_path / "a", 5) == b"12345"
    with pytest.raises(TracekitError, match="larger"):
        read_bounded(tmp_path / "a", 4)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zeros").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "zeros", "folder"):
        with pytest.raises(TracekitError, match="regular file"):
            read_bounded(tmp_path / name, 1000)


def test_a_file_that_unpacks_to_more_than_may_be_held_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(10_000_000)))
    with pytest.raises(TracekitError, match="unpacks to more"):
        unpack_gzip(path, 1_000_000, 9_999_999)
    assert len(unpack_gzip(path, 1_000_000, 10_000_000)) == 10_000_000


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-5], lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:], lambda b: b"no gzip"]
)
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(damage(gzip.compress(random.Random(0).randbytes(1000))))  # type: ignore[operator]
    with pytest.raises(TracekitError, match="gzip file"):
        unpack_gzip(path, 10_000, 10_000)


def test_a_link_is_replaced_and_not_followed_where_tracekit_chose_the_name(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "report").symlink_to(victim)
    write_replaced(tmp_path / "report", b"new")
    assert victim.read_text() == "precious"
    assert not (tmp_path / "report").is_symlink()


def test_a_link_that_the_user_named_is_followed(tmp_path: Path) -> None:
    (tmp_path / "report").symlink_to(tmp_path / "target")
    write_named(tmp_path / "report", b"new")
    assert (tmp_path / "target").read_bytes() == b"new"
    assert (tmp_path / "report").is_symlink()


def test_a_pipe_and_a_device_are_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_named(pipe, b"through the pipe")
    reader.join(60)
    assert got == [b"through the pipe"]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    # As a shell names its `>(...)`.
    reading, writing = os.pipe()
    write_named(Path(f"/dev/fd/{writing}"), b"handed over")
    assert os.read(reading, 100) == b"handed over"
    for handle in (reading, writing):
        os.close(handle)
    write_named(Path(os.devnull), b"gone")
    assert stat.S_ISCHR(Path(os.devnull).lstat().st_mode)


def test_a_write_that_fails_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="new") as raised, replaced(tmp_path / "new"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert raised.value.filename == str(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


def test_modes_follow_the_umask_and_a_private_file_stays_private(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_replaced(tmp_path / "new", b"1")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "new") == 0o640
    (tmp_path / "new").chmod(0o600)
    write_replaced(tmp_path / "new", b"2")
    assert mode_of(tmp_path / "new") == 0o600


def test_after_an_error_what_was_there_is_there_and_no_draft(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), replaced(path) as file:  # noqa: PT012
        file.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_writers_at_once_do_not_share_a_draft_and_readers_see_no_half(tmp_path: Path) -> None:
    path = tmp_path / "file"
    contents = [bytes([number]) * 100_000 for number in range(16)]
    write_replaced(path, contents[0])
    with ThreadPoolExecutor(16) as threads:
        writes = [threads.submit(write_replaced, path, content) for content in contents * 4]
        while not all(each.done() for each in writes):
            assert path.read_bytes() in contents
    assert path.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_has_a_name_that_nobody_can_foresee(tmp_path: Path) -> None:
    names: set[str] = set()
    for _ in range(3):
        with replaced(tmp_path / "file"):
            names |= {path.name for path in tmp_path.iterdir()} - {"file"}
    assert len(names) == 3


def test_a_name_of_the_longest_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120 + "x" * 15)
    write_replaced(path, b"1")
    assert path.read_bytes() == b"1"


#: Prints numbered lines of a kilobyte.
CHATTER = "for i in range(int({})): print(f'{{i:06}}', 'x' * 1016, flush=i % 100 == 0)"


def chatter(path: Path, lines: int) -> None:
    with path.open("ab") as file:
        subprocess.run([sys.executable, "-c", CHATTER.format(lines)], stdout=file, check=True)


def test_of_a_long_log_both_ends_are_kept_and_what_is_missing_is_said_between(tmp_path: Path) -> None:
    log = files.LogFile(tmp_path / "output.log")
    log.cut()
    for lines in (3000, 6000, 6000):
        chatter(tmp_path / "output.log", lines)
        log.cut()
    content = (tmp_path / "output.log").read_bytes()
    assert len(content) < files.MOST_LOG_BYTES and content.startswith(b"000000 ") and content.endswith(b"x\n")
    (said,) = (line for line in content.splitlines() if line.startswith(b"... tracekit left out"))
    assert content.index(said) < files.LOG_END_BYTES + 10
    assert content.rstrip().splitlines()[-1].startswith(b"005999 ")
    left_out = int(said.split()[5].replace(b",", b""))
    assert abs(left_out - (15_000 * 1024 - 2 * files.LOG_END_BYTES)) < 1000


def test_a_log_is_cut_while_others_print_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LOG_SECONDS", 0.01)
    path = tmp_path / "output.log"
    with files.log_bounded(path):
        with path.open("ab") as file:
            process = subprocess.Popen([sys.executable, "-c", CHATTER.format(1e9)], stdout=file)
        try:
            until = time.monotonic() + 60
            while not (path.exists() and b"left out" in path.read_bytes()) and time.monotonic() < until:
                time.sleep(0.01)
        finally:
            process.kill()
            process.wait()
    content = path.read_bytes()
    assert b"left out" in content and content.startswith(b"000000 ") and len(content) <= files.MOST_LOG_BYTES
