"""The command that a reader is told to type next."""

from collections.abc import Mapping

from msgspec.structs import replace

from tracekit.model.advice import Advice
from tracekit.model.comparison import Side
from tracekit.model.option import FLAG, TYPED, option_words
from tracekit.model.run import Run, Settings
from tracekit.shell import joined, quoted, retyped, split_variables, with_variables
from tracekit.statements.advice import CompileLayers, RunAgain

#: What every model has besides how it is compiled.
COMMON = ("seed", "nproc")
#: How long it was timed is not what was measured.
NOT_AGAIN = ("iterations",)

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
    if settings.in_program:
        return _program(settings, changes, more)
    words = ["tracekit", "profile", settings.workload, *(["--compiled"] if compiled else [])]
    for option in TYPED:
        name, compiling = option.name, option.role == "compiling"
        # A model of the user's own takes what its `build()` takes.
        if settings.own and not (compiling or name in (*COMMON, *settings.own.takes)):
            continue
        # Real weights have a size of their own.
        if (compiling and not compiled) or (name == "size" and settings.pretrained) or name in NOT_AGAIN:
            continue
        value = changes.get(name, settings.value(name))
        unsaid = value in (None, option.unsaid) or (option.takes == FLAG and not value) or option.option in more
        words += [] if unsaid else option_words(name, value)
    own = settings.own.options if settings.own else ()
    return with_variables(joined([*words, *more, *(["--", *own] if own else [])]), settings.variables)


def repeating_command(run: Run, out: str) -> str:
    """Measures the run again into the folder `out`, at its own size: another GPU may have room for another one. Empty
    where it is not known what measured it, and of a program."""
    settings = run.settings
    if settings.in_program:
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
    options = _without(_without(_without(options, "--out"), "--html"), "--json")
    return with_variables(joined([*own, *options, "--out", out, *rest]), variables)


def _without(words: list[str], option: str) -> list[str]:
    """The words without an option and its value, which an option may follow in its place."""
    kept: list[str] = []
    before = ""
    for word in words:
        is_value = before == option and (word == "-" or not word.startswith("-"))
        if word != option and not is_value and not word.startswith(f"{option}="):
            kept.append(word)
        before = word
    return kept


def measuring_command(run: Run) -> str:
    """What measured the run, as a shell takes it; a comment where that was a program, or is no command. The comment is
    one quoted word: not every shell that is typed into knows comments."""
    own = run.settings.own
    is_command = own is None or own.as_script or not own.in_program
    return (is_command and retyped(run.command)) or f"# measured by {quoted(run.command)}"


def switched_command(settings: Settings, switches: Changes) -> str:
    """The same command with variables set for it, the way a shell takes them; of a program, the program's."""
    switched = replace(settings, variables={**settings.variables, **switches})
    own = settings.own
    if own is None or not own.in_program:
        return profile_command(switched)
    return with_variables(f"{'tracekit run' if own.as_script else 'python'} YOUR_PROGRAM.py", switched.variables)


def _program(settings: Settings, changes: Changes, more: tuple[str, ...]) -> str:
    """What to pass to `tracekit.profile` in the program that the run came from, or to torch.compile in one that was run
    as it is."""
    if settings.is_of_program:
        given = [*(f"{name}={value!r}" for name, value in changes.items() if name != "scope")]
        given += [f"{option.removeprefix('--')}=True" for option in more]
        if "scope" in changes:
            return "for block in blocks: block.compile()" if changes["scope"] == "regional" else "torch.compile(model)"
        return f"torch.compile({', '.join(['...', *given])})"
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
