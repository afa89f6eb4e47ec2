"""Does a value that is read from a tensor decide which code runs next? Then no graph holds it, whatever is captured."""

import ast
import linecache
from collections.abc import Iterator, Sequence

#: What reads a value, by its name; a tensor that is reckoned from one is no such value.
READS = ("item", "tolist", "int", "float", "bool")
#: Of a function that tensors come out of, what it returns is no such value.
FORWARD = "forward"
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def steers_branch(frames: Sequence[tuple[str, str | int, str | None]]) -> bool:
    """Whether the value that the innermost of these frames (file, line, function; the innermost last) reads does: a
    test on its line calls something, or a test or range of its function has a name that its line gives the value. What
    a helper returns is looked for at the line that called it."""
    for depth, (file, number, function) in enumerate(reversed(frames)):
        line, tree = int(number), tree_of(file)
        functions = [each for each in ast.walk(tree) if isinstance(each, Function) and _holds(each, line)]
        # The innermost one; without any the file.
        within = max(functions, key=lambda each: each.lineno, default=tree)
        statements = [each for each in ast.walk(within) if isinstance(each, ast.stmt) and _holds(each, line)]
        names = {name for each in statements for name in _assigned(each, called=depth > 0)}
        for test in _tests(within):
            inside = [*ast.walk(test)]
            if _holds(test, line) and any(isinstance(each, ast.Call) for each in inside):
                return True
            if any(isinstance(each, ast.Name) and each.id in names for each in inside):
                return True
        if function == FORWARD or not any(isinstance(each, ast.Return) for each in statements):
            return False
    return False


def tree_of(file: str) -> ast.AST:
    """The file's code; an empty one where it cannot be read."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _holds(node: ast.stmt | ast.expr, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


def _assigned(statement: ast.stmt, *, called: bool) -> Iterator[str]:
    """The names that the statement gives what it reads, or what it `called` returns."""
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call):
        function = statement.value.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)
        if called or name in READS:
            yield from (each.id for each in statement.targets if isinstance(each, ast.Name))


def _tests(function: ast.AST) -> Iterator[ast.expr]:
    """The expressions that decide how the function goes on."""
    for each in ast.walk(function):
        if isinstance(each, ast.If | ast.While | ast.IfExp | ast.Assert):
            yield each.test
        elif isinstance(each, ast.Match):
            yield each.subject
        elif isinstance(each, ast.comprehension):
            yield from each.ifs
        elif isinstance(each, ast.For) and isinstance(each.iter, ast.Call):
            yield each.iter
