"""Is a trace that lends its operators of the same work? Its sizes would pass for those of the borrower."""

from __future__ import annotations

from math import prod

from tracekit.comparison.cost.convolutions import find_convolution
from tracekit.comparison.cost.flops import attention_sizes, factors_of, flops_of
from tracekit.comparison.cost.operator_calls import find_calls
from tracekit.model.comparison import Side
from tracekit.model.option import SIZES, words_of
from tracekit.model.sequence import Operator, Sequence

#: A sequence whose operators are of the very work that it holds.
OF_ITS_OWN = ("own", "rich")

#: The compiler exchanges some products for others; of other sizes are the inputs where fewer than this share of the
#: lender's products, of so many at least, is as large as one of the other side.
LEAST_SHARE = 0.25
LEAST_PRODUCTS = 4


def find_misfit(lender: Side, borrower: Side, other: Side) -> str | None:
    """What shows that the lender is of other sizes than the borrower, in words; None where nothing does.

    Known are the settings of runs, and the products of `other`, which does the same work as the borrower.
    """
    if lender.settings and borrower.settings:
        for field, word in words_of(*SIZES).items():
            theirs, own = getattr(lender.settings, field), getattr(borrower.settings, field)
            if theirs != own:
                return f"its {word} is {theirs}, that of {borrower.label} is {own}"
    if lender.sequence is None or other.sequence is None or other.sequence.operators not in OF_ITS_OWN:
        return None
    theirs, own = _products(lender.sequence), set(_products(other.sequence))
    alike = sum(each in own for each in theirs)
    if not own or len(theirs) < LEAST_PRODUCTS or alike >= LEAST_SHARE * len(theirs):
        return None
    return f"{len(theirs) - alike} of its {len(theirs)} products have other sizes than any of {other.label}'s"


def _products(sequence: Sequence) -> list[tuple[int, int]]:
    """Each product, attention and convolution whose sizes were recorded: how many operations it takes, and over how
    many elements it sums up. Neither depends on which factor stands first, or on how dimensions are put together."""
    operators = [call.operator for call in find_calls(sequence.activities).values() if call.operator]
    found = ((flops_of(operator), _length_of_sums(operator)) for operator in operators)
    return [(flops, length) for flops, length in found if flops and length]


def _length_of_sums(operator: Operator) -> int | None:
    factors, attention, convolution = factors_of(operator), attention_sizes(operator), find_convolution(operator)
    if factors:
        return factors[0][2]
    if attention:
        return attention[0][3]
    return prod(convolution.weight[1:]) if convolution else None
