"""What a number or a text of a file may be: a run folder may come from anybody, and its figures are divided and added.

`msgspec` checks these where a file is decoded, and `tracekit.asked` what a user asks for. Other nouns made in a program
are not checked.
"""

import datetime
from typing import Annotated, TypeVar

from msgspec import Meta

from tracekit.model.option import MOST_CALLS, MOST_PROCESSES

#: Exact as a double, as all of JSON's readers take it.
MOST = 2**53
#: 115 days.
LONGEST_SECONDS = 1e7
#: Of a job; the largest have had a hundred thousand GPUs. What is known of missing ranks is listed rank by rank.
MOST_RANKS = 1 << 20

Count = Annotated[int, Meta(ge=0, le=MOST)]
#: Of a loop, to be recorded.
Steps = Annotated[int, Meta(ge=1, le=MOST)]
#: Of processes that time a form, beside a run's own.
Repeats = Annotated[int, Meta(ge=0, le=MOST_PROCESSES)]
#: A whole number that may be negative: a seed, a temperature.
Whole = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Real = Annotated[float, Meta(ge=-1e300, le=1e300)]
#: 0 and more: a share, a watt, the size of an error.
Amount = Annotated[float, Meta(ge=0, le=1e300)]
#: What something is divided by, or multiplied with: a speed-up, the scale of a picture.
Ratio = Annotated[float, Meta(ge=1e-9, le=1e9)]
Microseconds = Annotated[float, Meta(ge=0, le=1e6 * LONGEST_SECONDS)]
#: Of a call that was timed: ratios of them are taken, and no clock shows less than a nanosecond.
CallMicroseconds = Annotated[float, Meta(ge=1e-3, le=1e6 * LONGEST_SECONDS)]
Seconds = Annotated[float, Meta(ge=0, le=LONGEST_SECONDS)]
Text = Annotated[str, Meta(max_length=1 << 20)]
#: What a program can be given and a file can hold: no NUL, and no half of a character.
_ARGUMENT = r"[^\x00\ud800-\udfff]*$"
#: Of a folder or file: the profiler writes no name with a line break as it is.
PLACE_PATTERN = r"^[^\x00-\x1f\x7f\ud800-\udfff]*$"
PlaceName = Annotated[str, Meta(max_length=1 << 20, pattern=PLACE_PATTERN)]
Argument = Annotated[str, Meta(max_length=1 << 20, pattern=f"^{_ARGUMENT}")]
#: A word of a command: no option.
Word = Annotated[str, Meta(max_length=1 << 20, pattern=f"^(?!-){_ARGUMENT}")]
#: What a user may ask for: calls to time, percent of a speed-up to reach, how long to wait.
Calls = Annotated[int, Meta(ge=1, le=MOST_CALLS)]
Percent = Annotated[float, Meta(ge=1e-6, le=100)]
Patience = Annotated[float, Meta(gt=0, le=LONGEST_SECONDS)]
#: A file in the folder itself: no path, and no `-`, which stands for standard input.
FileName = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[^-/\x00][^/\x00]*\Z")]
Each = TypeVar("Each")
#: Work grows with how many there are. A list of both forms' calls has two for each round.
Many = Annotated[tuple[Each, ...], Meta(max_length=2 * MOST_CALLS)]
Some = Annotated[tuple[Each, ...], Meta(min_length=1, max_length=2 * MOST_CALLS)]


def refuse_no_moment(text: str) -> None:
    """Raises ValueError where the text is no moment in ISO 8601 with its time zone: moments are compared."""
    if datetime.datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"the moment {text[:40]!r} has no time zone")
