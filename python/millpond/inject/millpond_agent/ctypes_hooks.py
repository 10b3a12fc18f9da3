"""ctypes.CDLL("libc.so.6").malloc is looked up in that library alone, past the probe that lies in front of it. Here the functions that give
and take memory are looked up as a linked program would: in front first."""

import os

from .wrapping import hide, replace

kFamily = frozenset(("malloc", "calloc", "realloc", "reallocarray", "free", "aligned_alloc", "posix_memalign", "memalign", "valloc", "mmap", "munmap", "mremap"))


def _install(ctypes):
    everything = ctypes.CDLL(None)

    def make(original):
        def lookup(self, name):
            if type(name) is str and name in kFamily and os.path.basename(self._name or "").startswith("libc.so"):
                function = self._FuncPtr((name, everything))
                function.__name__ = name
                return function
            return original(self, name)

        return hide(lookup)

    replace(ctypes.CDLL, "__getitem__", make)


HOOKS = {"ctypes": _install}
