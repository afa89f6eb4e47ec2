"""What findings advise, for tests."""

from tracekit.model.comparison import Finding


def command_of(finding: Finding | None) -> str:
    """The command that the finding says to type; fails where it says none."""
    assert finding is not None and finding.action is not None and finding.action.command is not None
    return finding.action.command
