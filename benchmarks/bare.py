"""The bare twin: a model's own code without everything that makes it hookable.

The source of each class is parsed, and these calls are replaced:

    self.hook_anything(x)   → x             no HookPoint is called or even looked up
    is_heard(...)           → False         no check for attached hooks
    self.clock.ticks(n)     → range(n)      no loop clock runs
    self._note_valid(...)   → None          nothing is recorded for a cache

The twin therefore computes what the model computes, with the same modules and weights, and it
stays up to date when the model's code changes.
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
    """Syntax-tree transformer that removes hook points, checks for hooks, and the clock."""

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
    """Return a copy of the model that shares its weights but fires no hooks."""
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    twin = copy.deepcopy(model, shared)
    stripped: dict[type, type] = {}
    for module in twin.modules():
        kind = type(module)
        if kind.__module__.startswith("workbench.") and not isinstance(module, HookPoint):
            module.__class__ = stripped.setdefault(kind, _strip(kind))
    return twin


def _strip(kind: type) -> type:
    """Return a subclass in which every method that uses hooks is rewritten without them."""
    methods: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("workbench."):
            methods |= {k: _rewrite(v) for k, v in vars(base).items() if inspect.isfunction(v)}
    return type(kind.__name__, (kind,), {k: v for k, v in methods.items() if v})


def _rewrite(method: Any) -> Any:
    """Return the method without hooks, or None if it does not use any."""
    source = ast.parse(textwrap.dedent(inspect.getsource(method)))
    tree = Strip().visit(copy.deepcopy(source))
    if ast.dump(tree) == ast.dump(source):
        return None
    (definition,) = tree.body
    definition.decorator_list = []  # under pytest, a type check that would add to the time
    scope: dict[str, Any] = {}
    code = compile(ast.fix_missing_locations(tree), inspect.getfile(method), "exec")
    exec(code, inspect.unwrap(method).__globals__, scope)
    return scope[method.__name__]
