import pytest
from tests.traces import ROOT, VIT

from tracekit.errors import TracekitError
from tracekit.reading.pairs import name_sides


def test_one_side_twice_and_one_address_alone_are_no_pair() -> None:
    run = str(ROOT / VIT)
    with pytest.raises(TracekitError, match=r"both sides are eager of .*: pass --form-b"):
        name_sides(run, None, ("eager", "eager"))
    with pytest.raises(TracekitError, match=r"https://a\.example/x\.json is one trace: pass a second one"):
        name_sides("https://a.example/x.json", None, (None, None))
