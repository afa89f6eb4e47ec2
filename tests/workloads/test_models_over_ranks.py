"""Models that libraries spread over ranks: two of gloo's give what one process does. One job for all."""

from typing import Any

import pytest
from tests.forked_ranks import found_by_ranks

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("diffusers")

from tests.workloads.builds import built  # noqa: E402

from tracekit.errors import TracekitError  # noqa: E402

#: What is shown of an output: some of its numbers.
EVERY = 97
IMPORTS = """
import diffusers.pipelines.flux, transformers
from torch.profiler import profile
from tests.workloads.builds import build
from tracekit.errors import TracekitError
from tracekit.workloads import causal_lm, flux
"""
CALLS = f"""
found = {{}}
for name in ("causal-lm", "flux"):
    workload = build(name, nproc=2)
    with profile() as recorded:
        output = workload.call()
    sent = sorted({{each.name for each in recorded.events() if each.name.startswith("c10d::")}})
    found[name] = [workload.settings.parallel, output.flatten()[::{EVERY}].tolist(), sent]
workload = build("causal-lm", nproc=2, scope="regional")
for target in workload.targets:
    target.module.compile(backend="aot_eager", fullgraph=True)
found["compiled"] = workload.call().flatten()[::{EVERY}].tolist()
try:
    build("flux", nproc=2, parallel="ring")
except TracekitError as error:
    found["refused"] = str(error)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return found_by_ranks(IMPORTS, CALLS, tmp_path_factory.mktemp("models"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parallel", "collective"),
    [("causal-lm", "tp", "c10d::allreduce_"), ("flux", "ulysses", "c10d::alltoall_base_")],
)
def test_two_ranks_give_what_one_process_does(found: Any, name: str, parallel: str, collective: str) -> None:
    way, some, sent = found[name]
    assert way == parallel and collective in sent
    assert some == pytest.approx(built(name).call().flatten()[::EVERY].tolist(), abs=1e-4)


@pytest.mark.slow
def test_layers_of_a_rank_compile_into_one_graph_each(found: Any) -> None:
    assert found["compiled"] == pytest.approx(found["causal-lm"][1], abs=1e-4)


@pytest.mark.slow
def test_ring_attention_is_for_gpus(found: Any) -> None:
    assert "--parallel ulysses" in found["refused"]


@pytest.mark.parametrize(("heads", "shared", "ranks"), [(8, 1, 3), (8, 4, 8)])
def test_heads_that_cannot_be_split_are_refused(heads: int, shared: int, ranks: int) -> None:
    from transformers import GemmaConfig

    from tracekit.workloads.tensor_parallel import check_heads

    with pytest.raises(TracekitError, match=f"splits {heads} heads"):
        check_heads(GemmaConfig(num_attention_heads=heads, num_key_value_heads=shared), ranks)
    check_heads(GemmaConfig(num_attention_heads=heads, num_key_value_heads=shared), 4)


def test_tokens_and_heads_that_cannot_be_dealt_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    from tracekit.workloads import context_parallel

    settings = replace(built("flux").settings, device="cuda", dtype="bfloat16", parallel="ring")
    monkeypatch.setattr(context_parallel.dist, "get_world_size", lambda: 16)
    context_parallel.check_split(settings, 24, (1024, 512))
    with pytest.raises(TracekitError, match="splits 1024 \\+ 500 tokens"):
        context_parallel.check_split(settings, 24, (1024, 500))
    with pytest.raises(TracekitError, match="splits 24 heads and"):
        context_parallel.check_split(replace(settings, parallel="ulysses"), 24, (1024, 512))
    with pytest.raises(TracekitError, match="float32"):
        context_parallel.check_split(replace(settings, dtype="float32"), 24, (1024, 512))
