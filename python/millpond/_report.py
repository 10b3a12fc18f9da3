"""What a run says: the answer of `millpond report`, as an object. Nothing is judged here; the program does that."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any, Iterator

__all__ = ["Finding", "Report", "ReportError"]

_kSeconds = 120


class ReportError(RuntimeError):
    """The run file cannot be read; the text says why."""


class Finding:
    """One thing that was found. What the JSON of the program has more (docs/doctor.md) is in `data`."""

    __slots__ = ("data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data

    @property
    def verdict(self) -> str:
        return self.data.get("verdict") or ""

    @property
    def cause(self) -> str:
        """The cause's id, such as C14."""
        return self.data.get("cause") or ""

    @property
    def title(self) -> str:
        return self.data.get("title") or ""

    @property
    def fix(self) -> str:
        return self.data.get("fix") or ""

    @property
    def holder(self) -> str:
        return self.data.get("holder") or ""

    @property
    def unit(self) -> str:
        """What the growth is told for: epoch, round, call, ..."""
        return self.data.get("unit") or ""

    @property
    def bytes_per_unit(self) -> float | None:
        return self.data.get("bytes_per_unit")

    @property
    def file(self) -> str:
        return self._blame("file") or ""

    @property
    def line(self) -> int:
        return int(self._blame("line") or 0)

    @property
    def function(self) -> str:
        return self._blame("function") or ""

    @property
    def snippet(self) -> str:
        """The line of source, as it was when it was recorded."""
        return self._blame("snippet") or ""

    def _blame(self, key: str) -> Any:
        return (self.data.get("blame") or {}).get(key)

    def __repr__(self) -> str:
        where = " at %s:%d" % (os.path.basename(self.file), self.line) if self.file else ""
        return "<%s %s%s: %s>" % (self.verdict, self.cause, where, self.title)


class Report:
    """The answer on a run file.

    verdict   leak, fragmentation, retention, cache, reserve, flat or unsure; None where there is no run file of its own
    sentence  the answer in words
    findings  what was found, the worst first
    path      the run file
    remarks   what could not be seen"""

    def __init__(self, path: str | None, data: dict[str, Any], text: str, remarks: tuple[str, ...] = (), folder: Any = None) -> None:
        self.path = path
        self.data = data
        self.verdict: str | None = data.get("verdict")
        self.sentence: str = data.get("sentence") or ""
        self.findings: list[Finding] = [Finding(finding) for finding in data.get("findings") or []]
        self.remarks = tuple(remarks)
        self._text = text
        self._folder = folder  # a temporary one that goes with this object
        self._series: list[tuple[float, float]] | None = None

    @classmethod
    def of(cls, path: str, remarks: tuple[str, ...] = (), folder: Any = None) -> Report:
        """Reads a run file."""
        path = os.path.abspath(path)
        try:
            data = json.loads(_run("report", path, "--json", "-"))
        except ValueError:
            raise ReportError("millpond report said something about %s that is not JSON" % path)
        return cls(path, data, _run("report", path, "--color", "never").rstrip(), remarks, folder)

    def to_json(self) -> str:
        """One JSON object, as `millpond report --json` gives it."""
        return json.dumps(self.data, indent=2, ensure_ascii=False)

    def save_html(self, path: str | os.PathLike[str]) -> str:
        """Writes the page: one file that needs nothing else, to look at and to send. Returns its path."""
        path = os.path.abspath(os.fspath(path))
        if self.path is None:
            raise ReportError(self.sentence)
        _run("report", self.path, "-o", path)
        return path

    def series(self) -> list[tuple[float, float]]:
        """Resident memory of the run: seconds and bytes."""
        if self._series is None:
            self._series = list(_resident(_run("report", self.path, "--csv", "-"))) if self.path else []
        return self._series

    def __str__(self) -> str:
        return "\n".join([self._text, *("note: " + remark for remark in self.remarks)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from . import _html

        return _html.report(self)


def _run(*words: str) -> str:
    from . import _inside

    command = [_inside.program(), *words]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=_kSeconds, encoding="utf-8", errors="replace")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ReportError("`%s` did not work: %s" % (" ".join(command[:2]), error))
    if done.returncode:
        raise ReportError("`millpond %s` ended with %d: %s" % (words[0], done.returncode, done.stderr.strip() or "it said nothing"))
    return done.stdout


def _resident(table: str) -> Iterator[tuple[float, float]]:
    """Of `report --csv`: seconds,mark,index,account,kind,bytes."""
    for row in table.splitlines()[1:]:
        cells = row.split(",")
        if len(cells) >= 6 and cells[-3] == "resident" and cells[-2] == "resident":
            try:
                yield float(cells[0]), float(cells[-1])
            except ValueError:
                pass
