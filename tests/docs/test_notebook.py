"""The notebook runs as it is, from its own folder."""

import ast
import json

import pytest

from .texts import DOCS

NOTEBOOK = DOCS / "examples" / "notebook.ipynb"


def test_every_cell_of_the_notebook_runs_and_shows_something(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(NOTEBOOK.parent)
    told = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (told["nbformat"], told["nbformat_minor"]) == (4, 5)
    cells = [cell for cell in told["cells"] if cell["cell_type"] == "code"]
    names: dict[str, object] = {}
    for cell in cells:
        # Results are made anew, not kept.
        assert cell["outputs"] == []
        *statements, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(statements, []), cell["id"], "exec"), names)
        assert isinstance(last, ast.Expr)
        shown = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
        assert hasattr(shown, "_repr_html_") and shown._repr_html_(), cell["id"]
