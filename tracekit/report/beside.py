"""The tables that pages of one side, of two and of several forms share."""

from __future__ import annotations

from tracekit.report.lettered import Lettered
from tracekit.report.rendering import Tables, those
from tracekit.report.sections.compilation import compilation_tables
from tracekit.report.sections.gpu_state import gpu_state_table
from tracekit.report.sections.idle import cause_table, gap_table, sync_table
from tracekit.report.sections.kernels import family_table
from tracekit.report.sections.memory import memory_table
from tracekit.report.sections.operators import operator_table
from tracekit.report.sections.queue import queue_table
from tracekit.report.sections.recording import health_table, recording_table
from tracekit.report.sections.setting import environment_table, settings_table


def shared_tables(sides: Lettered, limit: int = 8) -> Tables:
    """By the name under which the layout shows them; `limit` is how many gaps and calls of a side are listed."""
    return {
        "families": family_table(sides),
        "causes": cause_table(sides),
        "queue": queue_table(sides),
        "gaps": those(gap_table(side, letter, limit) for letter, side in sides),
        "syncs": those(sync_table(side, letter, limit) for letter, side in sides),
        "compilation": compilation_tables(sides),
        "operators": those(operator_table(side, letter) for letter, side in sides),
        "memory": memory_table(sides),
        "recording": recording_table(sides),
        "health": health_table(sides),
        "settings": settings_table(sides),
        "environment": environment_table(sides),
        "gpu_state": gpu_state_table(sides),
    }
