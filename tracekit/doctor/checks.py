"""Every check, in the order a broken machine is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tracekit.doctor import Check, environment, gpu, problem, toolchain


@dataclass(frozen=True, slots=True)
class Question:
    """A check that can be asked for; `name` is told while it is on its way."""

    name: str
    ask: Callable[[], Check]


QUESTIONS: tuple[Question, ...] = (
    Question("python", environment.check_python_version),
    Question("torch", environment.check_torch_build),
    Question("driver", gpu.check_driver),
    Question("gpu", gpu.check_gpu),
    Question("gpu memory", gpu.check_gpu_memory),
    Question("triton", toolchain.check_triton_kernel),
    Question("c compiler", toolchain.check_c_compiler),
    Question("c++ compiler", toolchain.check_cpp_compiler),
    Question("python headers", toolchain.check_python_headers),
    Question("setuptools", toolchain.check_setuptools),
    Question("torch.compile", environment.check_compile_switches),
    Question("profiler", gpu.check_profiler_access),
    Question("diffusers", partial(environment.check_library, "diffusers")),
    Question("transformers", partial(environment.check_library, "transformers")),
    Question("hugging face cache", environment.check_hugging_face_cache),
    Question("hugging face token", environment.check_hugging_face_token),
    Question("inductor cache", environment.check_inductor_cache),
)


def answer(question: Question) -> Check:
    """What the check found. A check that breaks has found something too: a problem, told with its error."""
    try:
        return question.ask()
    except Exception as error:  # noqa: BLE001
        said = (str(error).strip() or "no message").splitlines()[0]
        return problem(question.name, f"the check broke: {type(error).__name__}: {said}", "tell us, with this line")
