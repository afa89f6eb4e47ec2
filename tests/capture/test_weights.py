from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from tracekit.capture.forms import eager_form
from tracekit.capture.output_check import check_outputs, keep_weights
from tracekit.model.progress import Silent
from tracekit.model.run import UserModel
from tracekit.model.workload import BuiltWorkload, CompileTarget

from .conftest import make_workload


def training(*, own: bool = True) -> tuple[BuiltWorkload, Any]:
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    optimizer, x = torch.optim.SGD(net.parameters(), lr=0.5), torch.randn(8, 4)

    def step() -> object:
        loss = net(x).sin().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    built = make_workload(step, (CompileTarget("net", net),), own=UserModel() if own else None)
    return replace(built, modules=(("net", net),)), net


def test_weights_and_buffers_that_a_call_changes_are_put_back() -> None:
    workload, net = training()
    put_back = keep_weights(workload)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    workload.call()
    changed = [name for name, value in net.state_dict().items() if not torch.equal(value, before[name])]
    assert {"0.weight", "1.running_mean"} <= set(changed)
    put_back()
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_every_call_that_is_compared_begins_with_the_same_weights() -> None:
    workload, _ = training()
    found = check_outputs(workload, (eager_form(workload),), 0, Silent())["eager"].numerics
    assert found.against_itself is not None
    assert [each.equal_share for each in found.against_itself.tensors] == [1.0]
    assert found.reference_missing is not None


def test_a_model_that_learns_nothing_is_not_copied_back() -> None:
    workload, net = training()
    quiet = replace(workload, call=lambda: net[0](torch.ones(1, 4)))
    put_back = keep_weights(quiet)
    with torch.no_grad():
        net[0].weight.zero_()
    put_back()
    assert not net[0].weight.any()


def test_tracekits_own_models_are_not_called_for_it() -> None:
    workload, net = training(own=False)
    before = net[0].weight.clone()
    keep_weights(workload)
    assert torch.equal(net[0].weight, before)
