"""The section of a report on all ranks of a job."""

from tracekit.model.comparison import Comparison
from tracekit.ranks.compared import tables
from tracekit.ranks.compared.nouns import job_of
from tracekit.report import document as doc


def rank_section(comparison: Comparison) -> doc.Section | None:
    """All ranks of a run of several."""
    job, names = job_of(comparison), (comparison.a.label, comparison.b.label)
    if job is None:
        return None
    return doc.section(
        "ranks",
        "Ranks",
        doc.Part(tables.change_table(job, names), doc.TABLES),
        doc.Part(tables.call_table(job, names), doc.TABLES),
        doc.Part(tables.collective_table(job, names), doc.TABLES),
        tables.idle_table(job),
    )
