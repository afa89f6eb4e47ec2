"""A training step of the tiny GPT in one process; over ranks it is in test_models_over_ranks.py."""

import pytest

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
