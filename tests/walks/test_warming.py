from __future__ import annotations

import pytest

from tracekit.errors import TracekitError
from tracekit.model.workload import Request
from tracekit.walks.timing_plan import TimingPlan
from tracekit.walks.warming import check_alone, check_differs, parse_warmup, warmup_request
from tracekit.workloads.registry import FLUX, all_workloads, find

from ..sides import make_settings

MLP = find("mlp")


def test_sizes_are_named_as_users_say_them() -> None:
    assert parse_warmup("batch=1, height=256") == {"batch_size": 1, "height": 256}
    assert parse_warmup("batch-size=2") == {"batch_size": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hight=256", "knows no size 'hight': did you mean height?"),
        ("dtype=3", "knows no size 'dtype': it takes batch, height, width, steps, as in batch=4"),
        ("batch", "write a size as batch=N"),
        ("batch=0", "a whole number from 1"),
        ("batch=two", "a whole number from 1"),
        ("batch=1,batch_size=2", "names batch_size twice"),
        ("", "knows no size ''"),
    ],
)
def test_what_is_no_size_is_said_in_a_line(text: str, message: str) -> None:
    with pytest.raises(TracekitError, match=message.replace("(", r"\(")):
        parse_warmup(text)


def test_other_sizes_leave_the_rest_of_the_request_as_it_is() -> None:
    request = Request("flux", batch_size=4, height=512, steps=3)
    assert warmup_request(FLUX, request, {"batch_size": 1, "height": 256}) == Request(
        "flux", batch_size=1, height=256, steps=3
    )


def test_a_size_the_workload_has_not_is_met_with_those_it_has() -> None:
    with pytest.raises(TracekitError, match=r"mlp has no height to warm up at: --warmup takes batch$"):
        warmup_request(MLP, Request("mlp"), {"height": 256})


def test_a_size_the_workload_cannot_make_is_refused() -> None:
    with pytest.raises(TracekitError, match="multiples of 16"):
        warmup_request(FLUX, Request("flux"), {"height": 100})


def test_fresh_processes_that_warm_up_as_usual_are_not_mixed_with_a_warm_up_at_other_sizes() -> None:
    check_alone(TimingPlan(target_percent=2.0))
    with pytest.raises(TracekitError, match="and --repeat-process in others that warm up as usual"):
        check_alone(TimingPlan(repeats=2))
    with pytest.raises(TracekitError, match="--repeat-process and --startup"):
        check_alone(TimingPlan(repeats=2, startup=True))


def test_a_size_of_the_warm_up_that_cannot_be_made_is_told_as_it_was_written() -> None:
    with pytest.raises(TracekitError, match="--warmup height=33 is none"):
        warmup_request(FLUX, Request("flux"), {"height": 33})
    with pytest.raises(TracekitError, match="--height 33 is none"):
        warmup_request(FLUX, Request("flux", height=33), {"width": 256})


def test_warming_up_at_the_timed_sizes_is_refused() -> None:
    with pytest.raises(TracekitError, match="--warmup batch=1 is what is timed"):
        warmup_request(MLP, Request("mlp"), {"batch_size": 1})
    # What the workload chooses is known once it is built.
    asked = {"batch_size": 1, "height": 512}
    assert warmup_request(FLUX, Request("flux"), asked).height == 512
    with pytest.raises(TracekitError, match="--warmup batch=1, height=512 is what is timed"):
        check_differs(asked, make_settings())


def test_a_workload_of_one_size_refuses_before_it_is_built() -> None:
    with pytest.raises(TracekitError, match=r"qwen2\.5-vl cannot be called at other sizes: leave --warmup out"):
        warmup_request(find("qwen2.5-vl"), Request("qwen2.5-vl"), {"batch_size": 2})
    resized = {info.name for info in all_workloads() if info.resizes}
    assert resized == {"flux", "flux-schnell", "vit", "causal-lm", "mlp"}
