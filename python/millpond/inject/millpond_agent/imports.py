"""Runs a hook when a module has been imported: a finder in front of sys.meta_path that finds nothing itself, but asks the others
and lets the loader they name call the hook once the module is executed. The loader stays what it is."""

import sys

from . import link, state
from .wrapping import hide

_hooks = {}  # module name -> functions of the module
_searching = set()


def add(hooks):
    for name, function in hooks.items():
        _hooks.setdefault(name, []).append(function)


def install():
    for name in list(_hooks):
        module = sys.modules.get(name)
        if module is not None:
            _run(name, module)
    _Finder.find_spec = staticmethod(link.untraced(_Finder.find_spec))  # a tracer of the program's is not to see every import twice
    sys.meta_path.insert(0, _Finder)


def remove():
    _hooks.clear()
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)


def _run(name, module):
    for function in _hooks.pop(name, ()):
        try:
            with state.own_work():
                function(module)
        except Exception:
            link.oops()


class _Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in _hooks or name in _searching:
            return None
        _searching.add(name)
        try:
            spec = _ask_others(name, path, target)
        finally:
            _searching.discard(name)
        loader = getattr(spec, "loader", None)
        if loader is not None and hasattr(loader, "exec_module"):
            try:
                _listen(loader, name)
            except Exception:
                link.oops()
        return spec


def _ask_others(name, path, target):
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if finder is _Finder or find is None:
            continue
        spec = find(name, path, target)
        if spec is not None:
            return spec
    return None


def _listen(loader, name):
    original = loader.exec_module

    def done(module):
        try:
            del loader.exec_module
        except AttributeError:
            pass
        _run(name, module)

    def exec_module(module):
        original(module)
        done(module)

    loader.exec_module = link.after(original, done) or hide(exec_module)
