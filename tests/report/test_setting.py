from __future__ import annotations

from dataclasses import replace

from tracekit.model.run import Component
from tracekit.report.sections.setting import component_table, settings_table
from tracekit.report.sides import with_letters

from ..sides import make_run, make_settings, make_side


def told(component: Component) -> str:
    table = component_table(make_run(components=(component,)))
    assert table is not None
    return str(table.rows[0][2])


def test_a_part_that_is_compiled_whole_is_said_to_be():
    assert told(Component("vae", 100, True)) == "is compiled"
    assert told(Component("vae", 100, True, 100, ("vae",))) == "is compiled"


def test_a_part_that_is_compiled_partly_tells_its_share_and_its_modules():
    assert told(Component("vae", 100, True, 60, ("vae.decoder",))) == "60.0 % is compiled: vae.decoder"


def test_many_modules_are_not_all_named():
    names = tuple(f"vae.{n}" for n in range(6))
    assert told(Component("vae", 100, True, 60, names)).endswith("vae.0, vae.1, vae.2, vae.3 and 2 more")


def test_a_part_that_is_left_out_stays_eager():
    assert told(Component("vae", 100, False, 0)) == "stays eager"


def test_variables_that_steered_torch_are_among_the_settings():
    plain = make_side()
    steered = replace(plain, settings=make_settings(variables={"CUDA_LAUNCH_BLOCKING": "1", "TORCH_BLAS_X": "a b"}))
    table = settings_table(with_letters(replace(plain, settings=make_settings()), steered))
    assert table is not None
    (row,) = (row for row in table.rows if row[0] == "variables")
    assert row[1:] == ("—", "CUDA_LAUNCH_BLOCKING=1 TORCH_BLAS_X='a b'")
