"""A sweep as one HTML page that needs no network."""

from __future__ import annotations

from markupsafe import Markup

from tracekit.model.sweep_figures import Sweep
from tracekit.report.sweep.failing import last_words
from tracekit.report.sweep.heat import heat_key, heat_map
from tracekit.report.sweep.labels import label
from tracekit.report.sweep.method import METHOD
from tracekit.report.sweep.tables import (
    best_table,
    building_table,
    cell_table,
    command_table,
    conditions_table,
    eager_table,
    failure_table,
    matrices,
    note_rows,
    published_table,
    speedup_note,
)
from tracekit.report.sweep.words import MOST_WORKS, NOTES, headline, noted_sentence, progress_sentence
from tracekit.report.templating import asset, environment, policy, script_hash
from tracekit.report.words.notes import note_sentences

#: What each section shows, in this order.
TIMES = ("mean", "median", "device")
COSTS = ("compile", "even", "memory", "warmup_memory")


def sweep_page(sweep: Sweep, command: str | None = None) -> str:
    """One offline HTML file; `command` is what measures it and what goes on with it, a line each."""
    script, heat = "".join(map(asset, ("later.js", "tables.js", "sections.js"))), heat_map(sweep)
    figures = matrices(sweep)
    costs = [figures[name] for name in COSTS if name in figures]
    page = (
        environment()
        .get_template("sweep.html.j2")
        .render(
            sweep=sweep,
            warnings=note_sentences(sweep.notes),
            command=command,
            policy=policy(script_hash(script.encode())),
            style=Markup(asset("page.css") + asset("sweep.css")),
            script=Markup(script),
            headline=headline(sweep),
            common=label(sweep).common,
            progress=f"{progress_sentence(sweep)} {noted_sentence(sweep)}".strip(),
            heat=heat,
            heat_key=heat_key(heat) if heat else (),
            heat_note=speedup_note(sweep),
            many=len(sweep.works) > MOST_WORKS,
            times=[figures[name] for name in TIMES if name in figures],
            costs=costs,
            costs_title="Compiling and memory" if "compile" in figures else "Memory",
            tables={
                "best": best_table(sweep),
                "commands": command_table(sweep),
                "published": published_table(sweep),
                "eager": eager_table(sweep),
                "failures": failure_table(sweep),
                "cells": cell_table(sweep),
                "conditions": conditions_table(sweep),
                "building": building_table(sweep),
            },
            notes=note_rows(sweep),
            notes_title=NOTES,
            last_words=last_words(sweep),
            method=METHOD,
        )
    )
    return page.lstrip()
