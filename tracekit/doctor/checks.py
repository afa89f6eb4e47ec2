"""Every check, in the order a broken machine is mended."""

from collections.abc import Callable
from functools import partial

from tracekit.doctor import Check, environment, gpu, toolchain

#: Each check by the name that it is told under.
CHECKS: dict[str, Callable[[], Check]] = {
    "python": environment.check_python_version,
    "torch": environment.check_torch_build,
    "host load": environment.check_host_load,
    "driver": gpu.check_driver,
    "gpu": gpu.check_gpu,
    "gpu memory": gpu.check_gpu_memory,
    "triton": toolchain.check_triton_kernel,
    "c compiler": toolchain.check_c_compiler,
    "c++ compiler": toolchain.check_cpp_compiler,
    "python headers": toolchain.check_python_headers,
    "setuptools": toolchain.check_setuptools,
    "torch.compile": environment.check_compile_switches,
    "profiler": gpu.check_profiler_access,
    "diffusers": partial(environment.check_library, "diffusers"),
    "transformers": partial(environment.check_library, "transformers"),
    "hugging face cache": environment.check_hugging_face_cache,
    "hugging face token": environment.check_hugging_face_token,
    "inductor cache": environment.check_inductor_cache,
}


def answer(ask: Callable[[], Check]) -> Check:
    """What the check found. A check that breaks has found something too: a problem, told with its error."""
    try:
        return ask()
    except Exception as error:  # noqa: BLE001
        said = (str(error).strip() or "no message").splitlines()[0]
        return Check(
            "problem",
            f"the check itself failed: {type(error).__name__}: {said}",
            "report this line as a bug of tracekit",
        )
