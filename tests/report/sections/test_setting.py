import pytest
from msgspec.structs import replace
from tests.report.showing import rows_of
from tests.sides import make_form, make_run, make_settings, make_side

from tracekit.model.gpu import GpuSample, GpuState
from tracekit.model.run import Component, UserModel
from tracekit.report.composition.shared import notes_section
from tracekit.report.document import Cell
from tracekit.report.sections.setting import component_table, gpu_state_table, settings_table
from tracekit.report.words.common import with_letters

VAE = Component("vae", 100, True, 60, ("vae.decoder",))


@pytest.mark.parametrize(
    ("component", "how"),
    [
        (Component("vae", 100, True), "compiled"),
        (Component("vae", 100, True, 100, ("vae",)), "compiled"),
        (VAE, "60.0 % compiled: vae.decoder"),
        (
            replace(VAE, compiled_parts=tuple(f"vae.{n}" for n in range(6))),
            "60.0 % compiled: vae.0, vae.1, vae.2, vae.3 and 2 more",
        ),
        (Component("vae", 100, False, 0), "eager"),
    ],
)
def test_of_each_part_it_is_said_how_much_is_compiled(component: Component, how: str):
    table = component_table(make_run(components=(component,)))
    assert table.rows[0][2] == how


def test_variables_that_steered_torch_are_among_the_settings():
    plain = make_side()
    steered = replace(plain, settings=make_settings(variables={"CUDA_LAUNCH_BLOCKING": "1", "TORCH_BLAS_X": "a b"}))
    table = settings_table(with_letters(replace(plain, settings=make_settings()), steered))
    assert table is not None
    assert rows_of(table) == {"variables": ("—", "CUDA_LAUNCH_BLOCKING=1 TORCH_BLAS_X='a b'")}
    assert "dtype bfloat16; " in table.note


def test_of_a_program_only_what_is_known_of_it_is_shown():
    own = UserModel(in_program=True, as_script=True)
    settings = make_settings(workload="train.py", own=own, height=None, width=None, steps=None)
    table = settings_table(with_letters(replace(make_side(), settings=settings)))
    assert [row[0] for row in table.rows] == ["workload", "device", "dtype", "mode"]
    # `tracekit.profile` in a program is told how to compile.
    called = replace(settings, own=UserModel(in_program=True))
    assert "fullgraph" in rows_of(settings_table(with_letters(replace(make_side(), settings=called))))
    assert "Size chosen" in str(notes_section((), make_run()))
    assert "Size chosen" not in str(notes_section((), make_run(settings=settings)))


def state(*clocks: int) -> GpuState:
    def sample(moment: str, clock: int) -> GpuSample:
        return GpuSample(moment, 1.0 if moment == "after" else 0.5, clock, 2619, 450.4, 52, (), None)  # type: ignore[arg-type]

    during = (sample("during", clock) for clock in clocks)
    return GpuState("nvml", (sample("before", 345), *during, sample("after", 1900)), {"power": 2000.0}, 700.0)


def gpu_rows(*states: GpuState) -> dict[str, tuple[Cell, ...]]:
    sides = (make_side(form=replace(make_form(), gpu_state=each)) for each in states)
    return rows_of(gpu_state_table(with_letters(*sides)))


def test_the_gpu_is_told_before_between_and_after():
    rows = gpu_rows(state(1980, 1965), state(1980, 1980))
    assert rows["SM clock"] == ("345 → 1,965 to 1,980 → 1,900 MHz", "345 → 1,980 → 1,900 MHz")
    assert rows["Power"][0] == "450 → 450 → 450 W"
    assert rows["Active limits between calls"] == ("none", "none")
    held = rows["Throttled during timing, whole run"]
    assert held == ("power limit for 2.00 ms of 500.0 ms", "as A")
    assert rows["Other processes"] == ("—", "—")
    of_two_runs = gpu_rows(*(replace(state(1980), slowed_us={"power": us}) for us in (2000.0, 5.0)))
    each_own = ("power limit for 2.00 ms of 500.0 ms", "power limit for 5.00 µs of 500.0 ms")
    assert of_two_runs["Throttled during timing, whole run"] == each_own


def test_reasons_to_slow_down_are_those_of_each_form_s_own_samples():
    hot = replace(state(1980).samples[1], slowed_by=("power limit (software)",))
    told = GpuState("nvml", (state().samples[0], hot, state(1980).samples[1], state().samples[-1]), None)
    rows = gpu_rows(state(1980), told)
    assert rows["Active limits between calls"] == ("none", "power limit (software) (1 of 2 samples)")
