"""Tests that fail when they leak: @pytest.mark.memory(max_growth="1 MB/epoch", max_peak="2 GB", repeat=50), and pytest --millpond.

A marked test runs in a pytest of its own under `millpond check`. That inner pytest writes its reports to a file, and the outer one passes
them on, with a failure where a limit is broken. Fixtures are set up in the inner process only."""

import json
import os
import subprocess
import sys
import tempfile

import pytest

from millpond._command import find_program

INNER = "MILLPOND_PYTEST"  # in the inner process: the file for its reports, or "-" where nobody reads them


def pytest_addoption(parser):
    group = parser.getgroup("millpond", "memory of tests")
    group.addoption("--millpond", action="store_true", help="run all of pytest under `millpond check`: the run fails if it leaks")
    group.addoption("--millpond-max-growth", metavar="AMOUNT", help="growth that --millpond allows: 1MB/epoch, 100kB/call")
    group.addoption("--millpond-max-peak", metavar="AMOUNT", help="the most resident memory that --millpond allows: 2GB")
    group.addoption("--millpond-missing", choices=("fail", "skip"), default="fail", help="what marked tests do where there is no millpond")


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "memory(max_growth=None, max_peak=None, repeat=1): run this test under `millpond check` and fail if it leaks or breaks a limit")


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
    # 3: tests failed, and said so themselves; 1: memory did
    return {0: pytest.ExitCode.OK, 1: pytest.ExitCode.TESTS_FAILED, 2: pytest.ExitCode.USAGE_ERROR, 3: pytest.ExitCode.TESTS_FAILED}.get(
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
    allowed = {"max_growth", "max_peak", "repeat"}
    unknown = set(marker.kwargs) - allowed
    if unknown or marker.args:
        return [_report(item, "failed", "@pytest.mark.memory knows max_growth, max_peak and repeat, not %s" % (", ".join(sorted(unknown)) or "values without a name"))]
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
        if done.returncode == 1:
            return _with_failure(item, inner, result)
        if done.returncode == 3 and not any(report.failed for report in inner):
            return inner + [_report(item, "failed", "the process of the test died\n%s%s" % (done.stdout, done.stderr))]
        return inner


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


def _with_failure(item, inner, path):
    """The inner reports with a failed call: the test may have passed, its memory has not."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        found = {}
    broken = [limit["text"] for limit in found.get("check", {}).get("broken", [])]
    text = "\n".join(["memory: " + line for line in broken] or ["memory: a limit is broken"])
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
    repeat = int(marker.kwargs.get("repeat", 1)) if marker is not None and os.environ.get(INNER) else 1
    if repeat > 1:
        original = pyfuncitem.obj
        pyfuncitem.obj = _repeated(original, repeat)
        try:
            yield
        finally:
            pyfuncitem.obj = original
    else:
        yield


def _repeated(function, repeat):
    def test(**arguments):
        for number in range(1, repeat + 1):
            function(**arguments)
            _round(number)

    return test


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
