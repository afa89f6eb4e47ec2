"""A real browser's rules for a public page that fetches from this machine, with Perfetto's page pretended."""

import contextlib
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from tests.cli.runs import ROOT
from tests.traces import DATA, analyze

from tracekit.cli.merged_trace import merge
from tracekit.reading.traces import Reading
from tracekit.serving.perfetto import PAGE, TraceServer, offered
from tracekit.tracefile.read import read_trace

from ..browser import chromium, find_chromium
from ..perfetto import Loaded, find_ui, show

RUNS = ROOT / "traces"
#: Of the committed runs the one whose compiled kernels are a CUDA graph's: its launches say least.
RUN = "h100-vit-reduce-overhead"
#: Whether the browser could use what another page asked for without being allowed to read it.
USED = """async (url) => {
    const asked = {
        picture: () => new Promise((done) => {
            const picture = new Image();
            picture.onload = () => done('loaded'); picture.onerror = () => done('refused');
            picture.src = url;
        }),
        script: () => new Promise((done) => {
            const script = document.createElement('script');
            script.onload = () => done('loaded'); script.onerror = () => done('refused');
            script.src = url;
            document.head.append(script);
        }),
        blind: () => fetch(url, {mode: 'no-cors'}).then((answer) => answer.type, () => 'refused'),
    };
    const found = {};
    for (const [kind, ask] of Object.entries(asked)) found[kind] = await ask();
    return found;
}"""


FETCH = """async (url) => {
    const answer = await fetch(url);
    return (await answer.arrayBuffer()).byteLength;
}"""


def fetch_from(page_address: str, server: TraceServer, script: str = FETCH) -> Any:
    """What a page at that address gets when it fetches the trace: the number of bytes, or the browser's refusal."""
    browser = chromium()
    from playwright.sync_api import Error

    with browser.new_context() as context:
        # What the user is asked since Chrome 142; browsers before it neither ask nor know the name.
        with contextlib.suppress(Error):
            context.grant_permissions(["local-network-access"], origin=page_address)
        page = context.new_page()
        page.route(
            f"{page_address}/**", lambda route: route.fulfill(body="<title>page</title>", content_type="text/html")
        )
        page.goto(f"{page_address}/")
        try:
            return page.evaluate(script, server.address)
        except Error as error:
            return error.message


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "eager light.json.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(3_000_000))
    return path


@pytest.mark.browser
def test_perfettos_page_may_fetch_the_trace_and_another_page_may_not(trace: Path) -> None:
    find_chromium()
    with offered(trace, port=0) as server:
        assert "Failed to fetch" in fetch_from("https://elsewhere.example", server)
        assert not server.fetched.is_set()
        assert fetch_from(PAGE, server) == 3_000_002
        assert server.fetched.wait(60)


@pytest.mark.browser
@pytest.mark.parametrize("page_address", ["https://elsewhere.example", "http://127.0.0.1:9999", PAGE])
def test_pictures_and_scripts_of_any_page_get_nothing_and_end_nothing(
    trace: Path, page_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_chromium()
    asked: list[tuple[str | None, int]] = []
    answer = BaseHTTPRequestHandler.send_response

    def noting(handler: BaseHTTPRequestHandler, code: int, message: str | None = None) -> None:
        asked.append((handler.headers.get("Sec-Fetch-Mode"), int(code)))
        answer(handler, code, message)

    monkeypatch.setattr(BaseHTTPRequestHandler, "send_response", noting)
    with offered(trace, port=0) as server:
        assert set(fetch_from(page_address, server, USED).values()) == {"refused"}
        assert asked.count(("no-cors", 403)) == 3, asked
        assert not server.fetched.is_set()
        # What a page that may reads is whole all the same.
        assert fetch_from(PAGE, server) == 3_000_002
        assert server.fetched.wait(60)


@pytest.mark.browser
def test_a_recording_as_torch_wrote_it_has_its_streams_pinned() -> None:
    find_ui()
    path = DATA / "vit_default.json.gz"
    pinned = show(path, link_to(path)).pinned()
    assert pinned
    assert all(name.startswith("stream 7") for name in pinned)


COUNTS = """
    select process.name || ' ' || thread.name as track, count(*) as slices, sum(dur) / 1e3 as total_us
    from slice join thread_track on track_id = thread_track.id join thread using (utid) join process using (upid)
    group by track
"""


SIDE = """(select process.name from thread_track join thread using (utid) join process using (upid)
    where thread_track.id = {}.track_id)"""


ARROWS = f"""
    select extract_arg(a.arg_set_id, 'args.group') as one, extract_arg(b.arg_set_id, 'args.group') as other,
        {SIDE.format("a")} as one_side, {SIDE.format("b")} as other_side
    from flow join slice a on slice_out = a.id join slice b on slice_in = b.id
"""


def link_to(path: Path) -> str:
    """The link, as if the file were served from the real port."""
    with offered(path, port=0) as server:
        return server.link.replace(f":{server.port}", ":9001")


def check_tracks(page: Loaded) -> None:
    """Every slice that was written is there, on the track it was written to."""
    found = {row["track"]: row for row in page.rows(COUNTS)}
    for form in ("eager", "compiled"):
        analysis = analyze(read_trace(RUNS / RUN / f"{form}-light.json.zst"))
        streams = [row for name, row in found.items() if name.startswith(f"{form} /{form}/GPU 0 stream 7")]
        copies = analysis.copies.memcpy_count + analysis.copies.memset_count
        assert sum(row["slices"] for row in streams) == analysis.kernels.count + copies
        total = analysis.kernels.total_us + analysis.copies.total_us
        assert sum(row["total_us"] for row in streams) == pytest.approx(total, rel=1e-9)
        assert found[f"{form} /{form}/idle, GPU 0"]["total_us"] == pytest.approx(analysis.gpu.idle_us, rel=1e-9)
        assert found[f"{form} /{form}/steps"]["slices"] == len(analysis.steps)
        assert found[f"{form} /{form}/kernel groups, GPU 0"]["slices"] > 100


@pytest.fixture(scope="module")
def merged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both forms of the run in one trace."""
    path = tmp_path_factory.mktemp(RUN) / "perfetto.json.gz"
    return merge(RUNS / RUN, None, None, None, Reading(cached=False), path)


@pytest.fixture
def opened(merged: Path) -> Loaded:
    """The page that shows it."""
    find_ui()
    return show(merged, link_to(merged))


@pytest.mark.browser
def test_perfetto_shows_all_of_it_without_an_import_error(opened: Loaded) -> None:
    assert opened.errors() == []
    processes = {row["name"] for row in opened.rows("select name from process where name is not null")}
    assert processes >= {"eager", "compiled"}
    check_tracks(opened)
    # Nothing overlaps on a stream, and no slice lies inside another.
    assert opened.rows("select max(depth) as depth from slice where category = 'kernel'") == [{"depth": 0}]
    assert opened.rows("select min(ts) as ts from slice") == [{"ts": 0}]
    assert opened.dialogs() == []


@pytest.mark.browser
def test_arrows_lead_from_eager_kernels_to_the_kernels_of_the_same_group(opened: Loaded) -> None:
    ends = opened.rows(ARROWS)
    # 7 steps of 167 eager kernels, each of which has a counterpart.
    assert len(ends) == 7 * 167
    assert all(row["one"] == row["other"] is not None for row in ends)
    assert all({row["one_side"], row["other_side"]} == {"eager", "compiled"} for row in ends)


@pytest.mark.browser
def test_the_link_pins_the_gpus_tracks_and_they_are_to_be_seen(opened: Loaded, tmp_path: Path) -> None:
    # Each once: the threads of these tracks are named otherwise.
    assert [name.rpartition(" ")[0] for name in opened.pinned()] == sorted(
        f"/{form}/{track}"
        for form in ("eager", "compiled")
        for track in ("kernel groups, GPU 0", "GPU 0 stream 7", "idle, GPU 0")
    )
    # TRACEKIT_PICTURES names a folder for people to look at.
    opened.picture(Path(os.environ.get("TRACEKIT_PICTURES", tmp_path)) / f"perfetto-{RUN}.png")
