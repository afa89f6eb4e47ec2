"""The tables that pages of one side, of two and of several forms share, and their markdown twins."""

from __future__ import annotations

from collections.abc import Iterator

from tracekit.model.run import Run
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
from tracekit.report.sections.setting import component_table, environment_table, settings_table
from tracekit.report.table import Table


def setting_tables(sides: Lettered, run: Run | None = None) -> Iterator[Table | None]:
    """With which every markdown twin ends: the recordings, what was run and on which machine."""
    yield health_table(sides)
    yield recording_table(sides)
    yield component_table(run) if run else None
    yield settings_table(sides)
    yield environment_table(sides)
    yield gpu_state_table(sides)


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
