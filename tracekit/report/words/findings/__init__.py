"""Findings in words, and what a reader is advised to do."""

from tracekit.model.advice import ActionCode
from tracekit.model.comparison import Finding
from tracekit.report.words.findings import compiling, running
from tracekit.report.words.saying import Sentence, say
from tracekit.wings import load, over_ranks

WORDS = {**compiling.WORDS, **running.WORDS}
#: What is advised where it is no command.
IN_CODE: dict[ActionCode, str] = {
    "compile_layers": (
        "compile repeated layers one by one (layer.forward = torch.compile(layer.forward)): the mask then stays outside"
        " of compiled code"
    ),
    "pin_memory": "tensor.pin_memory().to(device, non_blocking=True), or create the tensor on the GPU",
    # A value that the host reads is waited for whatever memory it goes to.
    "keep_on_gpu": "keep the value on the GPU, or copy it once after the call",
    "read_after_the_call": (
        "keep the value on the GPU, or read it once after the call: .item(), bool() of a tensor and .cpu() synchronise"
    ),
}


def finding_title(finding: Finding) -> str:
    return say(_words(finding.code)[0], finding.facts)


def finding_evidence(finding: Finding) -> str:
    return say(_words(finding.code)[1], finding.facts)


def finding_advice(finding: Finding) -> str | None:
    """The command to type, or what to change; None where there is none."""
    if (action := finding.action) is None:
        return None
    return action.command or _lines(action.code) or IN_CODE[action.code]


def is_code(finding: Finding) -> bool:
    """Whether the advice is to be copied as it stands: a command, or lines of a program."""
    return finding.action is not None and (
        finding.action.command is not None or _lines(finding.action.code) is not None
    )


def _words(code: str) -> tuple[Sentence, Sentence]:
    if code in WORDS:
        return WORDS[code]
    known = over_ranks()
    assert known is not None, f"no words for {code}"
    words: tuple[Sentence, Sentence] = load(known.words)[code]
    return words


def _lines(code: ActionCode) -> str | None:
    """Lines to write, of a wing's findings."""
    known = over_ranks() if code not in IN_CODE else None
    lines: str | None = load(known.lines).get(code) if known else None
    return lines
