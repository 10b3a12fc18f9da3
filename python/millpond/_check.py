"""millpond.check: a function that must not leak, in a test.

    def test_step():
        millpond.check(step, max_growth="100 kB/call")

    with millpond.check(max_growth="100 kB/call") as check:       # a block
        for _ in check.rounds():
            step()

The function is called again and again, until it can be told whether memory grows: at most 30 times or 60 seconds."""

from __future__ import annotations

import re
import tempfile
import time
from typing import Any, Callable, Iterator

from . import _amounts
from ._report import Finding, Report
from ._watch import Watch

__all__ = ["Check", "LeakError", "Unsure", "check"]

kTimes, kSeconds = 30, 60.0
kSteps = (10, 20)  # looked at after 10 calls, and, if that does not tell, after 20 more
_kAmount = re.compile(r"^\s*([0-9.]+)\s*([kKMGT]?)(i?)[bB]?\s*(?:/\s*([a-z]+))?\s*$")


class LeakError(AssertionError):
    """Memory grows, or a limit is broken. `report` is the answer; `cause`, `line` and `fix` are those of its first finding."""

    __module__ = "millpond"

    def __init__(self, text: str, report: Report, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.report = report
        self.finding = finding

    @property
    def cause(self) -> str:
        return self.finding.cause if self.finding else ""

    @property
    def file(self) -> str:
        return self.finding.file if self.finding else ""

    @property
    def line(self) -> int:
        return self.finding.line if self.finding else 0

    @property
    def fix(self) -> str:
        return self.finding.fix if self.finding else ""


class Unsure(LeakError):
    """It cannot be told whether memory grows."""

    __module__ = "millpond"


def bytes_of(amount: str | int | float) -> tuple[float, str]:
    """("1 MB/call") -> bytes, unit. kB, MB, GB mean powers of 1000; KiB, MiB, GiB of 1024."""
    if isinstance(amount, (int, float)):
        return float(amount), ""
    found = _kAmount.match(amount)
    if not found:
        raise ValueError("%r is not an amount of memory; write 100 kB/call, 2 GiB, ..." % (amount,))
    number, prefix, binary, unit = found.groups()
    return float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " "), unit or ""


class Check:
    """A check that goes on: rounds() yields until it can be told, the end of the block raises."""

    def __init__(self, max_growth: str | int = "1 MB/call", max_peak: str | int | None = None, *, repeat: int | None = None, seconds: float = kSeconds,
                 allow_unsure: bool = False) -> None:
        self.max_growth = max_growth
        self.max_peak = max_peak
        self.allow_unsure = allow_unsure
        self.report: Report | None = None
        self.times = 0
        self._growth, unit = bytes_of(max_growth)
        if unit not in ("", "call", "round"):
            raise ValueError("max_growth is for each call of the function: 1 MB/call, not 1 MB/%s" % unit)
        self._peak = bytes_of(max_peak)[0] if max_peak is not None else None
        self._steps = (repeat,) if repeat else kSteps
        self._seconds = seconds
        self._ran = False

    def rounds(self) -> Iterator[int]:
        """Numbers of rounds, from 0, until it can be told."""
        self._ran = True
        until = time.monotonic() + self._seconds
        for step in self._steps:
            folder = tempfile.TemporaryDirectory(prefix="millpond-check-")
            with Watch(folder.name + "/run.pond", folder=folder) as one:
                for _ in range(step):
                    yield self.times
                    one.round("call", self.times)
                    self.times += 1
                    if time.monotonic() > until:
                        break
            self.report = one.report()
            if self.report.verdict != "unsure" or time.monotonic() > until:
                return

    def judge(self) -> Report:
        """Raises if a limit is broken."""
        __tracebackhide__ = True  # pytest shows where the test called
        report = self.report
        if report is None:
            raise RuntimeError("millpond.check: no round has run; use `for _ in check.rounds():` in the block")
        if report.verdict is None:  # under `millpond watch`, which has the answer
            return report
        worst = report.findings[0] if report.findings else None
        peak = report.data.get("peak_rss") or 0
        if self._peak is not None and peak > self._peak:
            raise LeakError(_text("memory reaches %s; at most %s are allowed" % (_amounts.text_of(int(peak)), self.max_peak), report, worst), report, worst)
        for finding in report.findings:
            if finding.verdict == "leak" and finding.data.get("sets_verdict", True):
                per_call = self._per_call(finding)
                if per_call > self._growth:
                    raise LeakError(_text("memory grows by %s per call; at most %s is allowed" % (_amounts.text_of(int(per_call)), self.max_growth), report, finding), report, finding)
        if report.verdict == "unsure" and not self.allow_unsure:
            raise Unsure(_text("after %d calls it cannot be told whether memory grows; allow_unsure=True lets this pass" % self.times, report, worst), report, worst)
        return report

    def _per_call(self, finding: Finding) -> float:
        if finding.bytes_per_unit is not None and finding.unit in ("call", "round"):
            return finding.bytes_per_unit
        return (finding.data.get("total_bytes") or 0) / max(self.times, 1)

    def __enter__(self) -> Check:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        __tracebackhide__ = True
        if kind is None:
            self.judge()


def check(function: Callable[..., Any] | None = None, *args: Any, max_growth: str | int = "1 MB/call", max_peak: str | int | None = None,
          repeat: int | None = None, seconds: float = kSeconds, allow_unsure: bool = False, **kwargs: Any) -> Any:
    """Calls function(*args, **kwargs) until it can be told whether memory grows, and raises LeakError if it does. Returns the Report.

    max_growth    what is allowed for each call
    max_peak      the most resident memory that is allowed
    repeat        this many calls, neither more nor less
    seconds       not longer than that
    allow_unsure  True: what cannot be told passes

    Without a function: a context, `with millpond.check() as check: for _ in check.rounds(): ...`"""
    __tracebackhide__ = True
    one = Check(max_growth, max_peak, repeat=repeat, seconds=seconds, allow_unsure=allow_unsure)
    if function is None:
        return one
    for _ in one.rounds():
        function(*args, **kwargs)
    return one.judge()


def _text(first: str, report: Report, finding: Finding | None) -> str:
    lines = [first, report.sentence]
    if finding is not None:
        if finding.file:
            lines.append("  %s:%d in %s" % (finding.file, finding.line, finding.function or "?"))
        if finding.snippet:
            lines.append("    " + finding.snippet)
        if finding.holder:
            lines.append("  held by " + finding.holder)
        if finding.fix:
            lines.append("  fix: " + finding.fix)
    return "\n".join(line for line in lines if line)
