"""What can be asked of a call, and what each of it means for another call: the one list, for every room."""

from typing import Literal

from msgspec import Struct

#: Those of torch.compile.
MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
#: Of these, those with CUDA graphs: a call's memory is used again once the next call is said to begin.
CUDA_GRAPH_MODES = ("reduce-overhead", "max-autotune")
#: A command takes no larger number of timed calls: the work of judging them grows with it.
MOST_CALLS = 20_000
#: Nor a larger number of processes that time.
MOST_PROCESSES = 50
#: A Request's `pretrained` for the weights that lie where the workload's configuration does.
OWN_WEIGHTS = "its own"

#: What a setting decides: which operators run (`model`); how large a call of one model in memory is (`call`); which
#: numbers are in it and where it runs (`origin`); how text is written, and after which prompt; what a user's `build()`
#: is called with (`own`); how it is compiled; the rest.
Role = Literal["model", "call", "origin", "generation", "prompt", "own", "compiling", "other"]
#: The roles that make two runs other work where their values differ, and those that make operators' sizes differ.
WORK: tuple[Role, ...] = ("model", "call", "origin")
SIZES: tuple[Role, ...] = ("model", "call")


class Option(Struct, frozen=True):
    """A field of Request, Settings or Generation, and its word. `larger`: a greater one makes the tensors of a call
    larger, which needs memory. `everywhere`: every workload takes it. `cell`: another one makes another cell of a
    sweep. `axis` is its place in the order of a sweep's rows, of which the last changes from row to row; None where
    rows do not differ in it. A `flag` has no value: `--dynamic`, `--no-dynamic`."""

    name: str
    word: str
    role: Role
    larger: bool = False
    everywhere: bool = True
    cell: bool = True
    axis: int | None = None
    flag: bool = False


OPTIONS = (
    Option("workload", "workload", "model", cell=False),
    Option("size", "model size", "model", axis=0),
    Option("pretrained", "weights", "origin", everywhere=False, axis=1),
    Option("device", "device", "origin"),
    Option("dtype", "dtype", "model", axis=2),
    Option("batch_size", "batch size", "call", larger=True, axis=10),
    Option("height", "height", "call", larger=True, everywhere=False, axis=8),
    Option("width", "width", "call", larger=True, everywhere=False, axis=9),
    Option("seq_length", "sequence length", "call", larger=True, everywhere=False, axis=7),
    Option("steps", "denoising steps", "call", everywhere=False, axis=6),
    Option("phase", "phase", "generation", everywhere=False, axis=3),
    Option("max_new_tokens", "new tokens", "generation", everywhere=False, axis=5),
    Option("cache", "cache", "generation", everywhere=False, axis=4),
    Option("use_fast", "fast processor", "other", everywhere=False, flag=True),
    Option("prompt", "prompt", "prompt", everywhere=False),
    Option("options", "options of build()", "own", everywhere=False),
    Option("scope", "scope", "compiling", axis=13),
    Option("mode", "mode", "compiling", axis=14),
    Option("fullgraph", "fullgraph", "compiling", flag=True),
    Option("dynamic", "dynamic shapes", "compiling", flag=True),
    Option("compile_order", "order of compiling and sharding", "compiling", everywhere=False),
    Option("compiled_autograd", "compiled autograd", "compiling", everywhere=False, flag=True),
    Option("seed", "seed", "other", cell=False),
    Option("iterations", "timed calls", "other", cell=False),
    Option("parallel", "parallelism", "model", everywhere=False, axis=12),
    Option("checkpoint", "activation checkpointing", "model", everywhere=False, flag=True),
    Option("nproc", "ranks", "origin", everywhere=False, axis=11),
    Option("download", "download", "other", everywhere=False, cell=False, flag=True),
)
FLAGS = frozenset(each.name for each in OPTIONS if each.flag)


def option_words(name: str, value: object) -> list[str]:
    """What sets this option on the command line: `batch_size` by `--batch-size 4`, `dynamic` by `--no-dynamic`. In a
    finding a flag's value is `True` or `False` as a word."""
    option = name.replace("_", "-")
    if name in FLAGS:
        return [f"--{option}" if str(value) == "True" else f"--no-{option}"]
    return [f"--{option}", str(value)]


def words_of(*roles: Role) -> dict[str, str]:
    """The words of the options with one of these roles, by their names."""
    return {each.name: each.word for each in OPTIONS if each.role in roles}
