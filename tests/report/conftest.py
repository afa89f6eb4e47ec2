from functools import cache

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from tests.traces import recording

from tracekit.analysis import analyze
from tracekit.analysis.sequence import list_and_draw, list_work
from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.alternatives import set_beside
from tracekit.model.comparison import Comparison, Side
from tracekit.model.comparisons import Comparisons
from tracekit.statements.health import SkippedEvents, Truncated
from tracekit.tracefile.read import read_trace

from ..sides import COMPILED, EAGER, make_analysis, make_cpu_analysis, make_form, make_pair, make_side, scaled

#: Names that would do harm if anything read them as markup.
HOSTILE_NAMES = (
    "<script>alert(1)</script>",
    "</script><script>document.title='taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "[bold red]not red[/bold red] [/]",
    "'\"` | `; & | \\| **loud** <!-- -->",
    "kernel_🚀_\u202egnp.exe",
    "\x1b[31mred\x1b[0m\rover\nline",
    "{{ 7 * 7 }}{% raw %}",
    "void f<" + "std::array<char*, 3ul>, " * 420 + "int>(int)",
)


class MarkdownFile(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    _file_extension = file_extension = "md"


@pytest.fixture
def markdown_file(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(MarkdownFile)


@cache
def matched_comparison() -> Comparison:
    """Two real recordings of ViT-B/16, eager and compiled, matched kernel by kernel."""
    sides = []
    for name in ("vit_eager", "vit_default"):
        trace = read_trace(recording(name), shapes=True)
        window = r"tracekit\.iteration#\d+"
        analysis = analyze(trace, window=window)
        analysis = replace(analysis, trace=replace(analysis.trace, path=f"{name}.json.gz"))
        of_trace = {"sequence": list_work(trace, window), "timeline": list_and_draw(trace, window)[1]}
        sides.append(Side(name, f"{name}.json.gz", analysis, None, None, None, **of_trace))
    return compare(*sides)


def three_times_matched() -> Comparisons:
    """Several ways to compile, with timelines."""
    one, names = matched_comparison(), ("default", "reduce-overhead", "max-autotune")
    eager = replace(one.a, label="eager")
    return set_beside([replace(one, a=eager, b=replace(one.b, label=name)) for name in names], names, ())


@cache
def timed_comparison() -> Comparison:
    """Eager and compiled Flux of one run: 1.50 times as fast."""
    return compare(*make_pair(scaled(1.5), scaled(1.0)), ("eager", "compiled") * 10)


def bare_comparison() -> Comparison:
    """Two trace files of which nothing else is known."""
    note = Truncated(1)
    a = make_side("a.json.gz", make_analysis(EAGER, window="whole", health=[note]))
    return compare(a, make_side("b.json.gz", make_analysis(COMPILED, window="whole", idle_us=300)))


def cpu_comparison() -> Comparison:
    a = make_side("eager", make_cpu_analysis(), make_form("eager", scaled(20)))
    b = make_side("compiled", make_cpu_analysis(fused=12), make_form("compiled", scaled(19.9)))
    return compare(a, b, ("eager", "compiled") * 10)


def many_groups_comparison() -> Comparison:
    """Sixty kernels that stay as they are, each another group."""
    a = {f"kernel_{i}": ("pointwise", 2, 100.0 + i) for i in range(60)}
    b = {f"kernel_{i}": ("pointwise", 2, 110.0 + 2 * i) for i in range(60)}
    return compare(make_side("a", make_analysis(a)), make_side("b", make_analysis(b)))


def hostile_comparison() -> Comparison:
    """Names, labels and messages that try to break out of whatever shows them."""
    a = {name: ("pointwise", 4, 400.0 + i) for i, name in enumerate(HOSTILE_NAMES)}
    b = {name: ("pointwise", 4 if i % 2 else 2, 100.0 + i) for i, name in enumerate(HOSTILE_NAMES)}
    notes = [SkippedEvents(1, reasons={name: 1}) for name in HOSTILE_NAMES]
    one = make_side(HOSTILE_NAMES[1], make_analysis(a, health=notes))
    return compare(one, make_side(HOSTILE_NAMES[3], make_analysis(b, idle_us=10)))
