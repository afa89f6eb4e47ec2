import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.sides import make_analysis, make_form, make_side

from tracekit.model.analysis import shrink_idle
from tracekit.model.dtypes import CPP_TYPES, ELEMENT_BYTES
from tracekit.model.option import OPTIONS, WORK, words_of
from tracekit.model.run import Generation, Settings
from tracekit.model.timing import ControlCall, ProcessTimes
from tracekit.model.workload import Request

NO_TIMES = [math.nan, math.inf, 0.0, -1.0]


@pytest.mark.parametrize("us", NO_TIMES)
def test_a_call_that_took_no_time_is_refused_where_it_is_noted(us: float) -> None:
    with pytest.raises(ValueError, match="timed call 2 took"):
        make_form(wall_us=(1.0, us))
    with pytest.raises(ValueError, match="timed call 3 took"):
        ProcessTimes((1.0, 1.0, us), None, (), "asked number", 1.0)
    with pytest.raises(ValueError, match="took"):
        ControlCall(0, us, None)
    if not math.isfinite(us):
        with pytest.raises(ValueError, match="gemm took"):
            make_analysis({"gemm": ("gemm", 1, us)})


RECORDED = {"op_dispatch": 60.0, "launch_call": 30.0, "profiler": 20.0, "device": 40.0}
CAUSES = st.dictionaries(
    st.sampled_from(["op_dispatch", "launch_call", "sync_wait", "python", "profiler", "device"]), st.floats(0, 1e6)
)


@pytest.mark.parametrize(
    ("true_us", "left"),
    [
        # The profiler's own time is no call's, and time that no recording shows is given to no cause.
        (1000.0, (60.0, 30.0, 0.0, 40.0)),
        # The host's causes shrink by one factor, and the GPU's own when nothing else is left.
        (85.0, (30.0, 15.0, 0.0, 40.0)),
        (25.0, (0.0, 0.0, 0.0, 25.0)),
    ],
)
def test_recorded_idle_time_shrinks_to_the_call_s(true_us: float, left: tuple[float, ...]):
    assert shrink_idle(RECORDED, true_us) == dict(zip(RECORDED, left, strict=True))


@given(CAUSES, st.floats(0, 1e6))
def test_causes_add_up_to_the_call_s_idle_time_or_to_what_was_recorded(causes: dict[str, float], true_us: float):
    left = shrink_idle(causes, true_us)
    recorded = math.fsum(us for cause, us in causes.items() if cause != "profiler")
    assert math.fsum(left.values()) == pytest.approx(min(recorded, true_us), rel=1e-9, abs=1e-6)
    assert all(0 <= left[cause] <= us for cause, us in causes.items())


@pytest.mark.parametrize(
    ("rich", "found"),
    [
        # Of the 320 us a step that the light recording does not tell the rich one tells an eighty-first part.
        (
            {"device": 0.19, "guards": 0.01, "unattributed": 0.8},
            {"device": 80, "guards": 320 / 81, "unattributed": 320 * 80 / 81},
        ),
        (
            {"device": 0.5, "op_dispatch": 0.3, "python": 0.1, "launch_call": 0.1},
            {"device": 80, "op_dispatch": 240, "python": 80},
        ),
        # Both recordings note their own collections.
        ({"gc": 0.6, "python": 0.4}, {"device": 80, "python": 320}),
    ],
)
def test_what_the_rich_recording_tells_divides_what_the_light_one_cannot(rich: Any, found: Any):
    light = make_analysis(causes={"device": 0.2, "unattributed": 0.8})
    side = replace(make_side("b", light, make_form()), rich=make_analysis(causes=rich))
    assert side.idle_by_cause() == pytest.approx(found)
    assert sum(found.values()) == side.recorded_idle_us == 400


def test_every_type_is_as_wide_as_torch_has_it() -> None:
    torch = pytest.importorskip("torch")
    assert {name: getattr(torch, name).itemsize for name in ELEMENT_BYTES} == ELEMENT_BYTES
    # Recordings have C++'s names of the same types.
    assert set(CPP_TYPES.values()) == set(ELEMENT_BYTES)


#: What the manifest holds of a call beside its options, or under another name.
FACTS = {"generation", "own", "variables", "fast_processor"}


def test_every_field_of_a_request_and_of_settings_is_one_option() -> None:
    names = [each.name for each in OPTIONS]
    assert len({*names}) == len(names)
    asked = {field for noun in (Request, Settings, Generation) for field in noun.__struct_fields__}
    assert asked - FACTS == {*names}


def test_rows_of_a_sweep_have_one_order() -> None:
    places = sorted(each.axis for each in OPTIONS if each.axis is not None)
    assert places == [*range(len(places))]


def test_what_makes_a_call_larger_makes_it_other_work() -> None:
    larger = {each.name for each in OPTIONS if each.larger}
    assert larger == {"batch_size", "height", "width", "seq_length"}
    assert larger < words_of(*WORK).keys()
