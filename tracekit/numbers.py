"""Numbers as people read them. What was not measured is a dash, never 0.

No room's own: a finding's sentence and the table beside it write a figure alike, and rooms do not import each other.
"""

import math

MISSING = "—"
MINUS = "\N{MINUS SIGN}"
#: Units of time by their microseconds.
UNITS = {1.0: "µs", 1e3: "ms", 1e6: "s"}


def duration(us: float | None) -> str:
    """`3.20 µs`, `140.4 ms`, `2.31 s`: the unit by size."""
    if us is None:
        return MISSING
    if us == 0:
        return "0"
    scale, unit = (1, "µs") if abs(us) < 1e3 else (1e3, "ms") if abs(us) < 1e6 else (1e6, "s")
    return f"{_figures(us / scale)} {unit}".replace("-", MINUS)


def scale_of(longest_us: float) -> tuple[str, float, int]:
    """One unit for a table or chart whose longest time this is, its microseconds, and how many decimals tell the
    times."""
    scale = max(scale for scale in UNITS if scale == 1 or longest_us >= scale)
    return UNITS[scale], scale, 1 if longest_us / scale >= 100 else 2 if longest_us / scale >= 10 else 3


def in_unit(us: float | None, scale: float, decimals: int) -> str:
    """`1,234.5`: a time in the unit that `scale_of` found for all of a table."""
    return MISSING if us is None else f"{us / scale:,.{decimals}f}"


def decimals_within(half: float, most: int) -> int:
    """How many decimals a figure has that may be so much more or less, at most so many: its last digit stands where
    the first one of `half` does."""
    return min(max(math.ceil(-math.log10(half)), 0), most) if half > 0 else most


def duration_within(
    us: float, low_us: float, high_us: float, *, signed: bool = False, ends: bool = True, exact: bool = False
) -> str:
    """`1.8 ms (1.7 to 2.0)`: with the digits that its ends support, with more where the figure itself is `exact`.
    Without its ends where these are not asked for, and where it is all that it may be."""
    if low_us == high_us:
        return duration_change(us) if signed else duration(us)
    unit, scale, decimals = scale_of(max(abs(us), abs(low_us), abs(high_us)))
    decimals = min(decimals, 2) if exact else decimals_within((high_us - low_us) / 2 / scale, 2)
    shown, low, high = (rounded(each / scale, decimals, signed=signed) for each in (us, low_us, high_us))
    # The ends stay on one line.
    span = f"({low} to {high})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{shown} {unit}{f' {span}' if ends else ''}"


def rounded(value: float, decimals: int, *, signed: bool = False) -> str:
    """`1,234.5`, with a real minus; what rounds to nothing has no sign."""
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return text.replace("-", MINUS) if text.strip("+-0.") else text.lstrip("+-")


def duration_change(us: float | None) -> str:
    """A duration with its sign; `0` for what rounds to nothing."""
    if us is None:
        return MISSING
    return "0" if abs(us) < 5e-3 else _signed(us, duration(us))


def change_with_share(us: float | None, before_us: float | None) -> str:
    """`-32.0 ms (-23 %)`, with a real minus; without the share where there is nothing to compare to."""
    if us is None or not before_us or duration_change(us) == "0":
        return duration_change(us)
    share = us / before_us * 100
    return f"{duration_change(us)} ({_signed(share, f'{share:.0f} %')})".replace("-", MINUS)


def count(value: float | None) -> str:
    """`2,390`; a mean per step is rounded, and `<1` where that would be none."""
    if value is None:
        return MISSING
    return "<1" if 0 < value < 0.5 else f"{_nearest(value):,}"


def _nearest(value: float) -> int:
    """Halves upwards: 151 and 47.5 more are 199, as 198.5 is."""
    return math.floor(value + 0.5)


def calls_span(fewest: float, most: float | None = None) -> str:
    """So many calls, begun ones counted whole: `1,200`, or `19,700 to 22,600` where they are between two numbers, which
    then have three digits, rounded outwards."""
    if most is not None and math.isinf(most):
        return "never" if math.isinf(fewest) else f"{count(math.ceil(fewest))} or more"
    low = math.ceil(fewest)
    high = low if most is None else math.ceil(most)
    if low == high:
        return count(low)
    steps = [10 ** max(0, len(str(each)) - 3) for each in (low, high)]
    return f"{count(low // steps[0] * steps[0])} to {count(-(-high // steps[1]) * steps[1])}"


def is_whole(value: float) -> bool:
    """Whether `count` shows all of it."""
    return abs(value - round(value)) < 0.05


def count_change(value: float | None) -> str:
    if value is None:
        return MISSING
    return _signed(_nearest(value), f"{_nearest(value):,}")


def figure_change(value: float, decimals: int) -> str:
    """A change in a unit that stands elsewhere; `0` for what rounds to nothing."""
    text = f"{value:+,.{decimals}f}"
    return text.replace("-", MINUS) if text.strip("+-0.") else "0"


def percent(fraction: float | None, decimals: int = 1) -> str:
    return MISSING if fraction is None else f"{fraction * 100:.{decimals}f} %"


def points_change(fraction: float | None) -> str:
    """A change of a share, in percentage points."""
    if fraction is None:
        return MISSING
    return _signed(fraction, f"{fraction * 100:.1f} points".replace("-", MINUS))


def times(ratio: float | None) -> str:
    """`1.30x`; a third decimal where the second would hide the difference, `1.005x`."""
    if ratio is None:
        return MISSING
    return f"{ratio:.{3 if abs(ratio - 1) < 0.05 else 2}f}\N{MULTIPLICATION SIGN}"


def times_within(ratio: float, interval: tuple[float, float] | None) -> str:
    """A ratio with the digits that its interval supports: `1.34x`, `1.8x` of 1.35 to 2.34; `times` without one."""
    if interval is None:
        return times(ratio)
    half = (interval[1] - interval[0]) / 2
    decimals = 0 if half >= 2 else 1 if half >= 0.1 else 2 if half >= 0.005 or abs(ratio - 1) >= 0.05 else 3
    return f"{ratio:.{decimals}f}\N{MULTIPLICATION SIGN}"


def size(bytes_: float | None) -> str:
    """`34.2 GiB`."""
    if bytes_ is None:
        return MISSING
    value = float(bytes_)
    for unit in ("B", "KiB", "MiB"):
        if abs(value) < 1024:
            return f"{_figures(value) if unit != 'B' else round(value)} {unit}".replace("-", MINUS)
        value /= 1024
    return f"{_figures(value)} GiB".replace("-", MINUS)


def parameter_count(parameters: int) -> str:
    """`11.9 B`, `83.8 M`, `1.2 K`: how the sizes of models are told."""
    for unit, scale in (("B", 1e9), ("M", 1e6), ("K", 1e3)):
        if parameters >= scale:
            return f"{parameters / scale:,.1f} {unit}"
    return str(parameters)


def size_change(bytes_: float | None) -> str:
    if bytes_ is None:
        return MISSING
    return "0" if bytes_ == 0 else _signed(bytes_, size(bytes_))


def _figures(value: float) -> str:
    """Three or four figures that carry meaning."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:,.1f}"


def _signed(value: float, text: str) -> str:
    return f"+{text}" if value > 0 else text.replace("-", MINUS)


def counted(number: int, noun: str) -> str:
    """`1 line`, `1,200 lines`, `2 processes`."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ss') else 's'}"
