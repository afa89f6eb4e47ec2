from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tracekit.errors import TracekitError
from tracekit.workloads import registry
from tracekit.workloads.flux_info import FLUX


def test_a_misspelt_workload_is_met_with_the_nearest_name() -> None:
    with pytest.raises(TracekitError, match="did you mean flux"):
        registry.find("flx")


def test_an_unknown_workload_is_met_with_the_list() -> None:
    with pytest.raises(TracekitError, match="there is flux"):
        registry.find("qqqqqq")


def test_names_of_a_scope_are_cleared_of_spaces_and_repetition() -> None:
    assert registry.check_scope(FLUX, "transformer, vae.decoder,transformer") == "transformer,vae.decoder"


def test_a_scope_with_an_empty_name_is_refused() -> None:
    with pytest.raises(TracekitError, match="names nothing at one place"):
        registry.check_scope(FLUX, "transformer,,vae")


def test_the_default_scope_is_the_first() -> None:
    assert registry.check_scope(FLUX, None) == "transformer"


def test_a_missing_package_names_the_extra_to_install() -> None:
    broken = replace(FLUX, module="a_package_that_is_not_there.flux")
    with pytest.raises(TracekitError, match=r"pip install -c constraints.txt '\.\[profile\]'"):
        registry.load_builder(broken)


def test_listing_imports_no_torch() -> None:
    code = "import sys, tracekit.workloads.registry as r; r.all_workloads(); print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
