"""No report replaces anything but an older one of the same, unless --force is given; nothing is read before."""

import json
import os
import shutil
import stat
import threading
from pathlib import Path

import pytest
from tests.cli.runs import ROOT, assert_refused, edited, make_run_folder
from tests.cli.runs import invoke as run

from tracekit.cli.reporting_run import report_run
from tracekit.errors import TracekitError

KINDS = ("analyze", "compare", "traces", "several")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(kind: str, folder: Path, minute: int = 4) -> list[str]:
    """What a report is made of, and the command that makes it; `minute` is when it was measured."""
    folder.mkdir(exist_ok=True)
    names = ("one", "two", "three") if kind == "several" else ("one",)
    for name in names:
        with edited(make_run_folder(folder, name)) as manifest:
            manifest["started"] = f"2026-01-02T03:{minute:02}:05+00:00"
    if kind == "traces":
        return ["compare", *(str(folder / "one" / f"{form}-light.json") for form in ("eager", "compiled")), "--out"]
    places = [str(folder / name) for name in names]
    return ["analyze", *places, "--html"] if kind == "analyze" else ["compare", *places, "--out"]


@pytest.mark.parametrize("kind", KINDS)
def test_its_own_report_is_replaced_and_that_of_something_else_is_not(folder: Path, kind: str) -> None:
    assert_its_own_alone_is_replaced(make(kind, folder / "a"), make(kind, folder / "b", minute=5))


def assert_its_own_alone_is_replaced(command: list[str], other: list[str]) -> None:
    """Of two commands that make reports of the same form and hour, of different things."""
    assert run(*command, "notes.html").exit_code == 0
    page, twin = Path("notes.html").read_text(), Path("notes.md").read_text()
    mark = twin.splitlines()[-1].removeprefix("<!-- tracekit-report: ").removesuffix(" -->")
    assert len(mark) == 32 and f'<meta name="tracekit-report" content="{mark}">' in page[:300]
    refused = run(*other, "notes.html")
    assert_refused(refused, "the report of something else; pass --force")
    assert (Path("notes.html").read_text(), Path("notes.md").read_text()) == (page, twin)
    assert run(*other[:-1], "--force", other[-1], "notes.html").exit_code == 0
    assert run(*other, "notes.html").exit_code == 0, "its own"
    assert run(*command, "notes.html").exit_code == 1


@pytest.mark.parametrize("name", ["notes.html", "notes.md"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_report_stays_whether_it_was_named_or_not(folder: Path, kind: str, name: str) -> None:
    assert_what_is_no_report_stays(make(kind, folder / "a"), folder, name)


def assert_what_is_no_report_stays(command: list[str], folder: Path, name: str) -> None:
    Path(name).write_text("mine")
    # It is refused before anything is read: of what cannot be read nothing is said.
    for path in (folder / "a").rglob("*-light.json"):
        path.write_text("no trace")
    for asked in ("notes.html", "notes.md"):
        refused = run(*command, asked, "--json", "told.json")
        assert (refused.exit_code, f"{name} already exists" in refused.stderr) == (1, True)
        assert "--force" in refused.stderr and refused.stdout == ""
    assert Path(name).read_text() == "mine"
    assert sorted(path.name for path in folder.iterdir()) == ["a", name]


def test_the_report_that_profile_wrote_is_the_one_that_compare_writes(folder: Path) -> None:
    made = make_run_folder(folder / "traces", "one")
    for _ in range(2):
        report_run(made, None, force=False)
    assert run("compare", "traces/one").exit_code == 0
    shutil.rmtree(made)
    other = make_run_folder(folder / "traces", "one")
    with edited(other) as manifest:
        manifest["started"] = manifest["started"].replace("03:04:05", "03:04:06")
    with pytest.raises(TracekitError, match=r"one\.html .*the report of something else"):
        report_run(other, None, force=False)
    report_run(other, None, force=True)
    assert run("compare", "traces/one").exit_code == 0


@pytest.mark.parametrize("kind", ["html", "md"])
def test_what_is_to_begin_is_refused_where_either_file_is_there(folder: Path, kind: str) -> None:
    assert_refused_where_a_file_is(folder, ("profile", "mlp", "--compiled"), "mlp-compiled", kind)


def assert_refused_where_a_file_is(folder: Path, words: tuple[str, ...], name: str, kind: str) -> None:
    (folder / "reports").mkdir()
    (folder / "reports" / f"{name}.{kind}").write_text("mine")
    refused = run(*words, "--size", "tiny")
    assert_refused(refused, f"reports/{name}.{kind} already exists")
    assert "--force" in refused.stderr
    assert not (folder / "traces").exists() and not (folder / "sweeps").exists()


@pytest.mark.slow
def test_committed_reports_are_known_as_those_of_their_runs(folder: Path) -> None:
    shutil.copytree(ROOT / "reports", folder / "reports")
    result = run("compare", ROOT / "traces" / "h100-vit")
    assert result.exit_code == 0, result.stderr
    assert "Report reports/h100-vit.html" in result.stdout


#: Every option that names a file for what a command writes.
OPTIONS = [
    ("analyze", "--json"),
    ("compare", "--json"),
    ("workloads", "--json"),
    ("export", "--kernels"),
    ("export", "--gaps"),
    ("export", "--groups"),
    ("export", "--benchmark"),
]


def words(folder: Path, command: str, option: str, place: object) -> list[str]:
    read = [] if command == "workloads" else [str(make_run_folder(folder))]
    return [command, *read, option, str(place)]


@pytest.mark.parametrize(("command", "option"), OPTIONS)
def test_a_file_is_replaced_with_its_mode_a_link_followed_a_pipe_written_into_and_a_device_stays_one(
    folder: Path, command: str, option: str
) -> None:
    target, pipe, got = folder / "target", folder / "pipe", list[bytes]()
    target.write_text("old")
    target.chmod(0o600)
    (folder / "link").symlink_to(target)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()), daemon=True)
    reader.start()
    typed = words(folder, command, option, "link")
    for place in ("link", "pipe", os.devnull):
        result = run(*typed[:-1], place)
        assert result.exit_code == 0, result.output
    reader.join(60)
    assert (folder / "link").is_symlink() and stat.S_IMODE(target.stat().st_mode) == 0o600
    assert stat.S_ISFIFO(pipe.lstat().st_mode) and got == [target.read_bytes()]
    text = target.read_text()
    assert json.loads(text) if option in ("--json", "--benchmark") else "," in text.splitlines()[0]
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_two_tables_may_go_to_a_device_and_not_to_one_file(folder: Path) -> None:
    made = make_run_folder(folder)
    assert run("export", made, "--kernels", os.devnull, "--gaps", os.devnull).exit_code == 0
    gaps = "nowhere/../x.csv"
    assert_refused(run("export", made, "--kernels", "x.csv", "--gaps", gaps), "would both be written to")
    assert not (folder / "x.csv").exists()


def test_a_place_that_cannot_be_written_is_one_line(folder: Path) -> None:
    (folder / "file").write_text("")
    assert_refused(run(*words(folder, "compare", "--json", "file/below.json")), "file")
    full = Path("/dev/full")
    if full.exists():
        told = run("workloads", "--json", full)
        assert (told.exit_code, "cannot write /dev/full" in told.stderr) == (1, True)
        assert stat.S_ISCHR(full.stat().st_mode)
