"""What recording adds to the host, in three processes; and whether it explains how much longer a loop takes.

    python -m benchmarks.recording_cost

Needs a GPU, takes under 30 s. The loop is a transformer layer, eager: its launches times `launch`, and one `sync`, are
what it should take longer by.
"""

# ruff: noqa: T201

import subprocess
import sys
import time
from statistics import median

import torch
from torch.autograd import DeviceType

from tracekit.measure.recording import begin_session, profiler_of
from tracekit.measure.recording_cost import measure_recording_cost
from tracekit.model.progress import Silent
from tracekit.model.recording_cost import EventCosts

CALLS = 20


def show() -> None:
    layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True, device="cuda").eval()
    x = torch.randn(1, 16, 256, device="cuda")

    def call_us() -> float:
        began = time.perf_counter_ns()
        layer(x)
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - began) / 1e3

    # With gradients, so that no fused layer takes its place.
    unprofiled = median([call_us() for _ in range(3 * CALLS)][CALLS:])
    began = time.monotonic()
    cost = measure_recording_cost("cuda", Silent(), triton=True)
    assert cost is not None
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: measured in {time.monotonic() - began:.2f} s")
    for name in EventCosts.__struct_fields__:
        ranges = [getattr(each, name) for each in (cost.light, cost.rich)]
        said = [f"{each.us:6.2f} ({each.low:.2f} to {each.high:.2f})" if each else "none" for each in ranges]
        print(f"  {name:12} light {said[0]:26} rich {said[1]}")
    for kind, costs in (("light", cost.light), ("rich", cost.rich)):
        with profiler_of("cuda", kind) as profiler:  # type: ignore[arg-type]
            begin_session("cuda")
            call_us()
            recorded = median(call_us() for _ in range(CALLS))
        on_gpu = sum(event.device_type == DeviceType.CUDA for event in profiler.events() or ())
        launches = on_gpu // (CALLS + 1)
        expected = [launches * getattr(costs.launch, at) + getattr(costs.sync, at) for at in ("low", "us", "high")]
        print(
            f"  a layer, {kind}: {unprofiled:.0f} -> {recorded:.0f} us, +{recorded - unprofiled:.0f};"
            f" expected of {launches} launches +{expected[1]:.0f} ({expected[0]:.0f} to {expected[2]:.0f})"
        )


if __name__ == "__main__":
    if sys.argv[1:] == ["once"]:
        show()
    else:
        for _ in range(3):
            subprocess.run([sys.executable, "-m", "benchmarks.recording_cost", "once"], check=True)
