"""The command that a reader is told to type next."""

from collections.abc import Mapping

from msgspec.structs import replace

from tracekit.model.advice import Advice
from tracekit.model.comparison import Side
from tracekit.model.option import option_words
from tracekit.model.run import Run, Settings
from tracekit.model.workload import DEFAULT_PROMPT
from tracekit.shell import joined, quoted, retyped, split_variables, with_variables
from tracekit.statements.advice import CompileLayers, RunAgain

#: Options of `tracekit profile` that hold a setting, in the order they are written.
OPTIONS = (
    *("mode", "size", "dtype", "scope", "batch_size", "height", "width", "seq_length", "steps", "pretrained"),
    *("prompt", "seed", "nproc", "parallel", "compile_order"),
)
#: Of these, what every model has.
COMPILING = ("mode", "scope", "compile_order")
COMMON = (*COMPILING, "seed", "nproc")
#: What needs not be said, being what is taken where nothing is.
UNSAID = {"prompt": DEFAULT_PROMPT, "seed": 0, "compile_order": "after-sharding"}

#: Options or variables, and their new values.
Changes = Mapping[str, str]


def scope_changes(side: Side) -> dict[str, str]:
    """The scope that compiles the layers one by one, where the model has such and was compiled otherwise."""
    can_be_regional = side.settings is not None and side.settings.scope != "regional" and side.repeated_parts
    return {"scope": "regional"} if can_be_regional else {}


def layer_by_layer(side: Side) -> Advice | None:
    """To compile the layers one by one, by a command or in the program; None where that is done already."""
    if changes := scope_changes(side):
        return run_again(side.settings, changes)
    return None if side.settings and side.settings.scope == "regional" else CompileLayers()


def run_again(
    settings: Settings | None,
    changes: Changes | None = None,
    more: tuple[str, ...] = (),
    switches: Changes | None = None,
) -> RunAgain | None:
    """To profile the same work again, by `profile_command` or with switches by `switched_command`; None where no
    settings are known."""
    if settings is None:
        return None
    command = switched_command(settings, switches) if switches else profile_command(settings, changes, more)
    return RunAgain(command)


def profile_command(
    settings: Settings, changes: Changes | None = None, more: tuple[str, ...] = (), *, compiled: bool = True
) -> str:
    """Profiles the same work again, with some settings changed: `profile_command(settings, {"mode": "default"})`. Where
    variables steered torch, they are set for it again.

    `more` are options besides. Not `compiled`: the eager form alone."""
    changes = changes or {}
    if settings.own and settings.own.in_program:
        return _program(settings, changes, more)
    words = ["tracekit", "profile", settings.workload, *(["--compiled"] if compiled else [])]
    for name in OPTIONS:
        # A model of the user's own takes what its `build()` takes.
        if settings.own and name not in (*COMMON, *settings.own.takes):
            continue
        if (name in COMPILING and not compiled) or (name == "size" and settings.pretrained):
            # Real weights have a size of their own.
            continue
        value = changes.get(name, getattr(settings, name))
        said = value is not None and value != UNSAID.get(name)
        words += option_words(name, value) if said else []
    if asked := settings.generation:
        words += [*option_words("phase", asked.phase), *option_words("cache", asked.cache)]
        words += option_words("max_new_tokens", asked.max_new_tokens) if asked.max_new_tokens else []
        words += option_words("use_fast", asked.fast_processor) if asked.fast_processor is not None else []
    words += option_words("checkpoint", True) if settings.checkpoint else []
    words += option_words("compiled_autograd", True) if settings.compiled_autograd and compiled else []
    dynamic = changes.get("dynamic", settings.dynamic)
    words += option_words("dynamic", dynamic) if dynamic is not None and compiled else []
    if not settings.fullgraph and compiled and "--fullgraph" not in more:
        # Most workloads ask for one graph unless told otherwise, and then end at the first break.
        words += option_words("fullgraph", False)
    own = settings.own.options if settings.own else ()
    return with_variables(joined([*words, *more, *(["--", *own] if own else [])]), settings.variables)


def repeating_command(run: Run, out: str) -> str:
    """Measures the run again into the folder `out`, at its own size: another GPU may have room for another one. Empty
    where it is not known what measured it, and of a program."""
    settings = run.settings
    if settings.own is not None and settings.own.in_program:
        return ""
    variables, words = split_variables(run.command)
    if words[:2] != ["tracekit", "profile"] or len(words) < 3:
        return ""
    end = words.index("--") if "--" in words else len(words)
    # Behind the workload, or before an option that stands before it.
    begin = 2 if words[2].startswith("-") else 3
    own, options, rest = words[:begin], words[begin:end], words[end:]
    if settings.own is None and not settings.pretrained:
        own += ["--size", settings.size]
        options = _without(options, "--size")
    # What the run wrote besides, this one is not to replace.
    options = _without(_without(options, "--out"), "--json")
    return with_variables(joined([*own, *options, "--out", out, *rest]), variables)


def _without(words: list[str], option: str) -> list[str]:
    """The words without an option and its value."""
    kept = []
    left = iter(words)
    for word in left:
        if word == option:
            next(left, None)
        elif not word.startswith(f"{option}="):
            kept.append(word)
    return kept


def measuring_command(run: Run) -> str:
    """What measured the run, as a shell takes it; a comment where that was a program, or is no command. The comment is
    one quoted word: not every shell that is typed into knows comments."""
    in_program = run.settings.own is not None and run.settings.own.in_program
    return (not in_program and retyped(run.command)) or f"# measured by {quoted(run.command)}"


def switched_command(settings: Settings, switches: Changes) -> str:
    """The same command with variables set for it, the way a shell takes them; of a program, the program's."""
    switched = replace(settings, variables={**settings.variables, **switches})
    in_program = settings.own is not None and settings.own.in_program
    return with_variables("python YOUR_PROGRAM.py", switched.variables) if in_program else profile_command(switched)


def _program(settings: Settings, changes: Changes, more: tuple[str, ...]) -> str:
    """What to pass to `tracekit.profile` in the program that the run came from."""
    if changes.get("scope") == "all":
        return "tracekit.profile(tracekit.Workload(..., compiled=None))"
    scope = {name: value for name, value in changes.items() if name == "scope"}
    changes = {name: value for name, value in changes.items() if name != "scope"}
    asked: dict[str, object] = {} if settings.mode == "default" else {"mode": settings.mode}
    asked |= {} if settings.dynamic is None else {"dynamic": settings.dynamic}
    asked |= {option.removeprefix("--"): True for option in more}
    asked |= {name: {"True": True, "False": False}.get(value, value) for name, value in changes.items()}
    if asked.get("mode") == "default":
        del asked["mode"]
    words = ["...", *([f"compile={asked}"] if asked or not scope else []), *(f"{k}={v!r}" for k, v in scope.items())]
    return f"tracekit.profile({', '.join(words)})"
