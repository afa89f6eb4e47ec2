"""Every command that a report suggests, pasted into a shell, whatever a run's settings and names hold."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec import Struct
from msgspec.structs import replace
from tests.fuzzing import fuzzed
from tests.report.showing import terminal_text
from tests.shells import BASH, words_of
from tests.sides import make_analysis, make_run, make_settings, make_side

from tracekit import shell
from tracekit.comparison import commands
from tracekit.comparison.commands import measuring_command, repeating_command, run_again
from tracekit.comparison.findings.compilation import find_remedies
from tracekit.comparison.looking import look_at
from tracekit.model.comparison import Finding
from tracekit.model.compilation import NotCompiled
from tracekit.model.run import Settings, UserModel
from tracekit.model.single_run import NothingCompiled
from tracekit.report.composition import reports
from tracekit.report.document import Report
from tracekit.report.markdown import markdown_of
from tracekit.report.page import page_of
from tracekit.statements.findings.waiting import LaunchBound

from .conftest import timed_comparison

#: What ends a fence, a code span, a table's cell, a quoted word, a line or an element; what a shell acts on.
ODD = (
    *("```", "`", "``", "`a` b", "~~~", "|", "\\|", "\\", "a\\", "</pre>", "<b>", "&quot;", "&#39;", "{{ 7 }}", "%}"),
    *(
        "'",
        '"',
        "''",
        "$'",
        "$(>owned)",
        "`>owned`",
        ";>owned;",
        "&& >owned",
        "\n>owned\n",
        "# ",
        "!!",
        "~",
        "*",
        "{a,b}",
    ),
    *("\n", "\r", "\t", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "\u200b", "\xa0", "\u3000", "\ufeff", "é漢😀"),
    *(" ", "  ", " a", "a ", "[bold]", "-", "--x y", "=", "tracekit ", "…", "\udcff"),
)
FREE = st.lists(
    st.one_of(st.sampled_from(ODD), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))),
    max_size=4,
).map("".join)
WAITS = LaunchBound(wall_us=1000.0, idle_us=500.0, host_share=0.95, launching_share=0.9)


class Copied(HTMLParser):
    """The texts that a page's buttons copy: `copy.js` takes what stands in `pre` or `code` beside the button."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.inside: str | None = None
        self.last = ""
        self.source = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        classes = (dict(attributes).get("class") or "").split()
        if tag == "div":
            self.source = "source" in classes
        if tag in ("pre", "code") and self.inside is None:
            self.inside, self.last = tag, ""
        if tag == "button" and "copy" in classes and not self.source:
            self.texts.append(self.last.strip("\n"))

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside is not None:
            self.last += data


def of_page(report: Report) -> set[str]:
    parser = Copied()
    parser.feed(page_of(report))
    return {line for text in parser.texts for line in text.split("\n")}


def of_twin(report: Report) -> tuple[set[str], set[str]]:
    """What stands in blocks of commands, and what stands in code within tables."""
    blocks, spans = set[str](), set[str]()
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(markdown_of(report)):
        if token.type == "fence" and token.info == "sh":
            blocks |= {*token.content.removesuffix("\n").split("\n")}
        spans |= {each.content for each in token.children or () if each.type == "code_inline"}
    return blocks, spans


def in_terminal(command: str, text: str) -> str:
    """The command as the terminal parts it over lines; fails where it is not there."""
    parted = r"(?: | \\\n +)".join(map(re.escape, command.split(" ")))
    found = re.search(parted, text)
    assert found is not None, (command, text)
    return found[0]


class Suggested(Struct):
    """A report, commands that page and twin must show, and those that the terminal shows in this text."""

    report: Report
    everywhere: list[str]
    terminal: list[str]
    text: str = ""


def of_comparison(settings: Settings, odd: str) -> Suggested:
    words = ["tracekit", "profile", settings.workload, "--prompt", odd]
    command = shell.with_variables(shell.joined(words), settings.variables)
    run = make_run(settings=settings, command=f"LD_PRELOAD=x {command}")
    advice = (
        run_again(settings, {"mode": "reduce-overhead"}),
        run_again(settings, switches={"TRITON_Y": "1"}),
        run_again(settings, more=("--out", odd)),
    )
    findings = tuple(Finding(WAITS, 100.0, each) for each in advice)
    comparison = replace(timed_comparison(), findings=findings)
    told = [each.command for each in advice if each]
    measured, repeat, opened = (
        measuring_command(run),
        repeating_command(run, odd),
        shell.joined(["tracekit", "open", odd]),
    )
    text = "".join(
        terminal_text(comparison, shown, width, repeat=repeat, more=opened, crop=False)
        for shown, width in (("all", 60), ("brief", 100))
    )
    report = reports.comparison_report(comparison, run, measured, repeat)
    return Suggested(report, [*told, measured], [*told, repeat, opened], text)


def of_nothing_compiled(settings: Settings, odd: str) -> Suggested:
    why = NotCompiled("scalar_read", odd, odd, "f", odd, inside="loop", explanation=odd)
    run = make_run(settings=settings, command=odd, not_compiled=(why,), repeated_parts=("layers.*",))
    remedies = find_remedies(run)
    single = replace(look_at(make_side(analysis=make_analysis())), nothing_compiled=NothingCompiled((why,), remedies))
    told = [each.command for each in remedies if each.command]
    return Suggested(reports.side_report(single, run, measuring_command(run)), [*told, measuring_command(run)], [])


def assert_pasted_as_meant(
    case: Callable[[Settings, str], Suggested], texts: list[str], empty: Path, modules: tuple[ModuleType, ...]
) -> None:
    """Every command that the case suggests for a run of these settings has the words of which one of the `modules`
    made it."""
    workload, prompt, scope, mode, size, dtype, pretrained, odd, variable = texts
    settings = make_settings(
        workload=workload,
        prompt=prompt,
        scope=scope,
        mode=mode,
        size=size,
        dtype=dtype,
        own=UserModel(options=(f"name={odd}",), takes=("prompt", "pretrained", "size", "dtype")),
        variables={"TRITON_X": variable},
        pretrained=pretrained,
        fullgraph=False,
    )
    joined = shell.joined
    # The words of every command that is made, by its text without variables.
    meant: dict[str, list[str]] = {}

    def noted(words: list[str]) -> str:
        meant[made := joined(words)] = list(words)
        return made

    with pytest.MonkeyPatch.context() as patch:
        for module in modules:
            patch.setattr(module, "joined", noted)
        suggested = case(settings, odd)
    page, (blocks, spans) = of_page(suggested.report), of_twin(suggested.report)
    assert suggested.everywhere and {*suggested.everywhere} <= page & (blocks | spans)
    pasted = {each: each for each in page | blocks} | {
        in_terminal(each, suggested.text): each for each in suggested.terminal
    }
    for command, words in zip(pasted.values(), words_of([*pasted], empty), strict=True):
        if command.startswith("# "):
            assert words == []
            continue
        own = meant[max((each for each in meant if command.endswith(each)), key=len)]
        assert words[-len(own) :] == own
        variables = words[: -len(own)]
        assert {*variables} <= {f"TRITON_X={variable}", "TRITON_Y=1", "TORCHDYNAMO_CAPTURE_SCALAR_OUTPUTS=1"}
        assert command.startswith("TRITON_X=") == (f"TRITON_X={variable}" in variables)


#: Texts that broke something once.
BREAKING = (
    ["vit```;>owned;```", "a\nb", "`", "|", "\\|", "it's", "``", "\x1b", "$'"],
    ["vit", "x " * 80, "--a 'b c'  d", "\\", "y" * 200, "\xa0 \xa0", "  ", "\u202e", "``` `"],
)


@pytest.mark.skipif(BASH is None, reason="no bash")
@pytest.mark.parametrize("case", [of_comparison, of_nothing_compiled])
@given(texts=st.lists(FREE, min_size=9, max_size=9))
@example(texts=BREAKING[0])
@example(texts=BREAKING[1])
@fuzzed(6)
def test_what_is_pasted_has_the_words_that_were_meant(
    case: Callable[[Settings, str], Suggested], texts: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_pasted_as_meant(case, texts, tmp_path_factory.mktemp("empty"), (shell, commands))
