"""rich's console, which prints nothing that steers a terminal but what rich itself colours and draws."""

import io
import os
import re
from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from tracekit.printing import printable_lines

#: Columns of what goes into a file or a pipe.
WITHOUT_TERMINAL = 100


def recording_console(width: int) -> Console:
    """A console that keeps what is printed, for `export_html`. Neither the terminal nor the notebook that it is made in
    decides what it shows."""
    return Console(
        file=io.StringIO(),
        record=True,
        width=width,
        force_terminal=True,
        force_jupyter=False,
        color_system="standard",
        markup=False,
        emoji=False,
        highlight=False,
    )


class PrintableConsole(Console):
    """Reads no markup in text, and shows characters that would steer the terminal as harmless ones."""

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None) -> None:
        super().__init__(stderr=stderr, file=file, markup=False, emoji=False, highlight=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = WITHOUT_TERMINAL

    def print(self, *objects: Any, **how: Any) -> None:
        """Files and pipes get no spaces at the ends of lines."""
        if self.is_terminal:
            super().print(*objects, **how)
            return
        with self.capture() as said:
            super().print(*objects, **how)
        self.file.write(re.sub(" +(?=\n)", "", said.get()))

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        # Colours are still styles here, and become escape sequences later.
        for segment in super().render(renderable, options):
            is_harmless = segment.control or segment.text.isprintable()
            yield segment if is_harmless else segment._replace(text=printable_lines(segment.text))
