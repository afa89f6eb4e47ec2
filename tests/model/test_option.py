from __future__ import annotations

from dataclasses import fields

from tracekit.model.option import OPTIONS, WORK, words_of
from tracekit.model.run import Generation, Settings
from tracekit.model.workload import Request

#: What the manifest holds of a call beside its options, or under another name.
FACTS = {"generation", "own", "variables", "fast_processor"}


def test_every_field_of_a_request_and_of_settings_is_one_option() -> None:
    names = [each.name for each in OPTIONS]
    assert len({*names}) == len(names)
    asked = {field.name for noun in (Request, Settings, Generation) for field in fields(noun)}
    assert asked - FACTS == {*names}


def test_rows_of_a_sweep_have_one_order() -> None:
    places = sorted(each.axis for each in OPTIONS if each.axis is not None)
    assert places == [*range(len(places))]


def test_what_makes_a_call_larger_makes_it_other_work() -> None:
    larger = {each.name for each in OPTIONS if each.larger}
    assert larger == {"batch_size", "height", "width", "seq_length"}
    assert larger < words_of(*WORK).keys()
