import pytest
from syrupy.assertion import SnapshotAssertion

from tracekit.model.advice import Action, Advice, Command
from tracekit.statements import advice

COMMAND = "tracekit profile vit"


def instance(code: str) -> Advice:
    kind: type[Advice] = Advice.classes[code]
    return kind(COMMAND) if issubclass(kind, Command) else kind()


CORE = [code for code, kind in Advice.classes.items() if kind.__module__ == advice.__name__]


@pytest.mark.parametrize("code", CORE)
def test_advice_says(code: str, snapshot: SnapshotAssertion) -> None:
    told = instance(code)
    assert (told.long(), told.short()) == snapshot
    assert told.to_be_copied == isinstance(told, Command)


def test_json_holds_the_code_and_the_command() -> None:
    assert advice.RunAgain(COMMAND).written() == Action("run_again", COMMAND)
    assert advice.PinMemory().written() == Action("pin_memory", None)
