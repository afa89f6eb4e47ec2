import shlex

import pytest
from msgspec.structs import replace
from tests.report.showing import printed, terminal_text

from tracekit.comparison.looking import look_at
from tracekit.model.run import FormResult
from tracekit.model.timing import FormTiming, ProcessTimes, Startup
from tracekit.report.document import Markdown
from tracekit.report.markdown import fenced

from ..sides import make_analysis, make_form, make_side
from .conftest import hostile_comparison

TWIN = """## Findings

**warning: fused attention lost** (up to 5 ms per call)

Issue #<!-- -->12 of a\\_name, at 10.5 ms for 1.04 ms, at 0 for 1.02 ms.

### Modules

| Module | eager, ms | compiled | kernels |
|---|--:|--:|--:|
| the model | 269.9 | 199.2 | 13,466 -> 6,194 |
| &nbsp;&nbsp;&nbsp;layers.\\*.attention | 138.6 | 93.2 |  |

Per call.

### Best for

| Work | Mode | Best | Command |
|---|---|---|---|
| vit | eager | first call | `tracekit profile vit --size full --dtype bfloat16 --batch-size 1 --no-startup` |

- **GPU busy time.** The union of kernels, copies and memsets over all streams.

```text
launch  +58.3 µs    │▌
```
"""


@pytest.mark.parametrize("width", [80, 40])
def test_a_twin_is_drawn_for_the_terminal_s_width(width: int, snapshot) -> None:
    assert printed((Markdown(TWIN),), width, crop=False) == snapshot


def test_hostile_names_neither_colour_nor_steer_the_terminal():
    for found in (hostile_comparison(), look_at(hostile_comparison().a)):
        text = terminal_text(found, "all", 80)
        assert not {"\x1b", "\r", "\u202e"} & {*text} and "[bold red]" in text
        assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    "options", [[f"--option-{i} value" for i in range(12)], [*["--prompt", "a dog's house by the sea"] * 5, "a b"]]
)
def test_long_commands_can_be_copied(options: list[str]):
    command = shlex.join(["tracekit", "profile", "vit", *options])
    lines = printed((Markdown(fenced(command)),))
    assert len(lines.splitlines()) > 2
    assert shlex.split(lines.replace("\\\n", " ")) == shlex.split(command)


def alone(form: FormResult) -> str:
    return " ".join(terminal_text(look_at(make_side("trace.json.gz", make_analysis(), form)), "all", 80).split())


def test_other_processes_and_starts_of_one_form_are_shown():
    repeats = tuple(ProcessTimes((us,) * 5, None, (), "asked number", 1.0) for us in (1200.0, 1300.0))
    timing = FormTiming("asked number", None, None, 1.0, (), repeats)
    starts = (Startup("compiled_no_cache", 3.25, (12e6, 900.0, 900.0), 1, 0),)
    text = alone(replace(make_form("compiled"), timing=timing, startups=starts))
    for told in ("Wall time, process 1 of 2", "1.20 ms", "1.30 ms", "First call, compiled, no cache 12.0 s"):
        assert told in text


def test_compiling_inside_the_calls_of_one_form_is_warned_of():
    assert "2 compilations inside 10 timed calls" in alone(make_form("compiled", during_timing=2))
    assert "compilations inside 10" not in alone(make_form("compiled", during_timing=0))
