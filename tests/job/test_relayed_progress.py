from pathlib import Path

from tracekit.job.relayed_progress import Relaying, shown_on


class Heard:
    def __init__(self) -> None:
        self.said: list[object] = []

    def stages(self, names: object) -> None:
        self.said.append(("stages", names))

    def stage(self, name: str, **about: object) -> None:
        self.said.append(("stage", name, about["at_most_seconds"]))

    def phase(self, name: str, total: int | None = None, *, still: bool = False) -> None:
        self.said.append(("phase", name, total, still))

    def detail(self, text: str) -> None:
        self.said.append(("detail", text))

    def advance(self) -> None:
        self.said.append("advance")


def test_what_one_process_says_another_shows_once(tmp_path: Path) -> None:
    file, heard = tmp_path / "word", Heard()
    told, show = Relaying(file), shown_on(heard)
    told.stages(["build", "timing"])
    told.stage("timing", at_most_seconds=3.0)
    told.phase("timing", total=4, still=True)
    show(file.read_text())
    show(file.read_text())
    expected = [("stages", ("build", "timing")), ("stage", "timing", 3.0), ("phase", "timing", 4, True)]
    assert heard.said == expected
    told.advance()
    told.advance()
    told.phase("timing", total=2)
    told.detail("call 1")
    show(file.read_text())
    # Of a phase that is over nothing more is shown; one of the same name is another.
    assert heard.said[3:] in ([("phase", "timing", 2, False)], [("phase", "timing", 2, False), ("detail", "call 1")])
