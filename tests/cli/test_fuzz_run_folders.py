"""Whatever a run folder holds: a result, or one line of error."""

import contextlib
import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.runs import invoke, make_run_folder
from tests.fuzzing import damaged, fuzzed

from tracekit import store
from tracekit.errors import TracekitError
from tracekit.model import provenance
from tracekit.model.compilation import EagerFallback, FailedGuard, GraphBreak, NotCompiled
from tracekit.model.statement import builtins_of
from tracekit.reading.traces import Reading
from tracekit.statements.noted import GraphWithoutSites, ReferenceDoesNotFit, ShapesDiffer
from tracekit.statistics import interval

REAL = Path(__file__).parents[2] / "traces" / "h100-vit" / "run.json"
SHAPE = provenance.TensorShape((2, 2), "float32")
OPS = provenance.EagerOps(
    1,
    "2.13.0",
    tuple(provenance.EagerOp(f"aten.{name}.default", "m.0", "m.py:3", (SHAPE,), 48, 16) for name in ("mm", "gelu")),
    (provenance.TaggedActivity("kernel_0", 0), provenance.TaggedActivity("kernel_1", 1)),
)
SITES = provenance.CompiledSites(
    1,
    "2.13.0",
    (
        provenance.CompiledGraph(
            "k",
            False,
            "m",
            (provenance.GraphNode("mm", "aten.mm.default", "aten.mm.default", "m.0", "m.py:3", 0, (SHAPE,)),),
            (provenance.LaunchSite("kernel_0", (0,)), provenance.LaunchSite("x", None)),
        ),
    ),
    (provenance.GraphCall(0, "m"),),
    (provenance.CompiledActivity("kernel_0", 0, "aten::mm", 0),),
    (GraphWithoutSites(graph=0, why="no_launches_marked"),),
)
DOES_NOT_FIT = ReferenceDoesNotFit(dtype="float32", needs_bytes=90.0, free_bytes=40)
SHAPES_DIFFER = ShapesDiffer(shape=(1,), other_shape=(2,))
WHY = NotCompiled("scalar_read", "item", "m.py:3", "f", "x.item()", "n.py:1", "loop", "it reads", "do not")
SOURCES = provenance.KernelSources(1, "2.13.0", {"kernel_0": ("@triton.jit\ndef kernel_0(): ...", "x"), "k": ()}, 2)
DAMAGED = {type(noun): damaged(builtins_of(noun)) for noun in (OPS, SITES, SOURCES)}
COMMANDS = (
    ("compare", "{run}", "--out", "{out}/page.html", "--json", "{out}/page.json"),
    ("compare", "{run}", "--gate", "wall<=+3%", "--json", "-", "--out", "{out}/page.html"),
    ("compare", "{run}", "{sound}", "{third}", "--out", "{out}/several.html"),
    ("analyze", "{run}", "--json", "-"),
    ("analyze", "{run}", "--form", "eager", "--html", "{out}/alone.html"),
    ("open", "{run}", "--no-serve", "--out", "{out}/both.json.gz"),
    ("export", "{run}", "--benchmark", "-"),
    ("export", "{run}", "--groups", "-"),
)


def shortened(value: Any) -> Any:
    """Lists of a real manifest cut to what a small one holds."""
    if isinstance(value, dict):
        return {key: shortened(each) for key, each in value.items()}
    return [shortened(each) for each in value[:8]] if isinstance(value, list) else value


def once(function: Callable[..., Any], key: Callable[..., object]) -> Callable[..., Any]:
    """The function, asked once for arguments of one key."""
    found: dict[object, Any] = {}

    def remembered(*arguments: Any) -> Any:
        name = key(*arguments)
        if name not in found:
            found[name] = function(*arguments)
        return found[name]

    return remembered


@pytest.fixture(scope="module", autouse=True)
def what_no_example_changes_is_worked_out_once() -> Iterator[None]:
    """Traces stay as they are, and most of the times that are resampled; a hundred samples of these do."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("read", "analyze", "look"):
            asked = once(getattr(Reading, name), lambda reading, trace: (reading, str(getattr(trace, "path", trace))))
            patch.setattr(Reading, name, asked)
        resampled = interval.resampled_medians
        medians = once(
            lambda values, block, *_: resampled(values, block, 100), lambda values, block, *_: (values.tobytes(), block)
        )
        patch.setattr(interval, "resampled_medians", medians)
        yield


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run with all that a manifest can hold, most of it measured."""
    folder = make_run_folder(tmp_path_factory.mktemp("sound"), "run")
    (folder / "eager-output.png").write_bytes(store.PNG_MAGIC + bytes(50))
    store.save_provenance(OPS, folder)
    store.save_provenance(SITES, folder)
    store.save_kernel_sources(SOURCES, folder)
    told = msgspec.json.decode((folder / store.MANIFEST).read_bytes())
    real = shortened(json.loads(REAL.read_text()))
    for form, measured in zip(told["forms"], real["forms"], strict=True):
        form.update({key: measured[key] for key in ("timing", "startups", "memory", "gpu_state", "numerics")})
        form["numerics"]["reference_missing"] = builtins_of(DOES_NOT_FIT)
        form["numerics"]["pictures"] = [{"kind": "output", "path": "eager-output.png", "scale": 2.0}]
        form["provenance"] = store.EAGER_OPS if form["name"] == "eager" else store.COMPILED_SITES
        form["kernel_sources"] = None if form["name"] == "eager" else store.COMPILED_TRITON
    compilation = real["forms"][1]["compilation"]
    line = GraphBreak("m.py:3", "f", "item", None, "do not", "gb0059", ("0/0",), 3.5, "n.py:1")
    guard = FailedGuard("0/0", "tensor 'x' size mismatch at index 0. expected 4, actual 8")
    fallback = EagerFallback("recompile_limit", "f", "m.py:3", "too often")
    real["forms"][1]["numerics"]["against_eager"]["tensors"][0]["mismatch"] = builtins_of(SHAPES_DIFFER)
    compilation["diagnostics"] |= {"breaks": msgspec.to_builtins([line]), "fallbacks": msgspec.to_builtins([fallback])}
    compilation["diagnostics"]["frames"][0]["because"] = msgspec.to_builtins([guard])
    told["forms"][1]["compilation"] = compilation
    told.update({key: real[key] for key in ("components", "notes", "noted", "verified", "settings", "environment")})
    (folder / store.MANIFEST).write_bytes(msgspec.json.encode(told))
    return folder


def run(arguments: tuple[str, ...], **places: Path) -> Result:
    """The command in this process. Fails unless it gave a result, or one line of error."""
    filled = [each.format(**places) for each in arguments]
    # What an example wrote is in no other's way.
    shutil.rmtree(places["out"], ignore_errors=True)
    result = invoke(*filled)
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise AssertionError(f"{filled} left {error!r}") from error
    if result.exit_code not in (0, 3, 4):
        assert result.exit_code == 1, result.output
        lines = [line for line in result.output.splitlines() if line.startswith("error: ")]
        assert len(lines) == 1, result.output
    return result


@contextlib.contextmanager
def holding(path: Path, content: bytes) -> Iterator[None]:
    """The file with other content for a while."""
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


@pytest.fixture(scope="module")
def places(sound: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Copies of the run to damage, the sound one, and where commands write."""
    folder = tmp_path_factory.mktemp("bench")
    for name in ("run", "third"):
        shutil.copytree(sound, folder / name)
    return {"run": folder / "run", "sound": sound, "third": folder / "third", "out": folder / "out"}


@pytest.fixture(scope="module")
def manifests(sound: Path) -> st.SearchStrategy[object]:
    return damaged(msgspec.json.decode((sound / store.MANIFEST).read_bytes()))


def test_every_command_takes_the_sound_run(places: dict[str, Path]) -> None:
    for command in COMMANDS:
        assert run(command, **places).exit_code in (0, 3, 4), command


@pytest.mark.slow
@fuzzed(20)
@given(data=st.data())
def test_any_manifest_is_a_result_or_one_line(
    places: dict[str, Path], manifests: st.SearchStrategy[object], data: st.DataObject
) -> None:
    manifest = data.draw(manifests)
    with holding(places["run"] / store.MANIFEST, json.dumps(manifest).encode()):
        run(data.draw(st.sampled_from(COMMANDS)), **places)


@fuzzed(15)
@given(data=st.data())
def test_whatever_tells_why_nothing_was_compiled_is_a_result_or_one_line(
    places: dict[str, Path], data: st.DataObject
) -> None:
    told = json.loads((places["run"] / store.MANIFEST).read_text())
    told["forms"] = told["forms"][:1]
    told["not_compiled"] = data.draw(damaged([msgspec.to_builtins(WHY)]))
    with holding(places["run"] / store.MANIFEST, json.dumps(told).encode()):
        run(data.draw(st.sampled_from(COMMANDS)), **places)


@pytest.mark.parametrize(
    ("noun", "name"), [(OPS, store.EAGER_OPS), (SITES, store.COMPILED_SITES), (SOURCES, store.COMPILED_TRITON)]
)
@fuzzed(15)
@given(data=st.data())
def test_any_provenance_is_a_result_or_one_line(
    places: dict[str, Path], noun: object, name: str, data: st.DataObject
) -> None:
    told = data.draw(DAMAGED[type(noun)])
    with holding(places["run"] / name, gzip.compress(json.dumps(told).encode(), compresslevel=1)):
        run(COMMANDS[0], **places)


@fuzzed(100)
@given(
    name=st.sampled_from((store.MANIFEST, store.EAGER_OPS, store.COMPILED_SITES, store.COMPILED_TRITON)),
    data=st.binary(max_size=200),
    cut=st.integers(0, 2),
    at=st.integers(0, 100_000),
)
def test_files_of_a_run_may_be_cut_off_and_overwritten(
    places: dict[str, Path], name: str, data: bytes, cut: int, at: int
) -> None:
    path = places["third"] / name
    whole = path.read_bytes()
    at %= len(whole)
    overwritten = whole[:at] + data + whole[at + len(data) : len(whole) - cut]
    with holding(path, overwritten), contextlib.suppress(TracekitError):
        read = store.load(path.parent)
        for form in read.forms:
            store.load_provenance(path.parent, form)
            store.load_kernel_sources(path.parent, form)
