import pytest
from msgspec.structs import replace

from tracekit.errors import TracekitError
from tracekit.measure import plan
from tracekit.model.workload import Request
from tracekit.workloads.registry import FLUX, all_workloads, find

from ..sides import make_settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hight=256", "size named 'hight': did you mean height?"),
        ("dtype=3", "'dtype': pass batch, height, width, steps, as in batch=4"),
        ("batch", "write batch=N"),
        ("batch=0", "a whole number from 1"),
        ("batch=two", "a whole number from 1"),
        ("batch=1,batch_size=2", "names batch_size twice"),
        ("", "size named ''"),
    ],
)
def test_what_is_no_size_is_said_in_a_line(text: str, message: str) -> None:
    with pytest.raises(TracekitError, match=message.replace("(", r"\(")):
        plan.parse_warmup(text)


def test_sizes_are_named_as_users_say_them_and_leave_the_rest_of_the_request_as_it_is() -> None:
    assert plan.parse_warmup("batch-size=2") == {"batch_size": 2}
    request = Request("flux", batch_size=4, height=512, steps=3)
    asked = plan.warmup_request(FLUX, request, plan.parse_warmup("batch=1, height=256"))
    assert asked == Request("flux", batch_size=1, height=256, steps=3)


@pytest.mark.parametrize(
    ("request_", "sizes", "message"),
    [
        (Request("mlp"), {"height": 256}, "mlp has no height: --warmup takes batch$"),
        (Request("flux"), {"height": 100}, "multiples of 16"),
        (Request("flux"), {"height": 33}, "--warmup height=33"),
        (Request("flux", height=33), {"width": 256}, "--height 33"),
        (Request("mlp"), {"batch_size": 1}, "--warmup batch=1 "),
        (Request("qwen2.5-vl"), {"batch_size": 2}, "leave --warmup out"),
    ],
)
def test_sizes_at_which_no_warm_up_can_be_made_are_refused(
    request_: Request, sizes: dict[str, int], message: str
) -> None:
    with pytest.raises(TracekitError, match=message):
        plan.warmup_request(find(request_.workload), request_, sizes)


def test_the_timed_sizes_that_a_workload_chooses_are_known_once_it_is_built() -> None:
    asked = {"batch_size": 1, "height": 512}
    assert plan.warmup_request(FLUX, Request("flux"), asked).height == 512
    with pytest.raises(TracekitError, match="--warmup batch=1, height=512 "):
        plan.refuse_timed_sizes(asked, make_settings())
    resized = {info.name for info in all_workloads() if info.resizes}
    assert resized == {"flux", "flux-schnell", "vit", "causal-lm", "mlp"}


def test_fresh_processes_that_warm_up_as_usual_are_not_mixed_with_a_warm_up_at_other_sizes() -> None:
    asked = plan.Plan(Request("mlp"), ("eager", "compiled"), None, False, "", warmup={"batch_size": 2})
    plan.refuse_warmup_beside_processes(replace(asked, timing=plan.TimingPlan(target_percent=2.0)))
    with pytest.raises(TracekitError, match="--warmup and --repeat-process and --startup and --verify-advice cannot"):
        plan.refuse_warmup_beside_processes(
            replace(asked, timing=plan.TimingPlan(repeats=2, startup=True), verify=True)
        )
    with pytest.raises(TracekitError, match="--nproc and --startup and --warmup cannot"):
        plan.refuse_processes_of_ranks(replace(asked, timing=plan.TimingPlan(startup=True)))


def test_the_rule_takes_what_was_asked_and_fills_in_the_rest() -> None:
    settings = make_settings(iterations=20)
    rule = plan.stopping_rule(plan.TimingPlan(), Request("flux"), settings)
    assert (rule.rounds, rule.target, rule.budget_seconds, rule.least) == (None, 0.01, 30.0, 20)
    asked = plan.stopping_rule(plan.TimingPlan(0.5, 60.0), Request("flux"), replace(settings, device="cpu"))
    assert (asked.target, asked.budget_seconds) == (0.005, 60.0)
    assert plan.stopping_rule(plan.TimingPlan(), Request("flux"), replace(settings, device="cpu")).budget_seconds == 3.0
    assert plan.stopping_rule(plan.TimingPlan(), Request("flux", iterations=7), settings).rounds == 7


def test_a_number_of_calls_and_a_rule_to_find_it_are_refused_together() -> None:
    with pytest.raises(TracekitError, match="leave out --target"):
        plan.plan_timing(True, 1.0, None, 0, False)
    assert plan.plan_timing(True, None, None, 2, True) == plan.TimingPlan(None, None, 2, True)


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        ("flux", "flux"),
        ("qwen2.5-vl", "qwen2.5-vl"),
        ("my_model.py:build", "my_model-build"),
        ("../some where/my model.py:make_it", "my-model-make_it"),
        ("package.module:build", "package.module-build"),
        ("hf:org/name", "hf-org-name"),
        ("hf:./my folder", "hf-my-folder"),
        ("diffusers:../x", "diffusers-x"),
        ("..", "own"),
        ("hf:/" + "." * 300 + "/m", "hf-m"),
        # Of a long path the end says most.
        ("hf:" + "/very-long" * 40 + "/model", "long-" + "very-long-" * 9 + "model"),
    ],
)
def test_a_run_folder_has_a_name_that_every_file_system_takes(workload: str, name: str) -> None:
    assert plan.folder_name(workload) == name


def test_a_folder_is_named_by_the_scope_without_what_shells_and_systems_take_for_themselves() -> None:
    def name(scope: str) -> str:
        return plan.place_of_run(plan.Plan(Request("mlp", scope=scope), ("eager", "compiled"), None, False, "")).name

    assert name("layers.*,head/x") == "mlp-compiled-layers.each+head_x"
    assert len(name("layer." * 100)) < 100
