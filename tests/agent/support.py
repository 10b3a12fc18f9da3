"""Runs programs under the agent, without the probe: what it says comes back as a list of notes and marks."""

import json
import os
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support"))
from pythons import pythons  # noqa: E402

SOURCE = os.environ.get("MILLPOND_SOURCE_DIR") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
INJECT = os.path.join(SOURCE, "python", "millpond", "inject")


class Run:
    def __init__(self, process, log, folder):
        self.code, self.out, self.err = process.returncode, process.stdout, process.stderr
        self.said = []
        self.folder = folder
        if os.path.exists(log):
            with open(log) as file:
                self.said = [json.loads(line) for line in file]
        errors = [said["error"] for said in self.said if "error" in said]
        if errors:
            raise AssertionError("the agent swallowed an exception of its own:\n" + errors[0])

    def notes(self, kind):
        return [note for note in self.said if note.get("note") == kind]

    def marks(self, kind=None, flags=0):
        return [mark for mark in self.said if "mark" in mark and (kind is None or mark["mark"] == kind) and mark["flags"] & flags == flags]

    def containers(self):
        """The last growing containers that were told, by holder."""
        notes = self.notes("holders")
        return {row["holder"]: row for row in notes[-1]["containers"]} if notes else {}

    def calls(self):
        notes = self.notes("lines")
        return {(row["what"], row["line"]): row for row in notes[-1]["calls"]} if notes else {}


def run(program, agent=True, arguments=(), files=None, environment=None, options=(), timeout=60, name="train.py", python=sys.executable):
    """Runs the text `program` as train.py in a folder of its own, with other `files` (name to text) beside it."""
    with tempfile.TemporaryDirectory() as folder:
        for path, text in dict(files or {}, **{name: program}).items():
            full = os.path.join(folder, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w") as file:
                file.write(textwrap.dedent(text))
        log = os.path.join(folder, "agent.jsonl")
        env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MILLPOND_PROBES")}
        env["PYTHONDONTWRITEBYTECODE"] = "1"
        env["FOLDER"] = folder
        paths = [folder] if files else []
        if agent:
            env["MILLPOND_AGENT_LOG"] = log
            paths.insert(0, INJECT)
        if paths:
            env["PYTHONPATH"] = os.pathsep.join(paths)
        env.update(environment or {})
        process = subprocess.run([python, *options, os.path.join(folder, name), *arguments], env=env, cwd=folder, capture_output=True, text=True,
                                 timeout=timeout)
        return Run(process, log, folder)


def line_of(program, text):
    """The number of the line of the program that contains the text."""
    for number, line in enumerate(textwrap.dedent(program).splitlines(), 1):
        if text in line:
            return number
    raise AssertionError("no line with %r" % text)


def agent_modules():
    """For tests of single parts: the agent's package, not started."""
    if INJECT not in sys.path:
        sys.path.insert(0, INJECT)
    import millpond_agent

    return millpond_agent


def main_at_once(workers=6):
    """unittest.main for tests that mostly wait for programs: several at a time."""
    import concurrent.futures
    import unittest

    def flat(suite):
        for item in suite:
            yield from flat(item) if isinstance(item, unittest.TestSuite) else (item,)

    def one(test):
        result = unittest.TestResult()
        test.run(result)
        return test, result

    tests = list(flat(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])))
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for test, result in pool.map(one, tests):
            for _, text in result.failures + result.errors:
                failed += 1
                print("FAILED", test.id(), text, sep="\n")
    print("%d tests, %d failed" % (len(tests), failed))
    sys.exit(1 if failed or not tests else 0)
