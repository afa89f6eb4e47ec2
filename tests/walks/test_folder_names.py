from __future__ import annotations

import pytest

from tracekit.walks.folder_names import folder_name, short_names


@pytest.mark.parametrize(
    ("workload", "name"),
    [
        ("flux", "flux"),
        ("qwen2.5-vl", "qwen2.5-vl"),
        ("my_model.py:build", "my_model-build"),
        ("../some where/my model.py:make_it", "my-model-make_it"),
        ("package.module:build", "package.module-build"),
        ("hf:org/name", "hf-org-name"),
        ("hf:./my folder", "hf-my-folder"),
        ("diffusers:../x", "diffusers-x"),
        ("..", "own"),
    ],
)
def test_a_run_folder_has_a_name_that_every_file_system_takes(workload: str, name: str) -> None:
    assert folder_name(workload) == name


def test_of_a_long_path_the_end_names_the_folder() -> None:
    name = folder_name("hf:" + "/very-long" * 40 + "/model")
    assert name.endswith("very-long-model") and 90 < len(name) <= 100
    assert folder_name("hf:/" + "." * 300 + "/m") == "hf-m"


def test_folders_of_one_name_are_told_apart_by_those_they_lie_in() -> None:
    assert short_names(["/x/vit", "/x/flux"]) == ("vit", "flux")
    assert short_names(["/x/vit", "/y/vit"]) == ("x/vit", "y/vit")
    assert short_names(["/x/a/vit", "/y/a/vit", "/y/bert"]) == ("x/a/vit", "y/a/vit", "/y/bert")
