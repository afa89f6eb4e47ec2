"""torch.compile: can it make code here, is it at work, how much has it compiled, and where is that kept? The only file
that reads Dynamo's counters.

Callbacks (`torch._dynamo.callback`), counters (`torch._dynamo.utils.counters`) and what is used of Inductor are private
to torch; their names were the same from 2.9 to 2.15. Counters are global to the process, so only differences are used.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MethodType
from typing import Any, NoReturn

import torch
from torch import nn

from tracekit.doctor.gpu import OLDEST_CAPABILITY
from tracekit.doctor.toolchain import triton_requirement
from tracekit.errors import TracekitError
from tracekit.measure.source_location import CALLING_METHODS
from tracekit.model.run import Settings
from tracekit.model.workload import CompileTarget
from tracekit.statements.noted import NoCudaGraphsOnCpu


@dataclass
class CompilationWatch:
    """What has been compiled since the watch began. `compilations` counts compile events: frames that Dynamo traced and
    CUDA graphs that were recorded."""

    compilations: int = 0
    #: Whether torch.compiler.reset() took the watch away, known at the end. What was compiled after is not counted.
    lost: bool = False
    #: Called as each begins, with how many of its kind there are now, and whether it is a CUDA graph that is recorded.
    on_start: Callable[[int, bool], None] | None = None
    _recordings: int = field(default=0, repr=False)
    _before: dict[str, int] = field(default_factory=lambda: read_counters(), repr=False)

    def start(self, event: Any) -> None:
        self.compilations += 1
        recording = "CUDAGRAPH" in str(getattr(event, "callback_trigger", ""))
        self._recordings += recording
        if self.on_start:
            self.on_start(self._recordings if recording else self.compilations - self._recordings, recording)

    def since_start(self, counter: str) -> int:
        """How much one of `read_counters()` has grown since the watch began."""
        return read_counters()[counter] - self._before[counter]

    def graphs_from_cache(self) -> int:
        """Those of which caches on disk held all: of a graph that trains Inductor compiles the backward apart.
        AOTAutograd's cache knows both as one; where it takes no part, each of Inductor's misses spoils one graph."""
        hits, misses, graphs = (self.since_start(each) for each in ("cache_hits", "cache_misses", "graphs"))
        return min(graphs, max(self.since_start("graphs_cached"), graphs - misses if hits else 0))


@contextmanager
def watch_compilation(on_start: Callable[[int, bool], None] | None = None) -> Iterator[CompilationWatch]:
    """Watches every compilation of this process until the block ends. Raises TracekitError where this torch cannot be
    watched: without it nobody knows when a form is warm."""
    try:
        from torch._dynamo.callback import callback_handler

        register, remove = callback_handler.register_start_callback, callback_handler.remove_start_callback
    except (ImportError, AttributeError):
        _refuse_torch("for the start of a compilation")
    watch = CompilationWatch(on_start=on_start)
    register(watch.start)
    try:
        yield watch
    finally:
        try:
            remove(watch.start)
        except ValueError:
            watch.lost = True


@dataclass
class CompileClock:
    """How long compiling has taken, in nanoseconds."""

    ns: int = 0
    _began_ns: int = field(default=0, repr=False)

    def start(self, _event: Any) -> None:
        self._began_ns = time.perf_counter_ns()

    def end(self, _event: Any) -> None:
        self.ns += time.perf_counter_ns() - self._began_ns if self._began_ns else 0


@contextmanager
def compile_clock() -> Iterator[CompileClock]:
    """Times every compilation of this process until the block ends, as torch's callbacks enclose them. Raises
    TracekitError where this torch has none."""
    try:
        from torch._dynamo.callback import callback_handler as handler

        handler.register_start_callback((clock := CompileClock()).start)
        handler.register_end_callback(clock.end)
    except (ImportError, AttributeError):
        _refuse_torch("for the end of a compilation")
    try:
        yield clock
    finally:
        # torch.compiler.reset() takes them away.
        with suppress(ValueError):
            handler.remove_start_callback(clock.start)
        with suppress(ValueError):
            handler.remove_end_callback(clock.end)


def _refuse_torch(what: str) -> NoReturn:
    raise TracekitError(f"torch {torch.__version__} has no known API {what}; install torch 2.9 to 2.15") from None


def _find(path: str) -> Any:
    """What torch has under this path, a module or what one holds; None where this torch has nothing."""
    owner, _, name = path.rpartition(".")
    with suppress(ImportError):
        module = import_module(owner)
        return getattr(module, name) if hasattr(module, name) else import_module(path)
    return None


def dynamo_counters() -> Any:
    """Dynamo's counters, by group and name: what was never counted is 0. Raises TracekitError where there are none."""
    counters = _find("torch._dynamo.utils.counters")
    return counters if counters is not None else _refuse_torch("for counting graphs")


def read_counters() -> dict[str, int]:
    """The counters tracekit reports, as they stand in this process."""
    counters = dynamo_counters()
    return {
        "graphs": int(counters["stats"]["unique_graphs"]),
        "graph_breaks": sum(counters["graph_break"].values()),
        "cache_hits": int(counters["inductor"]["fxgraph_cache_hit"]),
        "cache_misses": sum(int(counters["inductor"][f"fxgraph_cache_{why}"]) for why in ("miss", "bypass")),
        "graphs_cached": int(counters["aot_autograd"]["autograd_cache_hit"]),
    }


def _dynamo_config() -> Any:
    return _find("torch._dynamo.config") or _refuse_torch("for Dynamo's settings")


def room_for(targets: tuple[CompileTarget, ...]) -> Callable[[], AbstractContextManager[Any]]:
    """Inside what it makes, no block of a scope is left eager for being one of many: Dynamo compiles a function eight
    times (`recompile_limit`). Blocks of one class share one function where they differ in the shapes of their
    parameters, or in a number of theirs, as their place in a cache; each is compiled twice at most, the second time for
    any size. Where the limit is enough, nothing is changed."""
    config = _dynamo_config()
    kinds: dict[type, set[tuple[object, ...]]] = defaultdict(set)
    for target in targets:
        shapes = (each.shape for each in target.module.parameters())
        numbers = (each for part in target.module.modules() for each in vars(part).values() if type(each) is int)
        kinds[type(target.module)].add((*shapes, *numbers))
    most = 2 * max((len(each) for each in kinds.values()), default=0)
    return partial(config.patch, recompile_limit=most) if most > config.recompile_limit else nullcontext


def callable_of(module: nn.Module) -> Callable[..., Any]:
    """The module's call as Dynamo can begin at it. It begins at no method of torch's own modules: `nn.Sequential` would
    be compiled child by child and `nn.Linear` not at all, so that these get a frame around them, as torch.compile of a
    module gives them. What is called here is private to torch.
    """
    call: Callable[..., Any] | None = getattr(module, CALLING_METHODS[0], None)
    if call is None:
        _refuse_torch("for the call of a module")
    wrap_inline = _find("torch._dynamo.external_utils.wrap_inline")
    return wrap_inline(call) if wrap_inline and is_of_torch(module) else call


def is_of_torch(module: nn.Module) -> bool:
    """Whether the module's forward is torch's own, at which Dynamo does not begin."""
    check = _find("torch._dynamo.trace_rules.check")
    # Hooks of libraries put other callables there, which torch does not ask about either.
    return bool(check and isinstance(module.forward, MethodType) and check(module.forward))


def dynamo_errors(*names: str) -> tuple[type[Exception], ...]:
    """Dynamo's errors of these names. What this torch calls otherwise is passed on as it is."""
    errors = _find("torch._dynamo.exc")
    return tuple(getattr(errors, name) for name in names if hasattr(errors, name))


def check_compilers(device: str) -> None:
    """Raises TracekitError for whatever keeps torch.compile from making code for the device. Asked before anything is
    built, for building a model may take minutes."""
    config = _dynamo_config()
    if getattr(config, "disable", False):
        # Everything would run eager, in silence.
        raise TracekitError(
            "torch.compile is disabled by the environment: unset TORCH_COMPILE_DISABLE and TORCHDYNAMO_DISABLE"
        )
    if device == "cpu":
        _check_cpp_compiler()
        return
    if not torch.cuda.is_available():
        return
    # GPUs that are not NVIDIA's count their capabilities differently.
    major, minor = (99, 0) if torch.version.hip else torch.cuda.get_device_capability()
    if (major, minor) < OLDEST_CAPABILITY:
        raise TracekitError(
            f"{torch.cuda.get_device_name()} has compute capability {major}.{minor}, and torch.compile needs 7.0"
            " (Volta) or newer: leave --compiled out, or use another GPU"
        )
    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise TracekitError(
            f"torch.compile needs triton on a GPU and it cannot be imported ({error}):"
            f" pip install '{triton_requirement()}'"
        ) from None


def _check_cpp_compiler() -> None:
    find_compiler = _find("torch._inductor.cpp_builder.get_cpp_compiler")
    no_compiler = _find("torch._inductor.exc.InvalidCxxCompiler")
    if not find_compiler or not no_compiler:
        return
    try:
        find_compiler()
    except no_compiler:
        raise TracekitError(
            "torch.compile on a CPU needs a working C++ compiler: apt install g++, or set CXX; `tracekit doctor` checks"
            " it"
        ) from None


def recording_options(device: str, mode: str = "default", dynamic: bool | None = None) -> dict[str, Any]:
    """Options of torch.compile under which compiled code shows its kernels to the profiler, with those of the mode,
    since torch.compile takes the one or the other; empty where nothing is needed.

    On the CPU Inductor's fused C++ kernels record no event unless asked to at compile time; on a GPU they do. Without
    that setting in this torch, fused C++ kernels are simply absent from the recording. It is no setting for the time
    of a call: changing Inductor's configuration made the calls after it 13 % slower (the MLP, 0.16 ms).
    """
    if device != "cpu":
        return {}
    of_mode = _mode_options(mode, dynamic)
    if of_mode is None or not hasattr(inductor_config().cpp, "enable_kernel_profile"):
        return {}
    return {**of_mode, "cpp.enable_kernel_profile": True}


def drawing_as_eager(settings: Settings) -> dict[str, Any] | None:
    """Arguments of torch.compile, in place of those of the settings, for code that draws the random numbers that eager
    code draws, by the same kernels: other code than what is timed. None where this torch has no such code in the
    mode."""
    of_mode = _mode_options(settings.mode, settings.dynamic)
    if of_mode is None or not hasattr(inductor_config(), "fallback_random"):
        return None
    return {"mode": None, "options": {**of_mode, "fallback_random": True}}


def _mode_options(mode: str, dynamic: bool | None) -> dict[str, Any] | None:
    list_mode_options = _find("torch._inductor.list_mode_options")
    return list_mode_options and list_mode_options(mode, dynamic)


def inductor_config() -> Any:
    """Inductor's settings, of which each user looks whether those it needs are there."""
    return _find("torch._inductor.config") or _refuse_torch("for Inductor's settings")


def idle_mode(settings: Settings) -> NoCudaGraphsOnCpu | None:
    """What of the mode does nothing on this device; None where all of it works."""
    if settings.device != "cpu" or settings.mode not in ("reduce-overhead", "max-autotune"):
        return None
    return NoCudaGraphsOnCpu(settings.mode)


def cache_is_empty() -> bool | None:
    """Whether the folder of Inductor's cache holds no file at all; None where this torch does not say which folder it
    is. Results of autotuning and Triton's kernels lie there too, which no counter of cached graphs knows of."""
    cache_dir = _find("torch._inductor.runtime.cache_dir_utils.cache_dir")
    return None if cache_dir is None else not any(path.is_file() for path in Path(cache_dir()).rglob("*"))


def compiled_backward(settings: Settings, options: dict[str, Any]) -> Callable[[], AbstractContextManager[Any]]:
    """What backward is compiled inside of, with these arguments of torch.compile, where compiled autograd was asked
    for: then it is traced too, with what hooks of it do, and compiled as one. Otherwise torch.compile compiles the
    backward of each of its graphs, and autograd runs the rest. Raises TracekitError where this torch keeps it
    otherwise."""
    if not settings.compiled_autograd:
        return nullcontext
    # The documented switch, `torch._dynamo.config.compiled_autograd`, holds only inside of compiled code, and
    # `backward()` is called outside.
    enable = _find("torch._dynamo.compiled_autograd._enable")
    if enable is None:
        raise TracekitError(
            f"torch {torch.__version__} has no known API for compiled autograd; leave --compiled-autograd out"
        )
    # Hooks of FSDP break the graph wherever they stand.
    compiler = partial(torch.compile, **{**options, "fullgraph": False})
    return partial(enable, compiler, dynamic=bool(settings.dynamic))
