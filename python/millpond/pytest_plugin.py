"""Tests that fail when they leak: @pytest.mark.memory(max_growth="1 MB/call", max_peak="2 GB"), and pytest --millpond.

A marked test runs in a pytest of its own under `millpond check`. That inner pytest calls the test again and again until it can be told whether memory
grows (at most 30 times or 60 seconds; `repeat=50` sets the number), and writes its reports to a file. The outer one passes them on, with a failure where a limit
is broken or where it cannot be told (unless `allow_unsure=True`). Fixtures are set up once, in the inner process only."""

import json
import os
import subprocess
import sys
import tempfile
import time

import pytest

from millpond._command import find_program

kTimes, kSeconds = 30, 60.0
kFewest = 6  # fewer calls than that tell nothing, unless a leak is seen all the same
INNER = "MILLPOND_PYTEST"  # in the inner process: the file for its reports, or "-" where nobody reads them


def pytest_addoption(parser):
    group = parser.getgroup("millpond", "memory of tests")
    group.addoption("--millpond", action="store_true", help="run all of pytest under `millpond check`: the run fails if it leaks")
    group.addoption("--millpond-max-growth", metavar="AMOUNT", help="growth that --millpond allows: 1MB/epoch, 100kB/call")
    group.addoption("--millpond-max-peak", metavar="AMOUNT", help="the most resident memory that --millpond allows: 2GB")
    group.addoption("--millpond-allow-unsure", action="store_true", help="--millpond passes where it cannot be told whether memory grows")
    group.addoption("--millpond-missing", choices=("fail", "skip"), default="fail", help="what marked tests do where there is no millpond")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "memory(max_growth=None, max_peak=None, repeat=None, allow_unsure=False): call this test under `millpond check` until it can be told whether it leaks, and "
        "fail if it does or breaks a limit")


def _missing():
    named = os.environ.get("MILLPOND")
    if named:
        return "MILLPOND is %s, which is not a program; set it to the path of millpond" % named
    return "millpond is not on PATH; install it or set MILLPOND to its path"


def _limits(max_growth, max_peak):
    words = []
    if max_growth:
        words += ["--max-growth", str(max_growth).replace(" ", "")]
    if max_peak:
        words += ["--max-peak", str(max_peak).replace(" ", "")]
    return words


# All of pytest --------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not config.getoption("--millpond") or os.environ.get(INNER):
        return None
    program = find_program()
    if program is None:
        raise pytest.UsageError(_missing())
    with tempfile.TemporaryDirectory() as folder:
        limits = _limits(config.getoption("--millpond-max-growth"), config.getoption("--millpond-max-peak"))
        command = [program, "check", "-o", os.path.join(folder, "run.pond"), *limits, "--", sys.executable, "-m", "pytest", *_arguments(config)]
        done = subprocess.run(command, env=dict(os.environ, **{INNER: "-"}))
    # 3: tests failed, and said so themselves; 1: memory did; 4: it cannot be told whether memory grows
    unsure = pytest.ExitCode.OK if config.getoption("--millpond-allow-unsure") else pytest.ExitCode.TESTS_FAILED
    return {0: pytest.ExitCode.OK, 1: pytest.ExitCode.TESTS_FAILED, 2: pytest.ExitCode.USAGE_ERROR, 3: pytest.ExitCode.TESTS_FAILED, 4: unsure}.get(
        done.returncode, pytest.ExitCode.INTERNAL_ERROR)


def _arguments(config):
    return [str(word) for word in config.invocation_params.args]


# One test -------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    marker = item.get_closest_marker("memory")
    if marker is None or os.environ.get(INNER):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in _run_under_millpond(item, marker):
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _report(item, outcome, text, when="call"):
    longrepr = text
    if outcome == "skipped":
        longrepr = (str(item.path), item.location[1] or 0, text)
    return pytest.TestReport(nodeid=item.nodeid, location=item.location, keywords={name: 1 for name in item.keywords}, outcome=outcome, longrepr=longrepr, when=when)


def _run_under_millpond(item, marker):
    allowed = {"max_growth", "max_peak", "repeat", "allow_unsure"}
    unknown = set(marker.kwargs) - allowed
    if unknown or marker.args:
        return [_report(item, "failed", "@pytest.mark.memory knows max_growth, max_peak, repeat and allow_unsure, not %s" % (
            ", ".join(sorted(unknown)) or "values without a name"))]
    program = find_program()
    if program is None:
        skip = item.config.getoption("--millpond-missing") == "skip"
        return [_report(item, "skipped" if skip else "failed", _missing(), "setup" if skip else "call")]
    with tempfile.TemporaryDirectory() as folder:
        reports, result, run = (os.path.join(folder, name) for name in ("reports", "result.json", "run.pond"))
        command = [program, "check", "-o", run, "--json", result, "--quiet", *_limits(marker.kwargs.get("max_growth"), marker.kwargs.get("max_peak")), "--",
                   sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *_plugins(item.config), "--rootdir", str(item.config.rootpath), item.nodeid]
        done = subprocess.run(command, env=dict(os.environ, **{INNER: reports}), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=str(item.config.rootpath), text=True, errors="replace")
        inner = _read_reports(item.config, reports)
        if not inner or done.returncode == 2:
            return inner + [_report(item, "failed", "millpond check ended with %d\n%s%s" % (done.returncode, done.stdout, done.stderr))]
        found = _read_json(result)
        if done.returncode == 1:
            return _with_failure(item, inner, found, [limit["text"] for limit in found.get("check", {}).get("broken", [])] or ["a limit is broken"])
        if done.returncode == 3 and not any(report.failed for report in inner):
            return inner + [_report(item, "failed", "the process of the test died\n%s%s" % (done.stdout, done.stderr))]
        calls = _read_json(reports + ".calls").get("calls")  # None: the test was not called, or raised
        if calls is not None and not marker.kwargs.get("allow_unsure"):
            # Where only the peak is limited, whether memory grows was not asked.
            asked = "max_growth" in marker.kwargs or "max_peak" not in marker.kwargs
            if asked and (done.returncode == 4 or found.get("verdict") == "unsure" or (calls < kFewest and "repeat" not in marker.kwargs)):
                return _with_failure(item, inner, found, ["after %d call%s it cannot be told whether it grows; make the test quicker, say repeat=..., or allow_unsure=True" % (
                    calls, "" if calls == 1 else "s")])
        return inner


def _read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {}


def _plugins(config):
    """-p and -c of the outer command line: the inner pytest must know what the test needs."""
    words, given = [], [str(word) for word in config.invocation_params.args]
    for at, word in enumerate(given):
        if word in ("-p", "-c", "-o", "--confcutdir", "--import-mode") and at + 1 < len(given):
            words += [word, given[at + 1]]
        elif word.startswith(("-p", "-o", "--confcutdir=", "--import-mode=", "--override-ini=", "--config-file=")) and word not in ("-p", "-o"):
            words.append(word)
    return words


def _read_reports(config, path):
    try:
        with open(path, encoding="utf-8") as file:
            reports = [config.hook.pytest_report_from_serializable(config=config, data=json.loads(line)) for line in file]
    except OSError:
        return []
    for report in reports:
        if isinstance(report.longrepr, list):  # JSON has no tuples; pytest insists on one for a skip
            report.longrepr = tuple(report.longrepr)
    return reports


def _with_failure(item, inner, found, broken):
    """The inner reports with a failed call: the test may have passed, its memory has not."""
    text = "\n".join("memory: " + line for line in broken)
    sentence = found.get("sentence")
    if sentence and sentence not in text:
        text += "\n" + sentence
    for finding in found.get("findings", [])[:1]:
        blame = finding.get("blame") or {}
        if blame.get("file"):
            text += "\n  %s:%s in %s" % (blame["file"], blame.get("line"), blame.get("function") or "?")
            if blame.get("snippet"):
                text += "\n    " + blame["snippet"]
        if finding.get("holder"):
            text += "\n  held by " + finding["holder"]
        if finding.get("fix"):
            text += "\n  fix: " + finding["fix"]
    reports = []
    for report in inner:
        if report.when == "call" and report.passed:
            report.outcome, report.longrepr = "failed", text
        reports.append(report)
    if not any(report.failed for report in reports):
        reports.append(_report(item, "failed", text))
    return reports


# Inside ---------------------------------------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    marker = pyfuncitem.get_closest_marker("memory")
    if marker is None or not os.environ.get(INNER):
        yield
        return
    _only_this_test_runs(pyfuncitem)
    original = pyfuncitem.obj
    # Where only the peak is limited one call tells it.
    times = marker.kwargs.get("repeat") or (1 if "max_peak" in marker.kwargs and "max_growth" not in marker.kwargs else None)
    pyfuncitem.obj = _repeated(original, times)
    try:
        yield
    finally:
        pyfuncitem.obj = original


def _repeated(function, times):
    """The test, again and again: `times`, or until it can be told."""

    def test(**arguments):
        watch = _Growth()
        number = 0
        while number < (times or kTimes):
            function(**arguments)
            number += 1
            if times != 1:
                _round(number)
            if times is None and watch.tells(number):
                break
        path = os.environ.get(INNER, "-")
        if path != "-":
            with open(path + ".calls", "w", encoding="utf-8") as file:
                json.dump({"calls": number}, file)

    return test


class _Growth:
    """When there is no use in another call: time is up, growth is plain, or the memory that is left is short. The verdict is not made here."""

    kPlain = 64 << 20

    def __init__(self):
        self.begin = time.monotonic()
        self.first = self.highest = 0
        self.may_take = _available() // 8

    def tells(self, number):
        resident = _resident()
        spent = time.monotonic() - self.begin
        if number <= 3:
            self.first = self.highest = resident
        grown = resident - self.first
        still = resident <= self.highest + (256 << 10)
        self.highest = max(self.highest, resident)
        if spent > kSeconds or grown > self.may_take:
            return True
        return number >= 10 and (grown > self.kPlain or (spent > 5 and still and grown < 1 << 20))


def _resident():
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def _available():
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    return 1 << 62


def _only_this_test_runs(item):
    """The agent looks up in the source which line adds to a container. The other tests of the file do not run in this process, so it is none of theirs."""
    if "millpond_agent" not in sys.modules:
        return
    try:
        from millpond_agent import sources

        read, mine = sources.read, item.function.__qualname__
        prefixes = tuple(word.rstrip("*") for word in item.config.getini("python_functions"))
        thinned = set()

        def read_this(file):
            source = read(file)
            if source is not None and file == str(item.path) and file not in thinned:
                thinned.add(file)
                source.adds = [add for add in source.adds if not _is_of_another(add.function, mine, prefixes)]
            return source

        sources.read = read_this
    except Exception:  # another version of the agent: its line may be that of another test
        pass


def _is_of_another(function, mine, prefixes):
    if not function or function == mine or function.startswith(mine + "."):
        return False
    return any(part.startswith(prefixes) for part in function.split("."))


def _round(number):
    """One call is done. The doctor's agent hears it directly: what it hears as a printed line it thins out when lines come fast. Where there is
    no agent (python -I), the printed line says it."""
    if "millpond_agent" not in sys.modules:
        print("call %d" % number, flush=True)
        return
    try:
        import time

        from millpond_agent import link, periods, probes

        link.units[link.CALL] += 1
        series = periods.get("call", "test")
        series.coarse = True  # rounds that a person asked for: they lead, and probes follow them
        series.count += 1
        link.mark("call", "test", series.count, link.PERIOD | link.SNAPSHOT)
        probes.after_period(series, time.monotonic())
    except Exception:
        print("call %d" % number, flush=True)


def pytest_runtest_logreport(report):
    path = os.environ.get(INNER, "-")
    if path == "-" or _config is None:
        return
    data = _config.hook.pytest_report_to_serializable(config=_config, report=report)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(data) + "\n")


_config = None


def pytest_sessionstart(session):
    global _config
    _config = session.config
