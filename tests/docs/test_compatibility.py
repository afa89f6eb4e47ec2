"""docs/compatibility.md lists what is used of torch's private API."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

from tests.traces import ROOT

PACKAGE = ROOT / "tracekit"
#: What else these rooms use that begins with an underscore: of Python, diffusers and transformers, and our own.
NOT_OF_TORCH = frozenset(
    "_exit _getframe _repeated_blocks _no_split_modules _class_name _MAPPING _degree _native_cudnn _token_ _us"
    " _tracekit_provenance".split()
)
#: Modules whose names are listed one by one.
MODULES = frozenset(
    "_C _profiler _dynamo.convert_frame _inductor.compile_fx _inductor.config.trace _inductor.debug".split()
)


def private_names(tree: ast.Module) -> Iterator[str]:
    """Of torch's modules, and attributes by name or as text, that are neither of the file's own nor of `self`."""
    defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    defined |= {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    defined |= {ast.unparse(node.target) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("torch"):
                yield from (f"{module}.{name.name}" for name in names if "._" in f"{module}.{name.name}")
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name.startswith("torch") and "._" in name.name)
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name not in defined:
                if re.fullmatch(r"_[A-Za-z]\w*|(torch\.)?_(inductor|dynamo)\.[\w.]+", name):
                    yield name


def test_each_private_name_of_torch_is_used_in_one_file_and_listed() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    rooms = (path for room in ("measure", "workloads", "doctor") for path in (PACKAGE / room).glob("*.py"))
    for path in (PACKAGE / "torch_internals.py", *rooms):
        for name in {*private_names(ast.parse(path.read_text()))} - NOT_OF_TORCH - MODULES:
            used[name].add(str(path.relative_to(PACKAGE)))
    listed: dict[str, set[str]] = defaultdict(set)
    file = ""
    text = (ROOT / "docs/compatibility.md").read_text().partition("private API")[2]
    for cells in re.findall(r"^\| (.*?) ?\| (.*?) \| .* \|$", text, re.MULTILINE)[1:]:
        file = cells[0].strip("`") or file
        for name in re.findall(r"`(.+?)`", cells[1]):
            listed[name].add(file)
    assert used == listed
    assert {name: files for name, files in used.items() if len(files) > 1} == {}
