import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.cli.runs import make_run_folder
from tests.sequences import make_sequence, product
from tests.sides import make_environment, make_form, make_run, make_settings, make_side

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model.comparison import Side
from tracekit.reading import pairs, reports
from tracekit.reading.pairs import name_side, refuse_side_by_side, refuse_to_gate, short_names, with_operators_of
from tracekit.reading.traces import Reading
from tracekit.report.marks import find_mark
from tracekit.store import Ways

OURS, OTHERS = "0" * 31 + "1", "0" * 31 + "2"
PAGE = '<!doctype html>\n<html>\n<head>\n<meta charset="utf-8">\n</head>'
Write = Callable[..., tuple[Path, Path]]


@pytest.fixture
def write(monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setattr("tracekit.report.page.page_of", lambda _: PAGE)
    monkeypatch.setattr("tracekit.report.markdown.markdown_of", lambda twin: twin)
    return lambda there, twin="# A report\n": reports.write_report(twin, there)


def test_runs_of_one_name_in_different_places_have_reports_of_their_own() -> None:
    assert reports.reports_of(Path("traces/vit1")) == Path("reports")
    assert reports.reports_of(Path("/x/traces/vit1")) == Path("/x/reports")
    assert reports.reports_of(Path("/x/vit1")) == Path("/x/reports")


def test_a_report_replaces_its_own_and_nothing_else(tmp_path: Path, write: Write) -> None:
    ours, others = (reports.Destination(tmp_path, "x", each) for each in (OURS, OTHERS))
    assert write(ours) == (tmp_path / "x.html", tmp_path / "x.md")
    write(ours, "# Another\n")
    assert (tmp_path / "x.md").read_text().startswith("# Another\n")
    with pytest.raises(TracekitError, match=r"x\.html .*the report of something else; pass --force"):
        write(others)
    assert find_mark((tmp_path / "x.html").read_bytes(), b"") == OURS
    write(replace(others, replaces=(OURS,)))
    assert find_mark(b"", (tmp_path / "x.md").read_bytes()) == OTHERS
    # A link is replaced, and not what it leads to.
    (tmp_path / "x.md").rename(tmp_path / "precious")
    (tmp_path / "x.md").symlink_to(tmp_path / "precious")
    write(replace(ours, force=True))
    assert find_mark(b"", (tmp_path / "precious").read_bytes()) == OTHERS


@pytest.mark.parametrize("name", ["x.html", "x.md"])
def test_what_is_no_report_of_tracekit_stays_and_neither_file_is_written(
    tmp_path: Path, name: str, write: Write
) -> None:
    path = tmp_path / name
    there = reports.Destination(tmp_path, "x", OURS, ways=Ways("force=True", "another folder"))
    ends = "not a report of tracekit; pass force=True to replace it, or another folder"
    for make in (
        lambda: path.write_text(f"my own notes, which quote {OURS}"),
        lambda: path.write_text(""),
        path.mkdir,
        lambda: os.mkfifo(path),
        lambda: path.symlink_to("/nowhere/at/all"),
        lambda: path.symlink_to("/dev/zero"),
    ):
        make()
        with pytest.raises(TracekitError, match=rf"{name} already exists and is {ends}"):
            write(there)
        assert [each.name for each in tmp_path.iterdir()] == [name]
        path.rmdir() if path.is_dir() else path.unlink()


@pytest.mark.parametrize("name", ["vit1.html", "vit1.md"])
def test_a_report_of_another_run_is_not_replaced_unless_that_is_asked_for(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "traces" / "vit1"
    reports.refuse_report_there(folder, force=False)
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / name).write_text("of another run")
    with pytest.raises(TracekitError, match=rf"{name} .*; pass --force"):
        reports.refuse_report_there(folder, force=False)
    reports.refuse_report_there(folder, force=True)
    folder.mkdir(parents=True)
    # The run's own: whether that may be replaced is asked of its folder.
    reports.refuse_report_there(folder, force=False)


RUN = make_run(forms=(make_form("eager"), make_form("compiled")))


@pytest.mark.parametrize(
    "other",
    [
        replace(RUN, started="2026-01-02T03:04:06+00:00"),
        replace(RUN, command="tracekit profile vit --compiled"),
        replace(RUN, settings=make_settings(batch_size=7)),
        replace(RUN, settings=make_settings(variables={"TRITON_X": "1"})),
        replace(RUN, environment=replace(RUN.environment, gpu="another")),
        replace(RUN, environment=replace(RUN.environment, cpu_threads=3)),
        replace(RUN, forms=(RUN.forms[0], make_form("compiled", (1.0, 2.0, 3.0)))),
    ],
)
def test_a_run_differs_by_all_that_makes_it_one(other: object) -> None:
    assert reports.identity_of_run(other) != reports.identity_of_run(RUN)  # type: ignore[arg-type]


def test_what_is_found_out_of_a_run_later_makes_it_no_other() -> None:
    told = replace(RUN, notes=("a note",), failure=None, repeated_parts=("x.*",), tracekit="9.9")
    assert reports.identity_of_run(told) == reports.identity_of_run(RUN)


def test_a_setting_that_is_not_noted_makes_a_run_no_other() -> None:
    """As one that a later version notes, of a run of this one."""
    settings = {"mode": "default", "seed": 0, "later": None, "words": {}, "list": [], "deep": {"x": None, "y": False}}
    assert reports._without_empty(settings) == {"mode": "default", "seed": 0, "deep": {"y": False}}
    assert reports._without_empty([settings["deep"], None, 0]) == [{"y": False}, None, 0]


def test_a_run_is_the_same_when_it_is_read_again_and_wherever_it_lies(tmp_path: Path) -> None:
    one = make_run_folder(tmp_path, "one")
    two = one.rename(tmp_path / "two")
    before = reports.identity_of_run(store.load(two))
    store.save(store.load(two), two)
    assert reports.identity_of_run(store.load(two)) == before


def test_a_trace_is_where_it_lies_and_its_path_is_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity(place: object) -> str:
        return name_side(str(place), None).identity

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path)
    assert identity("a.json") == identity(tmp_path / "here" / ".." / "a.json") != identity("here/a.json")
    assert set(identity("a.json")) <= set("0123456789abcdef")
    near, far = identity("a.json"), identity("https://x/a.json")
    monkeypatch.chdir("here")
    assert identity("a.json") != near and identity("https://x/a.json") == far


def test_a_report_is_of_its_kind_of_its_parts_and_of_their_order() -> None:
    told = [("analysis", "a"), ("comparison", "a"), ("comparison", "ab"), ("comparison", "ba"), ("several", "ab")]
    assert len({reports.identity_of_report(kind, parts) for kind, parts in told}) == 5
    assert len(reports.reports_of_run(RUN)) == 3


ONE = make_side("eager", form=make_form())


@pytest.mark.parametrize(
    ("other", "message"),
    [
        *(
            (replace(ONE, settings=make_settings(**{name: value})), value)
            for name, value in (("batch_size", 4), ("workload", "vit"), ("dtype", "float16"), ("height", 1024))
        ),
        (replace(ONE, environment=make_environment(gpu="NVIDIA A100")), "NVIDIA H200, B NVIDIA A100"),
        (replace(ONE, environment=make_environment(packages={"torch": "2.14.0", "triton": "3.7.0"})), None),
    ],
)
def test_other_work_and_gpus_are_refused_and_other_software_is_not(other: Side, message: object) -> None:
    if message is None:
        refuse_side_by_side([ONE, ONE, other], ("one", "same", "other"))
        refuse_to_gate(ONE, other)
        return
    with pytest.raises(TracekitError, match=r"one and other .*The sides differ in|GPU"):
        refuse_side_by_side([ONE, other], ("one", "other"))
    with pytest.raises(TracekitError, match=str(message)):
        refuse_to_gate(ONE, other)


def test_folders_of_one_name_are_told_apart_by_those_they_lie_in() -> None:
    assert short_names(["/x/vit", "/x/flux"]) == ("vit", "flux")
    assert short_names(["/x/vit", "/y/vit"]) == ("x/vit", "y/vit")
    assert short_names(["/x/a/vit", "/y/a/vit", "/y/bert"]) == ("x/a/vit", "y/a/vit", "/y/bert")


@pytest.mark.parametrize("graphed_first", [False, True])
def test_operators_are_lent_by_runs_of_the_same_sizes_alone(
    monkeypatch: pytest.MonkeyPatch, graphed_first: bool
) -> None:
    activities = [product(64, 32 * at, 16, call=at) for at in range(1, 7)]
    own = replace(make_side("own"), sequence=make_sequence(activities, "own"), settings=make_settings())
    without = [replace(each, operator=None, within=()) for each in activities]
    graphed = replace(own, label="graphed", sequence=make_sequence(without, "none"))
    sides = (graphed, own) if graphed_first else (own, graphed)

    def lent(batch_size: int) -> list[str]:
        lender = replace(own, settings=make_settings(batch_size=batch_size))
        monkeypatch.setattr(pairs, "load_side", lambda *_, **__: lender)
        borrowed = with_operators_of("lender", *sides, Reading())
        return sorted(side.sequence.operators for side in borrowed if side.sequence)

    assert lent(own.settings.batch_size if own.settings else 0) == ["lent", "own"]
    with pytest.raises(TracekitError, match=r"same s(ize|hape)"):
        lent(4)
