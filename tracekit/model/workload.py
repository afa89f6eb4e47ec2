"""What can be run, described without importing torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from tracekit.model.bounded import Argument, Calls, Count, Many, Whole, Word
from tracekit.model.option import CacheKind, CompileOrder, Parallel, Phase
from tracekit.model.run import Component, Settings

if TYPE_CHECKING:
    from torch import nn


class Workload(Struct, frozen=True, kw_only=True):
    """What `build()` may return where a module with inputs, or a callable, does not say enough.

    `call` makes one measured call, always the same work, and returns its output. `modules` are the model's parts by
    name: names in reports begin with them. `compiled` names those that are compiled, all of them if None. `call_at(n)`
    gives a call of the same model at batch size n, for `--warmup batch=n`. `title` says what the model is and `notes`
    what a reader of the report must know; both stand in the report.
    """

    call: Callable[[], object]
    modules: Mapping[str, nn.Module]
    compiled: tuple[str, ...] | None = None
    call_at: Callable[[int], Callable[[], object]] | None = None
    title: str | None = None
    notes: tuple[str, ...] = ()


class Part(Struct, frozen=True):
    """`name` is what `--scope` takes: a module's, or `LIST.*` for the members of a list of modules, which is never
    called itself. `kind` is the module's class, in a list that of its members. Parameters in several places count with
    the first part that has them."""

    name: str
    kind: str
    parameters: int


class WorkloadInfo(Struct, frozen=True):
    """One line of `tracekit workloads`. `sizes` maps a size's name to what it is, largest first. `scopes` maps what
    `--scope` accepts to what it compiles, the default first. `module` is where it is built, imported only to run it.
    `memory_gib` is what each size needs on a GPU in bfloat16, weights and activations, at its default settings; empty
    until its configuration was read, and where nobody knows. `takes` names the fields of a Request that not every
    workload has and this one does. Heights and widths are multiples of `pixel_step`; None where they cannot be chosen.
    `dtype` is what it runs in on every device where nobody chooses; None for bfloat16 on a GPU and float32 on a CPU.
    `resizes` says that one model in memory can be called at other sizes (`BuiltWorkload.call_at`). `inputs` and
    `parameters` are those of the largest size at batch 1, `breaks` what is known of graph breaks; None where nobody
    knows yet. `checkpoints` names the published weights of sizes, by size. `megapixel_gib` is what a further million
    pixels of a call's images need in bfloat16; None where that was not measured. `needs_only_torch` is whether its
    module imports torch and no library of models, which would import most of the compiler too. `parallel` are the ways
    to spread it over ranks, the default first; `heads`, by size, what tensor parallel and Ulysses deal out to them."""

    name: str
    title: str
    module: str
    sizes: dict[str, str]
    memory_gib: dict[str, float]
    scopes: dict[str, str]
    fullgraph: bool
    extra: str = "profile"
    takes: tuple[str, ...] = ()
    pixel_step: int | None = None
    resizes: bool = False
    dtype: str | None = None
    inputs: str | None = None
    parameters: int | None = None
    breaks: str | None = None
    checkpoints: dict[str, str] = field(default_factory=dict)
    megapixel_gib: float | None = None
    needs_only_torch: bool = False
    parallel: tuple[Parallel, ...] = ()
    heads: dict[str, int] = field(default_factory=dict)


#: A workload's `breaks` where torch.compile was made to give one graph or fail, at tiny size, and gave it.
NO_BREAKS = "none: one graph at tiny size"

#: The size of real weights that are none of the list's.
THEIR_SIZE = "its own"


class Request(Struct, frozen=True):
    """What the user asked for. None leaves the choice to the workload and the machine."""

    workload: Word
    size: Argument = "auto"
    dtype: Argument | None = None
    scope: Argument | None = None
    mode: Argument = "default"
    fullgraph: bool | None = None
    dynamic: bool | None = None
    batch_size: Count = 1
    height: Count | None = None
    width: Count | None = None
    steps: Count | None = None
    prompt: Argument | None = None
    pretrained: Word | None = None
    seed: Whole = 0
    iterations: Calls | None = None
    max_new_tokens: Count | None = None
    use_fast: bool | None = None
    cache: CacheKind | None = None
    phase: Phase | None = None
    options: Many[Argument] = ()  #: For a model of the user's own, each as NAME=VALUE.
    seq_length: Count | None = None
    download: bool | None = None
    parallel: Parallel | None = None
    checkpoint: bool | None = None
    compile_order: CompileOrder | None = None
    compiled_autograd: bool | None = None
    nproc: Count | None = None  #: Ranks, each a process; None for one process without a process group.


class CompileTarget(Struct, frozen=True):
    """A callable of the model that the chosen scope compiles: `module` itself, or one `method` of it."""

    component: str
    module: nn.Module
    method: str = "forward"


class BuiltWorkload(Struct, frozen=True):
    """A workload in memory. `call` is one measured call with fixed inputs; it returns the model's output.

    `targets` is what the settings' scope compiles. `notes` is what a reader of the report must know of the inputs.
    `modules` are the model's parts by name, from which everything inside them is named; what is in none has no name.
    `call_at` makes a call of the same model with the sizes of another request (batch, height, width, steps); None for a
    workload that cannot. `trial` makes a first call of code that nobody has tried yet, and raises TracekitError in its
    owner's words if that fails; None for tracekit's own. `targets_of` tells what each scope that the list names
    compiles; None where there is one.
    """

    info: WorkloadInfo
    settings: Settings
    call: Callable[[], object]
    targets: tuple[CompileTarget, ...]
    components: tuple[Component, ...]
    notes: tuple[str, ...]
    modules: tuple[tuple[str, nn.Module], ...] = ()
    call_at: Callable[[Request], Callable[[], object]] | None = None
    trial: Callable[[], None] | None = None
    targets_of: Callable[[str], tuple[CompileTarget, ...]] | None = None
