"""Several ways to compile in all renderings: one column a form, each speed-up over the eager form of its process."""

import json
import re
from functools import cache

from msgspec.structs import replace
from tests.report.conftest import three_times_matched
from tests.report.showing import comparisons_markdown, comparisons_page, rows_of, terminal_text
from tests.report.test_schemas import faults
from tests.sides import make_form, make_pair, make_settings, scaled

from tracekit.comparison.comparing import compare
from tracekit.comparison.judging.alternatives import labelled, set_beside
from tracekit.model.comparison import Comparison
from tracekit.model.comparisons import Comparisons
from tracekit.report import timelines as drawing
from tracekit.report.composition.several_sides import (
    comparisons_figures,
    comparisons_overview,
    headline,
    notes_of_runs,
    shortest_calls,
    subjects,
)
from tracekit.report.contract import comparisons_json
from tracekit.report.markdown import LONGEST
from tracekit.statements.notes.work import PackageDiffers

NAMES = ("default", "reduce-overhead", "max-autotune")
ORDER = ("eager", "compiled") * 10


@cache
def made(alike: bool = True, names: tuple[str, ...] = NAMES) -> Comparisons:
    """1.5, 3 and 1.2 times as fast; the second eager form took 4 % longer than the others."""
    comparisons = []
    for name, eager, compiled in zip(names, (1.5, 1.56, 1.5), (1.0, 0.52, 1.25), strict=True):
        sides = labelled(*make_pair(scaled(eager), scaled(compiled)), name, alike=alike)
        comparisons.append(compare(*sides, ORDER))
    differences = () if alike else (PackageDiffers("torch", "1", "2", a_name="default", b_name="max-autotune"),)
    return set_beside(comparisons, [f"traces/{name}" for name in names], differences)


def test_the_eager_form_stands_once_and_each_form_beside_its_own():
    told = made()
    table = comparisons_figures(told)
    labels = [column.label for column in table.columns]
    assert labels == ["Figure", "A: eager", "B: default", "C: reduce-overhead", "D: max-autotune"]
    found = rows_of(table)
    assert found["Wall time, median"] == ("1.50 ms", "1.00 ms", "520.1 µs", "1.25 ms")
    assert found["Eager in the same process"] == ("", "1.50 ms", "1.56 ms", "1.50 ms")
    assert found["Speed-up"] == ("", "1.50×", "3.00×", "1.20×")
    assert found["Verdict"] == ("", "faster", "faster", "faster")
    assert found["GPU busy"][0] != found["GPU busy"][1]
    assert "Eager is of the first run." in table.note


def test_runs_of_unlike_machines_keep_their_eager_forms_and_say_why():
    told = made(alike=False)
    assert [side.label for side in told.sides] == [label for name in NAMES for label in (f"eager, {name}", name)]
    page = comparisons_page(told)
    assert "The sides differ in torch" in page and "Eager is of the first run" not in page


def test_the_headline_names_the_fastest_and_what_cannot_be_told_from_it():
    assert headline(made()) == "reduce-overhead is fastest: 3.00× faster than eager."
    near = replace(made(), fastest=(0, 1))
    assert headline(near) == "reduce-overhead is 3.00× faster than eager; nothing tells default from it."
    assert headline(replace(made(), fastest=())) == "None is faster than eager."
    slower = [beside("default", 1.0, 1.5), beside("max-autotune", 1.0, 1.2)]
    assert headline(set_beside(slower, NAMES[:2], ())) == "All are slower than eager."


def beside(name: str, eager: float, compiled: float, during_timing: int = 0) -> Comparison:
    a, b = make_pair(scaled(eager), scaled(compiled))
    b = replace(b, form=make_form("compiled", scaled(compiled), during_timing=during_timing))
    return compare(*labelled(a, b, name, alike=True), ORDER)


def test_the_headline_names_what_was_not_judged_and_nothing_false_is_said_of_it():
    told = set_beside([beside("default", 1.0, 0.5), beside("max-autotune", 1.0, 0.4, 1)], NAMES[:2], ())
    assert headline(told) == (
        "default is fastest: 2.00× faster than eager. No verdict, compilation inside timed calls: max-autotune."
    )
    assert not [*shortest_calls(told)]
    few = compare(*labelled(*make_pair(scaled(1.0)[:3], scaled(0.4)[:3]), "few", alike=True), ORDER[:6])
    assert headline(set_beside([told.comparisons[0], few], NAMES[:2], ())).endswith("too few timed calls: few.")
    every = headline(set_beside([told.comparisons[1]] * 2, NAMES[:2], ()))
    assert every.startswith("None is faster than eager. No verdict")


def test_a_row_has_the_speed_up_where_there_is_a_verdict_and_else_what_there_is():
    alike = beside("max-autotune", 1.0, 1.0)
    (table,) = comparisons_overview(set_beside([beside("default", 1.0, 0.5), alike], NAMES[:2], ())).tables
    assert alike.verdict.result == "inconclusive"
    assert [row[1] for row in table.rows if row[0].strip() in ("default", "max-autotune")] == ["2.00×", "inconclusive"]


def test_the_shortest_calls_are_of_a_smaller_speed_up_only_where_eager_was_faster_there():
    told = set_beside([beside("default", 2.0, 1.0), beside("max-autotune", 1.2, 0.8)], NAMES[:2], ())
    (note,) = shortest_calls(told)
    assert note in comparisons_markdown(told)
    assert note.startswith("max-autotune has the shortest calls (800.2 µs) but a smaller speed-up")
    # The larger speed-up of both, which is only not certain.
    verdict = replace(told.comparisons[1].verdict, result="inconclusive", speedup=2.5, ci95=(0.9, 1.1))
    unsure = replace(told, comparisons=(told.comparisons[0], replace(told.comparisons[1], verdict=verdict)))
    assert not [*shortest_calls(unsure)]


def test_json_keeps_to_its_schema_and_holds_every_comparison():
    text = comparisons_json(made())
    assert faults("comparisons", text) == []
    told = json.loads(text)
    assert (told["schema"], told["names"], told["fastest"]) == ("tracekit.comparisons/1", list(NAMES), [1])
    assert [each["verdict"]["result"] for each in told["comparisons"]] == ["faster"] * 3
    assert told["paths"][0] == "traces/default"


def test_markdown_and_terminal_tell_the_same_figures():
    text = comparisons_markdown(made(), "tracekit compare a b c")
    assert len(text) < LONGEST
    assert "| Speed-up |  | 1.50× | 3.00× | 1.20× |" in text
    for name in NAMES:
        assert f"From eager to {name}" in text.replace("\\", "")
    shown = terminal_text(made(), "all")
    assert "reduce-overhead is fastest" in shown and "Speed-up" in shown


def test_what_is_said_of_several_runs_stands_once():
    notes = [note.partition(": ")[2] for note in notes_of_runs(made())]
    assert notes and len(notes) == len(set(notes))


def test_timelines_that_do_not_fit_are_left_out_and_named(monkeypatch):
    assert comparisons_page(three_times_matched()).count("A above B above C above D on one axis") == 1
    monkeypatch.setattr(drawing, "MOST_BYTES", 6_000)
    page = comparisons_page(three_times_matched())
    assert re.search(r"<p[^>]*>[^<]*D: max-autotune; analyze --html draws one", page)


def test_variables_that_steered_torch_head_the_page_where_all_runs_had_them() -> None:
    def told(*variables: dict[str, str]) -> str:
        beside = made()
        pairs = zip(beside.comparisons, variables, strict=True)
        steered = tuple(replace(one, a=replace(one.a, settings=make_settings(variables=each))) for one, each in pairs)
        return subjects(replace(beside, comparisons=steered))

    one = {"CUDA_LAUNCH_BLOCKING": "1"}
    assert told(one, one, one).endswith(" · CUDA_LAUNCH_BLOCKING=1")
    assert "CUDA_LAUNCH_BLOCKING" not in told(one, {}, {}) + told({}, {}, one)
