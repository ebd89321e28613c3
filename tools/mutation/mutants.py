"""Small faults of a Python module: one operator, number, word or statement changed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import CodeType

    Change = Callable[[], None]

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATE: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small fault."""

    path: Path
    number: int  # among the mutants of the file
    line: int
    end_line: int
    change: str
    # Function at module or class level that it lies in, `Class.method`; empty elsewhere.
    function: str
    function_line: int

    def tree(self) -> ast.Module:
        """Return the syntax tree of the file with the fault in it."""
        tree = _parse(self.path)
        for number, site in enumerate(_sites(tree)):
            if number == self.number:
                site.apply()
                return ast.fix_missing_locations(tree)
        raise LookupError(f"{self.path}: no mutant {self.number}")

    def code(self) -> CodeType:
        """Return the compiled file with the fault in it."""
        return compile(self.tree(), str(self.path), "exec")


def mutants(path: Path) -> list[Mutant]:
    """Return all mutants of a file, in the order of its syntax tree."""
    return [
        Mutant(
            path,
            number,
            site.node.lineno,
            site.node.end_lineno or site.node.lineno,
            site.change,
            site.function,
            site.function_line,
        )
        for number, site in enumerate(_sites(_parse(path)))
    ]


@dataclass(frozen=True, slots=True)
class _Site:
    node: ast.stmt | ast.expr
    change: str
    apply: Change
    function: str
    function_line: int


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _sites(tree: ast.Module) -> Iterator[_Site]:
    yield from _inside(tree, "", "", 0)


def _inside(node: ast.AST, prefix: str, function: str, line: int) -> Iterator[_Site]:
    """Yield the sites below a node; `prefix` names the classes around it."""
    for field, child in _children(node):
        inner = prefix, function, line
        if isinstance(child, ast.ClassDef) and not function:
            inner = f"{prefix}{child.name}.", "", 0
        elif isinstance(child, ast.FunctionDef) and not function:
            # Defaults and decorators are evaluated where the function is defined.
            yield from _inside(child.args, prefix, "", 0)
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            inner = prefix, f"{prefix}{child.name}", first
        if isinstance(child, ast.expr | ast.stmt):
            for change, apply in _changes(node, field, child):
                yield _Site(child, change, apply, function, line)
        if not _is_left_alone(child):
            yield from _inside(child, *inner)


def _children(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the parts of a node that run: neither types nor docstrings."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "bases", "type_params"}:
            continue
        if field == "args" and isinstance(node, ast.FunctionDef):
            continue
        if field == "value" and isinstance(node, ast.keyword) and node.arg == "strict":
            continue  # zip(strict=True) is an assertion
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield field, child


def _is_left_alone(node: ast.AST) -> bool:
    """Return whether nothing below a node is mutated: messages, types, docstrings."""
    match node:
        case ast.Raise() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Expr(value=ast.Constant()):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case _:
            return False


def _changes(
    parent: ast.AST, field: str, node: ast.stmt | ast.expr
) -> Iterator[tuple[str, Change]]:
    match node:
        case ast.Compare(ops=ops):
            for place, op in enumerate(ops):
                new = _COMPARE[type(op)]
                yield (
                    f"{type(op).__name__} -> {new.__name__}",
                    partial(_put, ops, place, new),
                )
        case ast.BoolOp(op=ast.And()):
            yield "and -> or", lambda: setattr(node, "op", ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "or -> and", lambda: setattr(node, "op", ast.And())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield (
                "not dropped",
                lambda: setattr(node, "operand", ast.UnaryOp(ast.Not(), operand)),
            )
        case ast.UnaryOp(op=ast.USub()):
            yield "- -> +", lambda: setattr(node, "op", ast.UAdd())
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator):
            if operation := _OPERATE.get(type(operator)):
                yield (
                    f"{type(operator).__name__} -> {operation.__name__}",
                    lambda: setattr(node, "op", operation()),
                )
        case ast.Constant(value=bool(value)):
            yield f"{value} -> {not value}", lambda: setattr(node, "value", not value)
        case ast.Constant(value=int(number) | float(number)):
            yield f"{number} -> {number + 1}", lambda: setattr(node, "value", number + 1)
        case ast.Constant(value=str(word)):
            # What is empty or has a space in it is mostly part of a text for people.
            if (
                word
                and " " not in word
                and not isinstance(parent, ast.JoinedStr | ast.Expr)
            ):
                yield f"{word!r} changed", lambda: setattr(node, "value", word + "x")
        case ast.Return(value=ast.expr() as value):
            if not (isinstance(value, ast.Constant) and value.value is None):
                yield (
                    "return None",
                    lambda: setattr(node, "value", ast.Constant(None)),
                )
        case ast.Call(func=ast.Name(id=name) as called) if name in _CALLS:
            yield f"{name} -> {_CALLS[name]}", lambda: setattr(called, "id", _CALLS[name])
        case ast.Raise():
            yield "raise dropped", lambda: _replace(parent, field, node, ast.Pass())
        case ast.Expr(value=ast.Call()):
            yield "call dropped", lambda: _replace(parent, field, node, ast.Pass())
        case ast.Continue():
            yield "continue -> break", lambda: _replace(parent, field, node, ast.Break())
        case ast.Break():
            yield "break -> continue", lambda: _replace(parent, field, node, ast.Continue())
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            if not _negates_by_itself(test):
                yield (
                    "condition negated",
                    lambda: setattr(node, "test", ast.UnaryOp(ast.Not(), test)),
                )
    if isinstance(parent, ast.comprehension) and field == "ifs":
        yield "condition dropped", lambda: parent.ifs.remove(node)  # type: ignore[arg-type]


def _negates_by_itself(test: ast.expr) -> bool:
    """Return whether the changes of a condition itself include its negation."""
    match test:
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.In() | ast.NotIn()]):
            return True
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        case ast.Name(id="TYPE_CHECKING"):
            return True
        case _:
            return False


def _put(operators: list[ast.cmpop], place: int, new: type[ast.cmpop]) -> None:
    operators[place] = new()


def _replace(parent: ast.AST, field: str, old: ast.stmt | ast.expr, new: ast.stmt) -> None:
    statements = getattr(parent, field)
    statements[statements.index(old)] = ast.copy_location(new, old)
