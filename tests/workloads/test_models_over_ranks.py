"""Models spread over ranks: two of gloo's give what one process does. One job for all."""

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
import diffusers.pipelines.flux, torch, transformers
from torch.profiler import profile
from tests.workloads.builds import build
from tracekit.errors import TracekitError
from tracekit.workloads import causal_lm, flux
# Before the fork, or each rank would import it.
import torch._dynamo, torch._functorch.aot_autograd, torch.distributed.fsdp
"""
#: Its compiled form calls layers that are sharded as one, and none of those whose hooks gather weights layer by layer:
#: as where compiled blocks leave out the hooks of `fully_shard`.
PLANTED = """
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard


class Layers(nn.Sequential):
    def forward(self, x):
        for each in self:
            x = each(x).relu()
        return x


class Net(nn.Module):
    def __init__(self, mesh):
        super().__init__()
        self.gathered_singly, self.gathered_once = (Layers(*(nn.Linear(8, 8) for _ in range(3))) for _ in range(2))
        for each in self.gathered_singly:
            fully_shard(each, mesh=mesh)
        for each in (self.gathered_singly, self.gathered_once):
            fully_shard(each, mesh=mesh, reshard_after_forward=True)

    def forward(self, x):
        return (self.gathered_once if torch.compiler.is_compiling() else self.gathered_singly)(x)


def build(rank, world_size, mesh):
    assert (mesh.get_local_rank(), mesh.size()) == (rank, world_size)
    return Net(mesh).eval(), (torch.ones(2, 8),)
"""
CALLS = f"""
found = {{"sent": {{}}}}
for name in ("causal-lm", "flux"):
    workload = build(name, nproc=2)
    with profile() as recorded:
        found[name] = workload.call().flatten()[::{EVERY}].tolist()
    sent = sorted({{each.name for each in recorded.events() if each.name.startswith("c10d::")}})
    found["sent"][workload.settings.parallel] = sent
workload = build("causal-lm", nproc=2, phase="decode")
found["decode"] = workload.call().flatten()[::{EVERY}].tolist()
workload = build("causal-lm", nproc=2, scope="regional")
for target in workload.targets:
    target.module.compile(backend="aot_eager", fullgraph=True)
found["compiled"] = workload.call().flatten()[::{EVERY}].tolist()
workload, found["gathers"] = build("planted.py:build", "as built", nproc=2), []
for form in ("eager", "compiled"):
    for target in workload.targets if form == "compiled" else ():
        target.module.compile(backend="eager")
    workload.call()
    with profile() as recorded:
        workload.call()
    found["gathers"].append(sum(each.name == "c10d::_allgather_base_" for each in recorded.events()))
try:
    build("flux", nproc=2, parallel="ring")
except TracekitError as error:
    found["refused"] = str(error)
"""

#: The loss of two steps for each way to spread it, then the same for compiled blocks, with how many all-gathers one
#: step makes. What compiles is no C++.
STEPS = """
torch.compiler.reset()
plain, blocks = {}, {}
for parallel in ("ddp", "fsdp2", "tp"):
    workload = build("gpt", parallel=parallel, nproc=2)
    # Around the hooks of sharded blocks no graph is whole.
    assert workload.settings.fullgraph is (parallel != "fsdp2")
    plain[parallel] = [workload.call().item() for _ in range(2)]
regional = {"parallel": "fsdp2", "scope": "regional", "nproc": 2}
asked = {"eager": {}, "after": {}, "before": {"compile_order": "before-sharding"}}
for name, more in asked.items():
    workload = build("gpt", **regional, **more)
    for target in workload.targets if name != "eager" else ():
        target.module.compile(backend="aot_eager")
    losses = [workload.call().item() for _ in range(2)]
    with profile() as recorded:
        workload.call()
    gathers = sum(each.name == "c10d::_allgather_base_" for each in recorded.events())
    blocks[name] = [losses, gathers, workload.settings.compile_order]
found["gpt"] = [plain, blocks]
"""


of_one_job = pytest.mark.xdist_group("models over ranks")


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("models-over-ranks")
    (folder / "planted.py").write_text(PLANTED)
    return found_by_ranks(IMPORTS, CALLS + STEPS, folder)


@pytest.mark.slow
@of_one_job
@pytest.mark.parametrize(
    ("name", "workload", "asked"),
    [
        ("causal-lm", "causal-lm", {}),
        ("flux", "flux", {}),
        # A token after the prompt, with each rank's part of the cache.
        ("decode", "causal-lm", {"phase": "decode"}),
        # Layers that compile into one graph each.
        ("compiled", "causal-lm", {}),
    ],
)
def test_two_ranks_give_what_one_process_does(found: Any, name: str, workload: str, asked: dict[str, Any]) -> None:
    expected = built(workload, **asked).call().flatten()[::EVERY].tolist()
    assert found[name] == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
@of_one_job
def test_each_way_has_its_collectives_and_ring_attention_is_for_gpus(found: Any) -> None:
    assert "c10d::allreduce_" in found["sent"]["tp"] and "c10d::alltoall_base_" in found["sent"]["ulysses"]
    assert "--parallel ulysses" in found["refused"]
    # An own model gets its mesh and may gather otherwise when compiled.
    assert found["gathers"] == [3, 1]


@pytest.mark.slow
@of_one_job
def test_a_gpt_spread_over_ranks_is_the_same_model_whose_compiled_blocks_are_gathered_one_by_one(found: Any) -> None:
    plain, blocks = found["gpt"]
    loss = built("gpt").call().item()
    for losses in plain.values():
        assert losses == pytest.approx([loss, loss], rel=1e-5)
    # Both blocks and the rest in forward, the blocks again in backward.
    assert [gathers for _, gathers, _ in blocks.values()] == [5, 5, 5]
    for losses, *_ in blocks.values():
        assert losses == pytest.approx(blocks["eager"][0], rel=1e-5)
    assert [order for *_, order in blocks.values()] == ["after-sharding", "after-sharding", "before-sharding"]


@pytest.mark.parametrize(("heads", "shared", "ranks"), [(8, 1, 3), (8, 4, 8)])
def test_heads_that_cannot_be_split_are_refused(heads: int, shared: int, ranks: int) -> None:
    from transformers import GemmaConfig

    from tracekit.workloads.causal_lm import check_heads

    with pytest.raises(TracekitError, match=f"splits {heads} heads"):
        check_heads(GemmaConfig(num_attention_heads=heads, num_key_value_heads=shared), ranks)
    check_heads(GemmaConfig(num_attention_heads=heads, num_key_value_heads=shared), 4)


def test_tokens_and_heads_that_cannot_be_dealt_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from msgspec.structs import replace

    from tracekit.workloads import flux

    settings = replace(built("flux").settings, device="cuda", dtype="bfloat16", parallel="ring")
    monkeypatch.setattr(flux.dist, "get_world_size", lambda: 16)
    flux.check_split(settings, 24, (1024, 512))
    with pytest.raises(TracekitError, match="splits 1024 \\+ 500 tokens"):
        flux.check_split(settings, 24, (1024, 500))
    with pytest.raises(TracekitError, match="splits 24 heads and"):
        flux.check_split(replace(settings, parallel="ulysses"), 24, (1024, 512))
    with pytest.raises(TracekitError, match="float32"):
        flux.check_split(replace(settings, dtype="float32"), 24, (1024, 512))
