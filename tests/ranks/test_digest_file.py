from contextlib import suppress

import pytest
from tests.ranks.jobs import simulate

from tracekit.errors import TracekitError
from tracekit.ranks.digest_file import digest_bytes, read_digest, read_summary


def test_a_damaged_digest_is_refused_and_a_summary_of_it_is_whole_or_refused() -> None:
    content = digest_bytes(simulate(2, 40, lambda rank, step: 300.0 + 7 * step)[0])
    whole = read_summary(content, "rank0")
    for at in range(4, len(content), 61):
        damaged = content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]
        with pytest.raises(TracekitError):
            read_digest(damaged, "rank0")
        with suppress(TracekitError):
            assert (read_summary(damaged, "rank0").parts == whole.parts).all()


def test_a_file_that_ends_early_is_no_digest() -> None:
    content = digest_bytes(simulate(2, 4, lambda rank, step: 300.0)[0])
    for end in (0, 4, len(content) // 2, len(content) - 1):
        for read in (read_digest, read_summary):
            with pytest.raises(TracekitError, match="damaged"):
                read(content[:end], "rank0")
