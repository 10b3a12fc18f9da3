#!/usr/bin/env python3
"""Every fix is tried: a program that grows is watched, the fix that the doctor suggests is made in a copy of it, and the changed program must run, print the
same results and not grow.

  run.py [NAME ...] [--quick] [--keep DIR]

The cases are in cases.py. A fix that is an edit is made by `millpond fix RUN FILE --apply`, a setting by the environment; where only words can be given the
case names a program in which a person did what they say, and the words are compared too. Cases whose packages are missing are skipped by name."""
import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(ROOT, "tests", "cases"))
from cases import CASES  # noqa: E402
from environments import MILLPOND, PEERS  # noqa: E402

CALM = ("flat", "reserve", "cache", "retention", "fragmentation")


class Wrong(Exception):
    pass


def python_for(case):
    """The interpreter that has the case's packages, or None."""
    candidates = ["/usr/bin/python3", PEERS, sys.executable] if "torch" in case.packages else [PEERS, sys.executable] if case.packages else [sys.executable]
    check = "import importlib.util, sys; sys.exit(any(importlib.util.find_spec(m) is None for m in sys.argv[1:]))"
    for python in candidates:
        if os.path.exists(python) and subprocess.run([python, "-c", check, *case.packages]).returncode == 0:
            return python
    return None


def watch(python, folder, name, environment):
    """(what was found, what the program printed); it must end with 0."""
    env = dict(os.environ, PYTHONUNBUFFERED="1", CUDA_VISIBLE_DEVICES="", TF_CPP_MIN_LOG_LEVEL="2", PYTHONDONTWRITEBYTECODE="1", MPLBACKEND="Agg",
               OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTHONHASHSEED="0", **environment)
    run_file = os.path.join(folder, "run.pond")
    done = subprocess.run([MILLPOND, "watch", "--quiet", "-o", run_file, "--json", os.path.join(folder, "result.json"), "--", python, name], cwd=folder, env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600)
    if done.returncode != 0:
        raise Wrong(f"{name} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    with open(os.path.join(folder, "result.json")) as file:
        return json.load(file), done.stdout


def same_results(before, after):
    """The first line that differs by more than rounding, or None."""
    number = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
    for one, other in zip(before.splitlines(), after.splitlines()):
        if number.sub("#", one) != number.sub("#", other):
            return f"{one!r} became {other!r}"
        for a, b in zip(number.findall(one), number.findall(other)):
            if abs(float(a) - float(b)) > 2e-3 * max(1.0, abs(float(a))):
                return f"{one!r} became {other!r}"
    if len(before.splitlines()) != len(after.splitlines()):
        return f"{len(before.splitlines())} lines became {len(after.splitlines())}"
    return None


def spans(text):
    """What stands in backticks, by the rule of Markdown."""
    return [inner.strip() if fence != "`" else inner for fence, inner in re.findall(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", text)]


def check_words(text):
    """A fix has no placeholder in its code, and its backticks come in pairs."""
    if re.sub(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)", "", text).count("`"):
        raise Wrong(f"a backtick of the fix is not closed: {text}")
    for code in spans(text):
        if "..." in code or "…" in code:
            raise Wrong(f"the fix has a placeholder in its code: {text}")


def apply(case, result, folder, name):
    """Makes the fix in the copy; returns the environment that it needs."""
    finding = result["findings"][0]
    check_words(finding["fix"])
    if not re.search(case.says, finding["fix"]):
        raise Wrong(f"the fix does not say {case.says!r}: {finding['fix']}")
    change = finding["fix_change"]
    kind = change["kind"] if change else "words"
    if kind != case.how:
        raise Wrong(f"the fix is given as {kind}, not as {case.how}: {finding['fix']}")
    path = os.path.join(folder, name)
    if kind == "environment":
        return {change["variable"]: change["value"]}
    if kind == "words":
        shutil.copyfile(os.path.join(ROOT, "tests", case.by_hand), path)
        return {}
    with open(path) as file:
        before = file.read()
    fix = [MILLPOND, "fix", "run.pond", name]
    diff = subprocess.run(fix, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if diff.returncode != 0 or not diff.stdout.startswith(f"--- {name}\n+++ {name}\n@@ "):
        raise Wrong(f"`millpond fix` gave no diff: {diff.stdout}{diff.stderr}")
    with open(path) as file:
        if file.read() != before:
            raise Wrong("the diff alone changed the file")
    made = subprocess.run(fix + ["--apply"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if made.returncode != 0:
        raise Wrong(f"`millpond fix --apply` ended with {made.returncode}: {made.stderr}")
    with open(path) as file:
        after = file.read()
    ast.parse(after)
    if after == before:
        raise Wrong("`millpond fix --apply` changed nothing")
    if patched(folder, name, before, diff.stdout) not in (None, after):
        raise Wrong("the diff and the change that is made differ:\n" + diff.stdout)
    again = subprocess.run(fix + ["--apply"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with open(path) as file:
        if again.returncode == 0 or file.read() != after:
            raise Wrong("the fix was made a second time, in a file that had changed")
    return {}


def patched(folder, name, before, diff):
    """What `patch` makes of the diff; None where there is no such program."""
    if shutil.which("patch") is None:
        return None
    with tempfile.TemporaryDirectory(dir=folder) as apart:
        path = os.path.join(apart, name)
        with open(path, "w") as file:
            file.write(before)
        subprocess.run(["patch", "-s", path], input=diff, text=True, check=True, stdout=subprocess.PIPE)
        with open(path) as file:
            return file.read()


def try_case(case, python, folder):
    source = os.path.join(ROOT, "tests", case.program)
    name = os.path.basename(source)
    shutil.copyfile(source, os.path.join(folder, name))
    result, printed = watch(python, folder, name, {})
    if result["verdict"] != case.verdict or not result["findings"]:
        raise Wrong(f"the program is told as {result['verdict']}, not as {case.verdict}: {result['sentence']}")
    finding = result["findings"][0]
    if finding["cause"] not in case.causes:
        raise Wrong(f"the cause is {finding['cause']}, not {' or '.join(case.causes)}: {result['sentence']}")
    environment = apply(case, result, folder, name)
    os.remove(os.path.join(folder, "run.pond"))
    after, printed_then = watch(python, folder, name, environment)
    if after["verdict"] not in CALM:
        raise Wrong(f"with the fix it is told as {after['verdict']}: {after['sentence']}\n  the fix: {finding['fix']}")
    left = sum(f["total_bytes"] for f in after["findings"] if f["verdict"] == case.verdict)
    if case.lowers and left > case.lowers * finding["total_bytes"]:
        raise Wrong(f"with the fix {left} bytes are {case.verdict}, without it {finding['total_bytes']}")
    # Another verdict is no cure by itself: of what was kept at least half must be gone from memory too. The rest is what a bound leaves, and allocators.
    fell = result["last_round_rss"] - after["last_round_rss"]
    if case.verdict == "leak" and fell < 0.5 * finding["total_bytes"]:
        raise Wrong(f"{finding['total_bytes']} bytes were a leak, but with the fix there are only {fell} less after the last round")
    different = same_results(printed, printed_then) if case.prints_the_same else None
    if different:
        raise Wrong(f"with the fix it prints other results: {different}")
    return finding["cause"], finding["fix"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="only those that take a few seconds")
    parser.add_argument("--keep", help="folder for programs, run files and results")
    args = parser.parse_args()
    unknown = set(args.names) - {case.name for case in CASES}
    if unknown:
        sys.exit(f"no such case: {', '.join(sorted(unknown))}")
    chosen = [case for case in CASES if (case.name in args.names if args.names else case.quick or not args.quick)]
    keep = os.path.abspath(args.keep or tempfile.mkdtemp(prefix="millpond_fixes_"))
    wrong, skipped = [], []
    for case in chosen:
        start = time.time()
        python = python_for(case)
        if python is None:
            skipped.append(case.name)
            print(f"{case.name:<22} skipped: {' '.join(case.packages)} missing", flush=True)
            continue
        folder = os.path.join(keep, case.name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        try:
            cause, fix = try_case(case, python, folder)
            print(f"{case.name:<22} {cause:<4} {case.how:<12} {time.time() - start:5.1f} s  {fix}", flush=True)
        except (Wrong, subprocess.TimeoutExpired) as error:
            wrong.append(case.name)
            print(f"{case.name:<22} WRONG {time.time() - start:5.1f} s  {error}", flush=True)
    if not args.keep:
        shutil.rmtree(keep, ignore_errors=True)
    done = len(chosen) - len(skipped)
    print(f"{done - len(wrong)} of {done} fixes cure their program" + (f"; skipped: {', '.join(skipped)}" if skipped else ""))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
