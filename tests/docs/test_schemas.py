"""The published schemas, with what wings write."""

import pytest
from tests.traces import ROOT

from tracekit.cli.schema import NAMES
from tracekit.report.contract import schema_text


@pytest.mark.parametrize("name", NAMES)
def test_the_schemas_in_docs_are_those_of_this_version(name: str) -> None:
    # `python -m tracekit schema --out docs/schemas` writes them.
    assert (ROOT / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8") == schema_text(name)
