import shlex

import pytest
from msgspec.structs import replace
from tests.report.showing import printed, told_in_full

from tracekit.comparison.looking import look_at
from tracekit.model.run import FormResult
from tracekit.model.timing import FormTiming, ProcessTimes, Startup
from tracekit.report.document import Commands
from tracekit.statements.health import Truncated
from tracekit.statements.notes.recordings import TimedSlowerThanRecorded

from ..sides import make_analysis, make_cpu_analysis, make_form, make_side
from .conftest import bare_comparison, cpu_comparison, hostile_comparison, timed_comparison


def test_a_note_that_fills_its_lines_is_told_whole():
    note = TimedSlowerThanRecorded("compiled", 1300.0, 1000.0, timed_calls=10, first_calls=False)
    for colours in (False, True):
        text = told_in_full(replace(timed_comparison(), notes=(note,)), colours=colours)
        assert note.long() in " ".join(text.split())


def test_bare_traces_are_compared_without_a_verdict(snapshot):
    assert told_in_full(bare_comparison()) == snapshot


def test_a_cpu_comparison_says_what_it_cannot_show(snapshot):
    assert told_in_full(cpu_comparison()) == snapshot


def test_an_analysis_reads_well_at_80_columns(snapshot):
    note = Truncated(1)
    assert told_in_full(look_at(make_side("trace.json.gz", make_analysis(health=[note]), make_form()))) == snapshot


def test_a_cpu_analysis_shows_operators(snapshot):
    assert told_in_full(look_at(make_side("trace.json.gz", make_cpu_analysis(fused=12)))) == snapshot


def test_hostile_names_neither_colour_nor_steer_the_terminal():
    for text in map(told_in_full, (hostile_comparison(), look_at(hostile_comparison().a))):
        assert not {"\x1b", "\r", "\u202e"} & {*text} and "[bold red]" in text
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "options", [[f"--option-{i} value" for i in range(12)], [*["--prompt", "a dog's house by the sea"] * 5, "a b"]]
)
def test_long_commands_can_be_copied(options: list[str]):
    command = shlex.join(["tracekit", "profile", "vit", *options])
    lines = printed((Commands(command),))
    assert len(lines.splitlines()) > 2
    assert shlex.split(lines.replace("\\\n", " ")) == shlex.split(command)


def alone(form: FormResult) -> str:
    return told_in_full(look_at(make_side("trace.json.gz", make_analysis(), form)))


def test_other_processes_and_starts_of_one_form_are_shown():
    repeats = tuple(ProcessTimes((us,) * 5, None, (), "asked number", 1.0) for us in (1200.0, 1300.0))
    timing = FormTiming("asked number", None, None, 1.0, (), repeats)
    starts = (Startup("compiled_no_cache", 3.25, (12e6, 900.0, 900.0), 1, 0),)
    text = alone(replace(make_form("compiled"), timing=timing, startups=starts))
    for told in ("Wall time, process 1 of 2", "1.20 ms", "1.30 ms"):
        assert told in text
    assert "First call, compiled, no cache 12.0 s" in " ".join(text.split())


def test_compiling_inside_the_calls_of_one_form_is_warned_of():
    text = " ".join(alone(make_form("compiled", during_timing=2)).split())
    assert "2 compilations inside 10 timed calls" in text
    assert "compilation" not in alone(make_form("compiled", during_timing=0))
