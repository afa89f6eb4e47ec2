from __future__ import annotations

import torch

from tracekit.capture.environment import read_environment


def test_a_cpu_run_claims_no_gpu() -> None:
    environment = read_environment("cpu")
    assert (environment.gpu, environment.gpu_memory_bytes, environment.driver) == (None, None, None)
    assert environment.packages["torch"] == torch.__version__
    assert environment.cpu_threads == torch.get_num_threads()
