"""What can be asked of a call, and what each of it means for another call: the one list, for every room."""

from functools import partial
from typing import Literal, get_args

from msgspec import Struct

#: Those of torch.compile.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
#: Of these, those with CUDA graphs: a call's memory is used again once the next call is said to begin.
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
#: A command takes no larger number of timed calls: the work of judging them grows with it.
MOST_CALLS = 20_000
#: Nor a larger number of processes that time.
MOST_PROCESSES = 50
MOST_RANKS = 1024
#: A Request's `pretrained` for the weights that lie where the workload's configuration does.
OWN_WEIGHTS = "its own"
#: What a workload that draws is asked for where nobody gives a `prompt`.
DEFAULT_PROMPT = "A cat holding a sign that says hello world"

#: `prefill`: one forward over the prompts. `decode`: one forward over one token of each, the cache full of prompts.
Phase = Literal["generate", "prefill", "decode"]
CacheKind = Literal["dynamic", "static"]
#: How a model is spread over ranks: DistributedDataParallel, `fully_shard`, tensor parallel; its tokens, with attention
#: by Ulysses or ring.
Parallel = Literal["ddp", "fsdp2", "tp", "ulysses", "ring"]
#: Whether blocks are compiled as they are sharded, or first: `fully_shard` then has what torch.compile returned.
CompileOrder = Literal["after-sharding", "before-sharding"]
PHASES, CACHES, WAYS, ORDERS = map(get_args, (Phase, CacheKind, Parallel, CompileOrder))
DTYPES = ("bfloat16", "float16", "float32")

#: What a setting decides: which operators run (`model`); how large a call of one model in memory is (`call`); which
#: numbers are in it and where it runs (`origin`); how text is written, and after which prompt; what a user's `build()`
#: is called with (`own`); how it is compiled; the rest.
Role = Literal["model", "call", "origin", "generation", "prompt", "own", "compiling", "other"]
#: The roles that make two runs other work where their values differ, and those that make operators' sizes differ.
WORK: tuple[Role, ...] = ("model", "call", "origin")
SIZES: tuple[Role, ...] = ("model", "call")
#: The headings of `--help`, in their order.
GROUPS = ("Model", "Compile", "Timing", "Ranks", "Output")
#: What an option takes, if not a word of a few: any text; text that may be left out, which is OWN_WEIGHTS then; a whole
#: number, from 1 or any; nothing, as `--download`; nothing, or its opposite, as `--dynamic` and `--no-dynamic`.
TEXT, OPTIONAL, COUNT, INTEGER, FLAG, PAIR = "text", "optional", "count", "integer", "flag", "pair"


class Option(Struct, frozen=True):
    """A field of Request, Settings or Generation: its word in reports, and where it has `help` how a command takes it.
    `larger`: a greater one makes the tensors of a call larger, which needs memory. `everywhere`: every workload takes
    it. `cell`: another one makes another cell of a sweep. `axis` is its place in the order of a sweep's rows, of which
    the last changes from row to row; None where rows do not differ in it. `unsaid` is what a command that measures the
    work again need not say. `folder` is what it adds to the name of a run's folder where it is not the default."""

    name: str
    word: str
    role: Role
    takes: str | tuple[str, ...] = TEXT
    help: str = ""
    default: str | int | None = None
    most: int | None = None
    shown: str = ""
    axis: int | None = None
    larger: bool = False
    everywhere: bool = True
    cell: bool = True
    group: str = "Model"
    help_of_sweep: str = ""
    unsaid: str | int | bool | None = None
    folder: str = ""

    @property
    def option(self) -> str:
        """`--batch-size`."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def metavar(self) -> str | None:
        """What stands for the value in `--help`; None where there is none."""
        if self.takes in (FLAG, PAIR):
            return None
        return "N" if self.takes in (COUNT, INTEGER) else self.shown or self.name.upper()

    @property
    def several(self) -> bool:
        """Whether a sweep takes values between commas."""
        return self.axis is not None and self.takes != OPTIONAL


WIDTH = "Image width in pixels."
_some = partial(Option, everywhere=False)
_ranks = partial(_some, group="Ranks", most=MOST_RANKS, shown="KIND")
_compiling = partial(Option, role="compiling", group="Compile")

#: In the order in which commands have them.
OPTIONS = (
    Option("workload", "workload", "model", cell=False),
    Option("device", "device", "origin"),
    _compiling(
        "mode",
        "mode",
        takes=MODES,
        help=f"Mode of torch.compile: {', '.join(MODES)}.",
        help_of_sweep="eager, or modes of torch.compile (default eager,default).",
        default="default",
        axis=14,
        folder="{}",
    ),
    Option(
        "size",
        "model size",
        "model",
        TEXT,
        "full, small, tiny, or auto (default): the largest that fits.",
        "auto",
        axis=0,
    ),
    Option("dtype", "dtype", "model", DTYPES, "bfloat16 (default on a GPU), float16 or float32.", axis=2),
    _compiling(
        "scope",
        "scope",
        help="all, regional (repeated blocks) or modules: vit.layers.*,head.",
        help_of_sweep="What to compile: A,B measures each, A+B both together.",
        shown="PART",
        axis=13,
        folder="{}",
    ),
    Option("batch_size", "batch size", "call", COUNT, "Inputs per call (default 1).", 1, axis=10, larger=True),
    _some("height", "height", "call", COUNT, "Image height in pixels.", axis=8, larger=True),
    _some(
        "width",
        "width",
        "call",
        COUNT,
        WIDTH,
        axis=9,
        larger=True,
        help_of_sweep=f"{WIDTH[:-1]} (default: the height).",
    ),
    _some("seq_length", "sequence length", "call", COUNT, "Input sequence length in tokens.", axis=7, larger=True),
    _some("steps", "denoising steps", "call", COUNT, "Diffusion models: denoising steps per call.", axis=6),
    _some(
        "pretrained",
        "weights",
        "origin",
        OPTIONAL,
        "Real, not random weights: a model ID or folder.",
        shown="[ID|PATH]",
        axis=1,
    ),
    _some(
        "prompt",
        "prompt",
        "prompt",
        help="Prompt of a model that draws or writes text.",
        shown="TEXT",
        unsaid=DEFAULT_PROMPT,
    ),
    _some("phase", "phase", "generation", PHASES, "Text generation: generate, prefill or decode.", axis=3, folder="{}"),
    _some("cache", "cache", "generation", CACHES, "Text generation: KV cache, dynamic or static.", axis=4, folder="{}"),
    _some("max_new_tokens", "new tokens", "generation", COUNT, "Text generation: new tokens per call.", axis=5),
    _some("use_fast", "fast processor", "other", PAIR, "Image processor: torchvision (fast) or PIL."),
    Option(
        "seed",
        "seed",
        "other",
        INTEGER,
        "Random seed of weights, noise and run order (default 0).",
        0,
        cell=False,
        unsaid=0,
    ),
    _ranks("nproc", "ranks", "origin", COUNT, "Ranks, a GPU each; gloo on a CPU.", axis=11, folder="{}-ranks"),
    _ranks(
        "parallel", "parallelism", "model", WAYS, "Over ranks: ddp, fsdp2, tp, ulysses or ring.", axis=12, folder="{}"
    ),
    _some(
        "checkpoint",
        "activation checkpointing",
        "model",
        FLAG,
        "gpt: activation checkpointing of each block.",
        folder="checkpointed",
    ),
    _compiling(
        "compile_order",
        "order of compiling and sharding",
        takes=ORDERS,
        help="fsdp2, --scope regional: compile after-sharding (default) or before-sharding.",
        shown="ORDER",
        everywhere=False,
        unsaid="after-sharding",
        folder="{}",
    ),
    _compiling(
        "compiled_autograd",
        "compiled autograd",
        takes=FLAG,
        help="gpt: compile the whole backward, hooks too.",
        everywhere=False,
        folder="compiled-autograd",
    ),
    _compiling("dynamic", "dynamic shapes", takes=PAIR, help="Dynamic or static shapes (default: torch decides)."),
    # Most workloads ask for one graph unless told otherwise, and then end at the first break.
    _compiling("fullgraph", "fullgraph", takes=PAIR, help="Fail on a graph break, or allow graph breaks.", unsaid=True),
    Option(
        "iterations",
        "timed calls",
        "other",
        COUNT,
        "Time exactly N calls of each variant.",
        most=MOST_CALLS,
        group="Timing",
        cell=False,
    ),
    _some("download", "download", "other", FLAG, "Allow the download of model configurations (a few kB).", cell=False),
    _some("options", "options of build()", "own"),
)
#: Those that the command line has by their own names.
TYPED = tuple(each for each in OPTIONS if each.help)
BY_NAME = {each.name: each for each in OPTIONS}


def option_words(name: str, value: object) -> list[str]:
    """What sets this option on the command line: `batch_size` by `--batch-size 4`, `dynamic` by `--no-dynamic`. In a
    finding a flag's value is `True` or `False` as a word."""
    option = BY_NAME[name]
    if option.takes in (FLAG, PAIR):
        return [option.option if str(value) == "True" else f"--no-{option.option.removeprefix('--')}"]
    return [option.option, str(value)]


def words_of(*roles: Role) -> dict[str, str]:
    """The words of the options with one of these roles, by their names."""
    return {each.name: each.word for each in OPTIONS if each.role in roles}
