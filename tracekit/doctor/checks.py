"""Every check, in the order a broken machine is mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tracekit.doctor.build_tools import check_setuptools
from tracekit.doctor.c_compiler import check_c_compiler, check_cpp_compiler
from tracekit.doctor.check import Check, problem
from tracekit.doctor.compile_switches import check_compile_switches
from tracekit.doctor.driver import check_driver
from tracekit.doctor.gpu import check_gpu
from tracekit.doctor.gpu_memory import check_gpu_memory
from tracekit.doctor.hugging_face import check_cache, check_token
from tracekit.doctor.inductor_cache import check_inductor_cache
from tracekit.doctor.model_libraries import check_diffusers, check_transformers
from tracekit.doctor.profiler_access import check_profiler_access
from tracekit.doctor.python_headers import check_python_headers
from tracekit.doctor.python_version import check_python_version
from tracekit.doctor.torch_build import check_torch_build
from tracekit.doctor.triton_kernel import check_triton_kernel


@dataclass(frozen=True, slots=True)
class Question:
    """A check that can be asked for; `name` is told while it is on its way."""

    name: str
    ask: Callable[[], Check]


QUESTIONS: tuple[Question, ...] = (
    Question("python", check_python_version),
    Question("torch", check_torch_build),
    Question("driver", check_driver),
    Question("gpu", check_gpu),
    Question("gpu memory", check_gpu_memory),
    Question("triton", check_triton_kernel),
    Question("c compiler", check_c_compiler),
    Question("c++ compiler", check_cpp_compiler),
    Question("python headers", check_python_headers),
    Question("setuptools", check_setuptools),
    Question("torch.compile", check_compile_switches),
    Question("profiler", check_profiler_access),
    Question("diffusers", check_diffusers),
    Question("transformers", check_transformers),
    Question("hugging face cache", check_cache),
    Question("hugging face token", check_token),
    Question("inductor cache", check_inductor_cache),
)


def answer(question: Question) -> Check:
    """What the check found. A check that breaks has found something too: a problem, told with its error."""
    try:
        return question.ask()
    except Exception as error:  # noqa: BLE001
        said = (str(error).strip() or "no message").splitlines()[0]
        return problem(question.name, f"the check broke: {type(error).__name__}: {said}", "tell us, with this line")
