from __future__ import annotations

import pytest

from tracekit.model.compilation import FailedGuard

CODE = (
    "___check_obj_id(func.__code__, 1191874112), type=<code object forward at 0x470a8e40, file "
    '"transformers/models/qwen.py", line 1317>  # output = func(self, *args)  # generic.py:939 in wrapper\nUser stack'
)
ONE = "2 <= x.size()[0]  # return F.layer_norm(  # normalization.py:228 in forward (due to 0/1 specialization)"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "tensor 'x' size mismatch at index 0. expected 1, actual 4",
            "size 0 of x is 4, and was 1 when it was compiled",
        ),
        (
            "tensor 'x' dtype mismatch. expected BFloat16, actual Float",
            "the dtype of x is Float, and was BFloat16 when it was compiled",
        ),
        (
            "tensor 'x' stride mismatch at index 1. expected 8, actual 1",
            "the stride 1 of x is 1, and was 8 when it was compiled",
        ),
        (CODE, "func is another function than forward (transformers/models/qwen.py:1317), for which it was compiled"),
        ("___check_obj_id(func.__code__, 140281954985392)", "func is another function than the one for which it was"),
        ("___check_obj_id(self.mode, 99)", "self.mode is another object than the one for which it was compiled"),
        (
            "___check_type_id(x, 94), type=<class 'torch.Tensor'>",
            "x is of another type than torch.Tensor, for which it was compiled",
        ),
        ("len(args) == 2       # output = func(", "the length of args is no longer 2, as it was when it was compiled"),
        (ONE, "size 0 of x is 1 or 0, and was neither when it was compiled"),
        ("mode == 3  # forward", "the check mode == 3 failed"),
    ],
)
def test_a_failed_check_is_told_in_words_without_addresses(text: str, words: str):
    told = FailedGuard("0/0", text).words
    assert told.startswith(words)
    assert "___check" not in told and "0x" not in told and "140281954985392" not in told


def test_a_size_of_one_is_known_for_what_it_is():
    texts = {ONE: True, "tensor 'x' size mismatch at index 0. expected 1, actual 4": True}
    texts |= {"tensor 'x' size mismatch at index 0. expected 4, actual 8": False, "mode == 1": False}
    assert {text: FailedGuard("", text).is_of_one for text in texts} == texts
