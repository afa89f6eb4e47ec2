"""Ray on this machine."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def cluster() -> Iterator[Any]:
    """Ray on this machine, of two CPUs and two GPUs that are not there; its processes end with the block."""
    ray = pytest.importorskip("ray")
    # Ray asks for those that it is to hand out.
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    ray.init("local", num_cpus=2, num_gpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield ray
    finally:
        ray.shutdown()
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
