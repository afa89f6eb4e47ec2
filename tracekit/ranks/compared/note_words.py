"""What notes on the ranks of a job say on the first screen."""

from tracekit.ranks.statements.comparisons import RankCollectives
from tracekit.report.words.saying import Sentence

HEADLINES: dict[str, Sentence] = {
    RankCollectives.code: lambda subject, **facts: RankCollectives(subject, **facts).short(),
}
