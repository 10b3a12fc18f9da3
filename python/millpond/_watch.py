"""millpond.watch: the doctor, from inside the program.

    with millpond.watch() as w:
        for epoch in w.rounds(range(20)):
            train()
    print(w.report())

    @millpond.watch              # each call is a run of its own; the answer is printed when it returns
    def train(): ..."""

from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, Iterable, Iterator, Sequence, TypeVar, overload

from . import _inside
from ._report import Report

__all__ = ["Watch", "watch"]

Item = TypeVar("Item")
Function = TypeVar("Function", bound=Callable[..., Any])


class Watch:
    """One look at this process, from `with` to its end. Made by watch()."""

    def __init__(self, output: str | None = None, *, probes: bool = True, native: bool = False, follow: bool = True, force: bool = False,
                 limit: int | str | None = None, options: Sequence[str] = (), folder: Any = None) -> None:
        self._how: dict[str, Any] = dict(output=output, probes=probes, native=native, follow=follow, force=force, limit=limit, options=tuple(options))
        self._folder = folder
        self._session: Any = None
        self._report: Report | None = None

    @property
    def path(self) -> str | None:
        """The run file; None before the block begins, and in a process that is watched from outside."""
        return self._session.path if self._session is not None else None

    def __enter__(self) -> Watch:
        if self._session is not None and self._session.active:
            raise _inside.InsideError("this watch has begun already; make another one with millpond.watch()")
        self._report = None
        again = _profile_aside()
        try:
            self._session = _inside.enter(**self._how)
        finally:
            again()
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        again = _profile_aside()
        try:
            self._session.leave()
        finally:
            again()

    def round(self, name: str = "round", index: int | None = None) -> None:
        """The end of a round: the same moment of a loop each time. What is alive is compared from one to the next."""
        if self._session is not None:
            self._session.mark_round(name, index)

    def rounds(self, items: Iterable[Item], name: str = "round") -> Iterator[Item]:
        """The items, with the end of a round marked after each."""
        for index, item in enumerate(items):
            yield item
            del item  # it is the program's: what it drops must go
            self.round(name, index)

    def report(self) -> Report:
        """The answer. Within the block: so far."""
        if self._report is not None:
            return self._report
        if self._session is None:
            raise _inside.InsideError("nothing was watched yet: `with millpond.watch() as w: ...`, then w.report()")
        remarks = tuple(self._session.remarks)
        if self._session.path is None:
            text = "This process is under `millpond watch`: that run goes on, and its answer comes at its end."
            return Report(None, {"verdict": None, "sentence": text, "findings": []}, text, remarks)
        answer = Report.of(self._session.path, remarks, self._folder)
        if not self._session.active:
            self._report = answer
        return answer

    def __call__(self, function: Function) -> Function:
        """As a decorator: each call is watched."""
        return _decorated(function, self._how)

    def __repr__(self) -> str:
        state = "not begun" if self._session is None else "watching" if self._session.active else "done"
        return "<millpond.watch %s%s>" % (state, ", " + self.path if self.path else "")


@overload
def watch(function: Function) -> Function: ...


@overload
def watch(function: None = None, *, output: str | None = None, probes: bool = True, native: bool = False, follow: bool = True, force: bool = False,
          limit: int | str | None = None, options: Sequence[str] = ()) -> Watch: ...


def watch(function: Any = None, **how: Any) -> Any:
    """Watches a block (`with millpond.watch() as w:`) or every call of a function (`@millpond.watch`).

    output   the run file; without it run.pond, run-2.pond, ... whatever is free
    probes   False: never gc.collect() and malloc_trim() in the program
    native   True: native frames below the Python ones too
    follow   False: forked children are left alone
    force    True: the run file is replaced if it exists
    limit    memory that must not be exceeded, for the forecast: bytes, or "8GiB"
    options  more words for `millpond watch`"""
    if function is None:
        return Watch(**how)
    if not callable(function):
        raise TypeError("millpond.watch: %r is not a function; the run file is named by output=" % (function,))
    return Watch(**how)(function)


def _profile_aside() -> Callable[[], Any]:
    """The hooks of @millpond.profile go while the probe changes the same tables."""
    lines = sys.modules.get("millpond._lines")
    return lines.aside() if lines is not None else lambda: None


def _decorated(function: Any, how: dict[str, Any]) -> Any:
    def begin() -> Watch | None:
        return Watch(**how).__enter__() if _inside.current() is None else None  # a call within a call, or within a block: that one is watched

    def end(one: Watch | None) -> None:
        if one is None:
            return
        one.__exit__(None, None, None)
        try:
            watched.report = one.report()
            sys.stderr.write(str(watched.report) + "\n")
        except (AttributeError, OSError, RuntimeError, ValueError) as error:
            print("millpond: %s" % error, file=sys.stderr)

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def watched(*args: Any, **kwargs: Any) -> Any:
            one = begin()
            try:
                return await function(*args, **kwargs)
            finally:
                end(one)

    elif inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            one = begin()
            try:
                return (yield from function(*args, **kwargs))
            finally:
                end(one)

    else:

        @functools.wraps(function)
        def watched(*args: Any, **kwargs: Any) -> Any:
            one = begin()
            try:
                return function(*args, **kwargs)
            finally:
                end(one)

    watched.report = None
    return watched
