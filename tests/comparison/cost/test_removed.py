from __future__ import annotations

import pytest

from tracekit.comparison.matching.coverage import total_traffic
from tracekit.model.comparison import GroupMember, KernelGroup
from tracekit.model.rates import Traffic


def group(a_us: float, b_us: float, traffic: Traffic | None) -> KernelGroup:
    a, b = ((GroupMember("kernel", 1, us),) if us else () for us in (a_us, b_us))
    return KernelGroup("fused", "some", "anchors", a, b, 0, b_us - a_us, (), traffic=traffic)


def test_only_groups_that_are_known_on_both_sides_count_and_their_share_of_the_time_is_told() -> None:
    total = total_traffic(
        [
            group(30, 10, Traffic(1000, 400, 0, 0)),
            group(10, 0, Traffic(200, 0, 0, 0)),
            group(0, 5, Traffic(0, 50, 0, 0)),
            # A call of either side is not known.
            group(40, 20, Traffic(5000, 100, 1, 0)),
            group(10, 5, Traffic(5000, None, 0, 1)),
            group(10, 10, None),
        ]
    )
    assert total is not None
    assert (total.eager_bytes, total.compiled_bytes, total.removed_bytes) == (1200, 450, 750)
    assert total.a_time_known == pytest.approx(0.4)
    assert total.b_time_known == pytest.approx(0.3)


def test_where_nothing_is_known_there_is_no_total() -> None:
    assert total_traffic([]) is None
    assert total_traffic([group(10, 10, None), group(1, 1, Traffic(0, 0, 0, 0))]) is None
