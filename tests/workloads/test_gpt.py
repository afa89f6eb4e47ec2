"""A training step of the tiny GPT, in one process and over two ranks of gloo."""

from pathlib import Path

import pytest
from tests.forked_ranks import found_by_ranks

torch = pytest.importorskip("torch")

from tests.workloads.builds import build  # noqa: E402


def test_a_step_learns_nothing_and_is_the_same_every_time() -> None:
    workload = build("gpt", batch_size=2)
    model = workload.modules[0][1]
    before = {name: each.clone() for name, each in model.state_dict().items()}
    first, again = workload.call(), workload.call()
    assert first.shape == () and torch.isfinite(first) and torch.equal(first, again)
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())
    assert all(each.grad is None for each in model.parameters())
    # The loss of guessing among 512 words.
    assert first.item() == pytest.approx(6.24, abs=0.5)


def test_checkpoints_and_the_length_of_a_sequence_change_the_call_not_its_kind() -> None:
    plain, less = build("gpt"), build("gpt", checkpoint=True)
    assert torch.allclose(plain.call(), less.call())
    assert less.settings.checkpoint and build("gpt", seq_length=8).settings.seq_length == 8


#: The loss of two steps for each way to spread it, then the same for compiled blocks, with how many all-gathers one
#: step makes. What compiles is no C++.
STEPS = """
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
found = [plain, blocks]
"""


@pytest.mark.slow
def test_spread_over_ranks_it_is_the_same_model_whose_compiled_blocks_are_gathered_one_by_one(tmp_path: Path) -> None:
    imports = "from torch.profiler import profile; from tests.workloads.builds import build"
    plain, blocks = found_by_ranks(imports, STEPS, tmp_path)
    loss = build("gpt").call().item()
    for losses in plain.values():
        assert losses == pytest.approx([loss, loss], rel=1e-5)
    # Both blocks and the rest in forward, the blocks again in backward.
    assert [gathers for _, gathers, _ in blocks.values()] == [5, 5, 5]
    for losses, *_ in blocks.values():
        assert losses == pytest.approx(blocks["eager"][0], rel=1e-5)
    assert [order for *_, order in blocks.values()] == ["after-sharding", "after-sharding", "before-sharding"]
