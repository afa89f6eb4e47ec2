import pytest

from tracekit.errors import TracekitError
from tracekit.reading.pairs import name_sides


def test_one_address_alone_is_no_pair() -> None:
    with pytest.raises(TracekitError, match=r"https://a\.example/x\.json is one trace: pass a second one"):
        name_sides("https://a.example/x.json", None, (None, None))
