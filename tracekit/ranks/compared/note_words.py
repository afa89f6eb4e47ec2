"""What notes on the ranks of a job say, in full and on the first screen."""

from tracekit.numbers import counted
from tracekit.report.words.saying import Sentence
from tracekit.statements.notes.ranks import alone

SENTENCES: dict[str, Sentence] = {
    "rank_collectives": lambda subject, ranks, of_ranks, collective, count, usual_count, in_place_of: (
        f"{alone(ranks, of_ranks)} issues"
        + (
            f" its collectives in another order in {subject}: {collective} where other ranks issue {in_place_of}."
            if in_place_of
            else f" {counted(count, collective)} per step in {subject}, other ranks {usual_count:,}."
        )
    ),
}
HEADLINES: dict[str, Sentence] = {
    "rank_collectives": lambda subject, ranks, of_ranks, collective, count, usual_count, in_place_of: (
        f"{alone(ranks, of_ranks).lower()} issues "
        + (
            f"{collective} where others issue {in_place_of}"
            if in_place_of
            else f"{counted(count, collective)}, others {usual_count:,}"
        )
    ),
}
