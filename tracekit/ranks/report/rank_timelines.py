"""The timelines of many ranks below each other, around the collectives that they waited in most."""

import base64
import gzip
from typing import Any

from tracekit.names import short_kernel_name
from tracekit.numbers import counted, duration
from tracekit.ranks.job_figures import Ranks, Stretch
from tracekit.ranks.report import words
from tracekit.ranks.statements.words import cause_name
from tracekit.report.document import Timelines
from tracekit.report.timeline_bytes import NO_GROUP, bars_of, gaps_are_holes, packed

#: Of all stretches together, packed, before base64 makes it a third longer: the first is drawn whatever it takes.
MOST_BYTES = 600_000
#: Heights in pixels of compute, of communication and between ranks, by how many there are, and the room for names.
HEIGHTS = ((4, (28, 16, 10)), (8, (18, 10, 6)), (16, (12, 7, 4)), (32, (9, 5, 3)), (64, (6, 4, 2)))
BESIDE = 58
TEXTURES = {"waiting": "diagonal", "idle": "lines"}


def rank_timelines(told: Ranks) -> Timelines | None:
    """None where the ranks' clocks are unknown, or nobody waited."""
    recordings: list[dict[str, Any]] = []
    numbers: dict[int, int] = {}
    worst, left = {each.number: each for each in told.worst}, MOST_BYTES
    for stretch in told.stretches:
        recording, size = _recording(stretch, worst[stretch.number].last_rank, numbers)
        left -= size
        if recordings and left < 0:
            break
        recordings.append(recording)
    if not recordings:
        return None
    shown = told.stretches[: len(recordings)]
    groups = {
        number: words.collective_words(worst[number]) if number in worst else f"collective {number}"
        for number in numbers
    }
    timelines = [each.timeline for stretch in shown for each in stretch.ranks]
    labels = timelines[0].labels
    kinds = {labels[at].kind for each in timelines for bars in bars_of(each) for at in bars.labels}
    lanes = {kind: text for kind, text in words.LANES.items() if kind in kinds}
    ranks = max(len(each.ranks) for each in shown)
    work, communication, between = next((heights for most, heights in HEIGHTS if ranks <= most), HEIGHTS[-1][1])
    return Timelines(
        data={
            "recordings": recordings,
            "groups": list(groups.values()),
            "linked": False,
            "slim": {"work": work, "communication": communication, "between": between, "beside": BESIDE},
            "labels": [
                [cause_name(each.name) if each.kind == "idle" else short_kernel_name(each.name), each.kind]
                for each in labels
            ],
            "words": lanes,
            "textures": {kind: TEXTURES.get(kind, "") for kind in words.LANES},
        },
        families=lanes,
        causes={},
        intro=words.TIMELINES,
        title="Timelines of the ranks, one below the other on one clock",
        stepped=" of a rank, the other arrows to another rank",
        recordings=tuple(_notes(each) for each in shown),
        notes=(),
        choices=tuple(groups[each.number] for each in shown),
        keys=("Colours", ""),
    )


def _recording(stretch: Stretch, last_rank: int | None, numbers: dict[int, int]) -> tuple[dict[str, Any], int]:
    """What the page's script knows of a stretch, and how many bytes it is packed; `numbers` gets its collectives, each
    with its place among all."""
    sides, parts = [], []
    for each in stretch.ranks:
        timeline, name = each.timeline, f"rank {each.rank}"
        for number in timeline.positions:
            if number >= 0 and len(numbers) < NO_GROUP:
                numbers.setdefault(number, len(numbers))
        parts.append(packed(timeline, numbers))
        side = {"letter": "", "name": name, "title": name, "length": round(timeline.length_us, 2)}
        side |= {"lanes": ["compute", "communication"], "counts": [len(bars.labels) for bars in bars_of(timeline)]}
        sides.append(side | {"holes": gaps_are_holes(timeline)})
    whole = gzip.compress(b"".join(parts), mtime=0)
    mark = {"at": round(stretch.arrival_us, 2), "group": numbers[stretch.number], "last": f"rank {last_rank}"}
    return {"sides": sides, "packed": base64.b64encode(whole).decode(), "mark": mark}, len(whole)


def _notes(stretch: Stretch) -> tuple[str, ...]:
    begin = words.STRETCH if stretch.begin_us else words.FROM_THE_BEGINNING
    notes = [begin.format(begin=duration(stretch.begin_us))]
    if stretch.unshown:
        notes.append(f"Not drawn: {counted(stretch.unshown, 'more rank')}.")
    if stretch.together:
        notes.append(f"{stretch.together:,} short kernels are drawn together with neighbours.")
    return tuple(notes)
