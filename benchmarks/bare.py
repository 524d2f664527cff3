"""The bare twin: a model's own code with everything that makes it hookable taken out.

The source of each class is parsed, and from it are removed

    self.hook_anything(x)   → x             no HookPoint is called, or even looked up
    is_heard(...)           → False         nothing asks whether one is heard
    self.clock.ticks(n)     → range(n)      no loop clock runs
    self._note_valid(...)   → None          nothing is noted for a cache

so that the twin computes what the model computes, through the same modules and the same weights,
and keeps doing so when the model's code changes.
"""

import ast
import copy
import inspect
import textwrap
from typing import Any, TypeVar

from torch import nn

from workbench.hooks import HookPoint

Model = TypeVar("Model", bound=nn.Module)


class Strip(ast.NodeTransformer):
    """Takes hook points, the questions about them and the clock out of a syntax tree."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(attr=name) if name.startswith("hook_") and node.args:
                return node.args[0]
            case ast.Attribute(attr="ticks"):
                return ast.Call(ast.Name("range", ast.Load()), node.args, [])
            case ast.Name(id="is_heard"):
                return ast.Constant(False)
            case ast.Attribute(attr="_note_valid"):
                return ast.Constant(None)
        return node


def bare_twin(model: Model) -> Model:
    """A copy of the model, sharing its weights, that no hook can hear."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    stripped: dict[type, type] = {}
    for module in twin.modules():
        kind = type(module)
        if kind.__module__.startswith("workbench.") and not isinstance(module, HookPoint):
            module.__class__ = stripped.setdefault(kind, _strip(kind))
    return twin


def _strip(kind: type) -> type:
    """A subclass in which every method that has to do with hooks is rewritten without them."""
    methods: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("workbench."):
            methods |= {k: _rewrite(v) for k, v in vars(base).items() if inspect.isfunction(v)}
    return type(kind.__name__, (kind,), {k: v for k, v in methods.items() if v})


def _rewrite(method: Any) -> Any:
    """The method without hooks, or None if it has nothing to do with them."""
    source = ast.parse(textwrap.dedent(inspect.getsource(method)))
    tree = Strip().visit(copy.deepcopy(source))
    if ast.dump(tree) == ast.dump(source):
        return None
    (definition,) = tree.body
    definition.decorator_list = []  # under pytest a type check; it would be part of the time
    scope: dict[str, Any] = {}
    code = compile(ast.fix_missing_locations(tree), inspect.getfile(method), "exec")
    exec(code, inspect.unwrap(method).__globals__, scope)
    return scope[method.__name__]
