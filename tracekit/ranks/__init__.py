"""A wing: many ranks of one job. Which collectives belong together, who waited for whom, and why."""

from tracekit.wings import Command, OverRanks, Together, Wing

WING = Wing(
    commands={
        "ranks": Command(
            "Compare the ranks of one job: who waited for whom and why.",
            "tracekit.ranks.commands.command_line:ranks",
            after="compare",
            reads=True,
        ),
        "digest": Command(
            "Write what `ranks` needs of one trace as a small file.",
            "tracekit.ranks.commands.command_line:digest",
            after="ranks",
        ),
    },
    schemas={"ranks": "tracekit.ranks.report.as_json:RanksFile"},
    together=Together(
        takes="tracekit.ranks.reading.recordings:are_ranks",
        takes_run="tracekit.ranks.reading.recordings:is_run_of_ranks",
        merge="tracekit.ranks.commands.open_and_export:merge",
        export="tracekit.ranks.commands.open_and_export:export",
    ),
    over_ranks=OverRanks(
        compare="tracekit.ranks.compared.loading:compare_job",
        written="tracekit.ranks.report.as_json:JobChange",
        notes="tracekit.ranks.compared.findings:note_uneven_collectives",
        finders="tracekit.ranks.compared.findings:FINDERS",
        measures="tracekit.ranks.compared.measures:MEASURES",
        account="tracekit.ranks.compared.tables:communication_rows",
        table="tracekit.ranks.compared.tables:rank_lines",
        section="tracekit.ranks.compared.tables:rank_section",
    ),
    beside="tracekit.ranks.reading.digesting:write_beside",
)
