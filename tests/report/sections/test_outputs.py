"""Outputs, memory and the GPU's state, as reports show them."""

from msgspec.structs import replace
from tests.report.conftest import timed_comparison
from tests.report.showing import comparison_markdown, comparison_page, rows_of, terminal_text
from tests.sides import ORDER, make_pair, make_run, scaled

from tracekit.comparison.comparing import compare
from tracekit.model.comparison import Comparison
from tracekit.model.gpu import FormMemory, MemoryUse
from tracekit.model.numerics import FormNumerics, OutputDifference, Picture, PictureFile, TensorDifference
from tracekit.report.composition.overview import comparison_overview
from tracekit.report.sections.outputs import accuracy_sentence, memory_table, numerics_table, picture_sources
from tracekit.report.sections.setting import gpu_state_table
from tracekit.report.words.common import both_sides
from tracekit.statements.notes.gpu import Throttled
from tracekit.statements.notes.recordings import CpuRun, NotReadOverSteps
from tracekit.statements.notes.timing import Interrupted, NotTimed
from tracekit.statements.notes.work import TrainingMode

GIB = 2**30
#: One black pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d76360606000000004000127a2e1"
    "430000000049454e44ae426082"
)


def tensor(relative: float, **changes: object) -> TensorDifference:
    told = TensorDifference("", "bfloat16", (1, 3, 64, 64), 12288, relative, relative / 10, relative, 0.9999, 1.0, 0.25)
    return replace(told, **changes)  # type: ignore[arg-type]


def numerics(relative: float, *, eager: float | None = None) -> FormNumerics:
    return FormNumerics(
        dtype="bfloat16",
        against_itself=OutputDifference("itself", (tensor(0.0, equal_share=1.0),)),
        against_eager=OutputDifference("eager", (tensor(eager),)) if eager is not None else None,
        against_reference=OutputDifference("reference", (tensor(relative),)),
        reference_dtype="float32",
        pictures=(PictureFile("output", "eager-output.png"),),
        skipped=("DynamicCache",),
    )


def checked_comparison(compiled: float = 0.01) -> Comparison:
    a, b = make_pair(scaled(1.5), scaled(1.0))
    one = FormMemory(34 * GIB, MemoryUse(37 * GIB, 40 * GIB), MemoryUse(36 * GIB, 37 * GIB), 0, 0)
    other = FormMemory(34 * GIB, MemoryUse(38 * GIB, 44 * GIB), None, 3 * GIB, 0)
    a = replace(a, form=replace(a.form, numerics=numerics(0.011), memory=one))
    found = numerics(compiled, eager=0.02)
    b = replace(b, form=replace(b.form, numerics=found, memory=other))
    a, b = (replace(each, pictures=(Picture(each.label, PNG),)) for each in (a, b))
    return compare(a, b, ("eager", "compiled") * 10)


def test_outputs_are_told_beside_each_other_the_reference_and_themselves():
    table = numerics_table(checked_comparison())
    both = ("float32, the reference", "a second call")
    of_compiled = [("compiled", other) for other in ("eager", *both)]
    assert [row[:2] for row in table.rows] == [("eager", other) for other in both] + of_compiled
    assert table.rows[0][2:] == ("0.011", "0.0011", "0.011", "0.0001", "25.0 %")
    assert table.rows[1][2:5] == ("0", "0", "0")
    assert "DynamicCache" in table.note


def test_the_answer_stands_in_every_report():
    comparison = checked_comparison()
    sentence = accuracy_sentence(comparison)
    assert all(figure in sentence for figure in ("error 0.01 vs float32", "eager 0.011", "tolerance 0.037"))
    assert sentence in comparison_markdown(comparison, make_run())
    assert comparison_page(comparison, make_run()).count(sentence.replace("'", "&#39;")) == 1
    told = comparison_overview(comparison).checks[0]
    assert told.mark == "ok" and "error 0.01 vs float32, eager 0.011, tolerance 0.037" in told.text
    assert comparison_page(comparison, make_run()).count(told.text.replace("'", "&#39;")) == 1
    assert told.text in terminal_text(comparison)
    # Outputs that differ are a finding of the page.
    page = comparison_page(checked_comparison(0.5), make_run())
    assert "compiled outputs differ from eager" in page and "Outputs differ by more than rounding" in page


def test_random_outputs_are_not_red_and_code_that_was_not_timed_is_named():
    a, b = make_pair(scaled(1.5), scaled(1.0))
    seeds = OutputDifference("another_seed", (tensor(0.97),))
    one, other = numerics(0.011), numerics(0.95, eager=0.95)
    a = replace(a, form=replace(a.form, numerics=replace(one, against_another_seed=seeds)))
    comparison = compare(a, replace(b, form=replace(b.form, numerics=other)), ORDER)
    told = comparison_overview(comparison).checks[0]
    assert (told.mark, "not comparable" in told.text) == ("", True)
    assert "Outputs differ" not in comparison_page(comparison, make_run())
    table = numerics_table(comparison)
    assert table.rows[2][1] == "another seed" and "anew" not in table.note
    drawn = replace(numerics(0.011, eager=1e-5), drawn_as_eager=True)
    comparison = compare(a, replace(b, form=replace(b.form, numerics=drawn)), ORDER)
    told = comparison_overview(comparison).checks[0]
    assert told.mark == "ok" and "random numbers" in told.text
    assert "compiled anew" in numerics_table(comparison).note


def test_training_mode_and_a_window_stand_on_the_first_screen():
    notes = CpuRun(), TrainingMode(["model"], None), Interrupted(1), NotReadOverSteps("span")
    told = comparison_overview(replace(timed_comparison(), notes=notes)).notes
    assert "named window" in told[0] and "training mode" in told[1]


def test_memory_that_was_not_measured_is_a_dash():
    table = memory_table(both_sides(checked_comparison()))
    rows = rows_of(table)
    assert not any("weights and inputs" in label for label in rows) and "workspaces" in table.note
    assert rows["Steady calls, reserved"] == ("37.0 GiB", "—", "—")
    assert rows["Warm-up with compilation, reserved"] == ("40.0 GiB", "44.0 GiB", "+4.00 GiB")
    assert rows["CUDA-graph pools, own"] == ("0 B", "3.00 GiB", "+3.00 GiB")


def test_what_makes_the_verdict_mislead_stands_before_every_figure():
    grave, other = Throttled("power", 0.97, ["eager", "compiled"]), NotTimed()
    told = "eager and compiled: GPU throttled, power limit active 97 % of the time."
    comparison = replace(checked_comparison(), notes=(other, grave))
    terminal = " ".join(terminal_text(comparison, "all").split())
    page, markdown = comparison_page(comparison, make_run()), comparison_markdown(comparison)
    (short,) = (each for each in comparison_overview(comparison).notes if "97 %" in each)
    for report in (page, markdown, terminal):
        assert report.count(told) == report.count(short) == 1
        assert report.index(short) < report.index("Where a call goes") < report.index(told)


def test_what_nobody_looked_at_makes_no_table():
    bare = timed_comparison()
    sides = both_sides(bare)
    assert (numerics_table(bare), memory_table(sides), gpu_state_table(sides)) == (None, None, None)
    assert (accuracy_sentence(bare), picture_sources(bare)) == (None, ())
    assert 'id="outputs"' not in comparison_page(bare, make_run())


def test_equal_outputs_have_no_angle_between_them():
    equal = replace(tensor(0.0), max_abs=0.0, cosine=1 - 2.2e-16, equal_share=1.0)
    a, b = make_pair(scaled(1.0), scaled(0.6))
    told = replace(numerics(0.01), against_eager=OutputDifference("eager", (equal,)))
    table = numerics_table(compare(a, replace(b, form=replace(b.form, numerics=told))))
    assert table.rows[0][-3:] == ("0", "0", "100.0 %")
