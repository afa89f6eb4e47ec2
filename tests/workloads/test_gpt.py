"""A training step of the tiny GPT, in one process and over two ranks of gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.runs import ROOT

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


STEPS = """
import json, sys
import torch.distributed as dist
from tests.workloads.builds import build
dist.init_process_group("gloo")
losses = {}
for parallel in ("ddp", "fsdp2", "tp"):
    workload = build("gpt", parallel=parallel, nproc=2)
    losses[parallel] = [workload.call().item() for _ in range(2)]
if dist.get_rank() == 0:
    print(json.dumps(losses))
dist.destroy_process_group()
"""


@pytest.mark.slow
def test_spread_over_ranks_it_is_the_same_model(tmp_path: Path) -> None:
    script = tmp_path / "steps.py"
    script.write_text(STEPS)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    launcher = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script))
    done = subprocess.run(launcher, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("{")]
    loss = build("gpt").call().item()
    for losses in json.loads(line).values():
        assert losses == pytest.approx([loss, loss], rel=1e-5)
