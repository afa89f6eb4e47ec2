from __future__ import annotations

import pytest

from tracekit.walks.naming import folder_name


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        ("flux", "flux"),
        ("qwen2.5-vl", "qwen2.5-vl"),
        ("my_model.py:build", "my_model-build"),
        ("../some where/my model.py:make_it", "my-model-make_it"),
        ("package.module:build", "package.module-build"),
        ("hf:org/name", "hf-org-name"),
        ("..", "own"),
    ],
)
def test_a_run_folder_has_a_name_that_every_file_system_takes(workload: str, name: str) -> None:
    assert folder_name(workload) == name
