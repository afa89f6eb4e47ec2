import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.compilation import FailedGuard
from tracekit.model.statement import builtins_of
from tracekit.statements.guards import Check, check_of

SIZE = "tensor 'x' size mismatch at index 0. expected 1, actual 4"
DTYPE = "tensor 'x' dtype mismatch. expected BFloat16, actual Float"
STRIDE = "tensor 'x' stride mismatch at index 1. expected 8, actual 1"
CODE = (
    "___check_obj_id(func.__code__, 1191874112), type=<code object forward at 0x470a8e40, file "
    '"transformers/models/qwen.py", line 1317>  # output = func(self, *args)  # generic.py:939 in wrapper\nUser stack'
)
FORWARD = {"function": "forward", "file": "transformers/models/qwen.py", "line": "1317"}
ONE = "2 <= x.size()[0]  # return F.layer_norm(  # normalization.py:228 in forward (due to 0/1 specialization)"
#: What torch writes, and what is checked there.
CHECKS: dict[str, dict[str, object]] = {
    SIZE: {"kind": "size", "name": "x", "index": "0", "then": "1", "now": "4"},
    # torch says more of a parameter.
    f"{SIZE}. Guard failed on a parameter, consider using force_parameter_static_shapes": {
        "kind": "size",
        "name": "x",
        "index": "0",
        "then": "1",
        "now": "4",
    },
    DTYPE: {"kind": "tensor", "name": "x", "what": "dtype", "index": None, "then": "BFloat16", "now": "Float"},
    STRIDE: {"kind": "tensor", "name": "x", "what": "stride", "index": "1", "then": "8", "now": "1"},
    CODE: {"kind": "function", "name": "func", "then": FORWARD},
    "___check_obj_id(func.__code__, 140281954985392)": {"kind": "function", "name": "func", "then": None},
    "___check_obj_id(self.mode, 99)": {"kind": "object", "name": "self.mode"},
    "___check_type_id(x, 94), type=<class 'torch.Tensor'>": {"kind": "type", "name": "x", "then": "torch.Tensor"},
    "___check_type_id(x, 94)": {"kind": "type", "name": "x", "then": None},
    "len(args) == 2       # output = func(": {"kind": "length", "name": "args", "then": "2"},
    ONE: {"kind": "size_many", "name": "x", "index": "0"},
    "mode == 3  # forward": {"kind": "other", "check": "mode == 3"},
    "2 <= x.size()[0] <= 1024": {"kind": "other", "check": "2 <= x.size()[0] <= 1024"},
    "2 <= x.size()[0] + y.size()[1]": {"kind": "other", "check": "2 <= x.size()[0] + y.size()[1]"},
    "len(x) == 3 and y": {"kind": "other", "check": "len(x) == 3 and y"},
}


@pytest.mark.parametrize("text", CHECKS)
def test_a_failed_check_is_read_for_what_it_is_of_without_addresses(text: str):
    assert builtins_of(check_of(FailedGuard("0/0", text))) == CHECKS[text]


def test_a_size_of_one_is_known_for_what_it_is():
    texts = {ONE: True, SIZE: True, SIZE.replace("1, actual 4", "4, actual 8"): False, "mode == 1": False}
    assert {text: check_of(FailedGuard("", text)).is_zero_or_one for text in texts} == texts


def test_a_failed_check_is_told_in_words_without_addresses(snapshot: SnapshotAssertion) -> None:
    assert {text: check_of(FailedGuard("0/0", text)).long() for text in CHECKS} == snapshot
    assert {check_of(FailedGuard("", text)).code for text in CHECKS} == {*Check.classes}
