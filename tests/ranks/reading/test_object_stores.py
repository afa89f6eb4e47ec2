"""Recordings and digests in an object store: a server that speaks S3."""

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.cli.runs import assert_refused, invoke
from tests.ranks.reading.test_digesting import record_ranks

from tracekit.ranks.reading.loading import RanksReading, read_fleet
from tracekit.ranks.reading.recordings import find_recordings
from tracekit.tracefile.places import files_at, refusal

Answer = Callable[..., Any]
ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}


def spoilt(app: Answer) -> Answer:
    """A server that refuses some, and closes the connection in the midst of others."""

    def answer(environ: dict[str, Any], start: Answer) -> Any:
        if "forbidden" in environ["PATH_INFO"]:
            start("403 Forbidden", [("Content-Type", "application/xml")])
            return [b"<Error><Code>AccessDenied</Code></Error>"] if environ["REQUEST_METHOD"] != "HEAD" else []
        content = app(environ, start)
        if "cut" in environ["PATH_INFO"] and environ["REQUEST_METHOD"] == "GET":
            whole = b"".join(content)
            return [whole[: len(whole) // 2]]
        return content

    return answer


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A URL below which lies a job of two ranks."""
    for package in ("moto", "s3fs"):
        pytest.importorskip(package)
    import fsspec
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log(self, *_: Any) -> None:
            pass

    app = spoilt(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        store = fsspec.filesystem("s3")
        store.retries = 1
        store.mkdir("bucket")
        for each in record_ranks(tmp_path_factory.mktemp("ranks") / "job").iterdir():
            store.pipe_file(f"bucket/job/{each.name}", each.read_bytes())
            store.pipe_file(f"bucket/spoilt/cut-{each.name}", each.read_bytes())
        yield "s3://bucket"
    server.shutdown()
    thread.join()


def test_digests_go_from_store_to_store_and_are_read_there(bucket: str, tmp_path: Path) -> None:
    made, again = (invoke("digest", f"{bucket}/job", "--out", f"{bucket}/digests") for _ in range(2))
    assert (made.exit_code, made.stderr) == (0, "")
    assert made.stdout.startswith("2 digested, 0 skipped") and f"{bucket}/digests" in made.stdout
    assert again.stdout.startswith("0 digested, 2 skipped")
    local = invoke("digest", f"{bucket}/job/rank*", "--out", tmp_path)
    assert local.exit_code == 0 and len(list(tmp_path.iterdir())) == 2
    told = [invoke("ranks", place, "-q") for place in (f"{bucket}/digests", f"{bucket}/job", tmp_path)]
    assert [each.exit_code for each in told] == [0, 0, 0]
    assert len({each.stdout for each in told}) == 1
    fleet = [*read_fleet(find_recordings([f"{bucket}/digests"]), RanksReading()).values()]
    assert [each.rank for each in fleet] == [0, 1] and all(len(each.parts) == 1 for each in fleet)


ABSENT = "does not exist or needs permission; check the URL"


def test_what_cannot_be_read_is_a_line_with_the_url(bucket: str, tmp_path: Path) -> None:
    bad = {
        "job/absent.json": ABSENT,
        "spoilt/forbidden.json": "no permission (Forbidden); check the credentials",
        "spoilt/cut-rank0.json": "check the connection and try again",
    }
    for name, said in bad.items():
        url = f"{bucket}/{name}"
        for command in (("ranks", url), ("digest", url)):
            refused = invoke(*command)
            assert_refused(refused, url)
            assert said in refused.stderr
    assert_refused(invoke("ranks", f"{bucket}/job/absent.digest"), ABSENT)
    told = invoke("digest", f"{bucket}/job", *(f"{bucket}/{name}" for name in bad), "--out", tmp_path)
    assert told.exit_code == 1 and told.stdout.startswith("2 digested, 0 skipped, 3 failed")
    lines = told.stderr.splitlines()
    assert len(lines) == len(bad)
    assert all(name in line and said in line for line, (name, said) in zip(lines, bad.items(), strict=True))


def test_a_store_that_takes_no_digest_is_one_line(bucket: str) -> None:
    for out in ("s3://no-bucket/digests", f"{bucket}/forbidden"):
        told = invoke("digest", f"{bucket}/job", "--out", out)
        assert_refused(told, f"{out}/rank0.digest cannot be written")


def told_by(**facts: Any) -> Exception:
    error = Exception("no")
    error.__dict__.update(facts)
    return error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        # As gcsfs and huggingface_hub raise them.
        (OSError("Forbidden: b/bucket/o\nno access"), "check the credentials"),
        (told_by(code=401), "check the credentials"),
        (told_by(response=SimpleNamespace(status_code=403)), "check the credentials"),
        (told_by(response=SimpleNamespace(status_code=503)), "check the connection"),
        (told_by(response={"Error": {}}, code="SlowDown"), "check the connection"),
    ],
)
def test_what_a_store_forbids_is_told_from_what_does_not_get_through(error: Exception, said: str) -> None:
    assert said in str(refusal("gs://bucket/job", error))


def test_a_store_logs_nothing_beside_the_line_unless_it_was_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of the file system that is asked here.
    logger = logging.getLogger("fsspec")
    for asked, is_silent in ((logging.NOTSET, True), (logging.DEBUG, False)):
        monkeypatch.setattr(logger, "level", asked)
        logger.manager._clear_cache()  # type: ignore[attr-defined]
        files_at("memory://nowhere")
        assert logger.isEnabledFor(logging.ERROR) is not is_silent
