"""`tracekit doctor` where there is a GPU to look at."""

import os
import subprocess
import sys

from tracekit.doctor.gpu import check_gpu, check_gpu_memory, check_profiler_access, count_recorded_kernels
from tracekit.doctor.toolchain import check_triton_kernel
from tracekit.nvml import Driver, read_driver


def test_the_driver_and_torch_name_the_same_gpu() -> None:
    driver = read_driver()
    assert isinstance(driver, Driver)
    # The driver counts every GPU of the host, torch those of CUDA_VISIBLE_DEVICES.
    assert any(name in check_gpu().message for name in driver.gpus)


def test_triton_builds_and_runs_a_kernel() -> None:
    found = check_triton_kernel()
    assert found.status == "ok", found


def test_triton_without_a_working_compiler_is_a_problem() -> None:
    # In a process of its own: here the kernel of the test above is still loaded.
    code = "from tracekit.doctor.toolchain import check_triton_kernel as check; print(check().message)"
    environment = {**os.environ, "CC": "/bin/false", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code]
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300).stdout
    assert said.endswith(" cannot build a kernel: /bin/false ended with exit code 1\n")


def test_the_profiler_sees_every_kernel_it_is_given() -> None:
    assert check_profiler_access().status == "ok"
    # Three products and three multiplications by a half.
    assert count_recorded_kernels() == 6


def test_free_memory_is_told() -> None:
    assert "GiB free" in check_gpu_memory().message
