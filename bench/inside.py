#!/usr/bin/env python3
"""What does millpond cost a Python program that is not being watched? Importing it, in fresh processes (the bar is 30 ms); and a loop that allocates, in a process that was watched
and is not any more, from inside (`with millpond.watch()`, which a notebook's cells are too) or by `watch --pid`, beside one that never was (the bar is a ratio of 1.05 in processor time, of the best of 12 turns). In turn, each in a process of its own."""
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ENVIRONMENT = dict(os.environ, MILLPOND=os.path.join(HERE, "..", "build", "bin", "millpond"), PYTHONPATH=os.path.join(HERE, "..", "python"))
TIMES = 9
IMPORT_BAR, RATIO_BAR = 30, 1.05

IMPORT = "import time\nbegin = time.perf_counter()\nimport millpond\nprint((time.perf_counter() - begin) * 1e3)"

# Small objects, large blocks and native calls, by Python's allocators and by malloc.
LOOP = """
import json, sys, time
if sys.argv[1] == "after":
    import millpond
    with millpond.watch(output="run.pond") as w:
        kept = [bytearray(n) for n in range(20000)]
    assert not w._session.active and not w._session.remarks, w._session.remarks
    del kept
elif sys.argv[1] == "pid":
    print("ready", flush=True)
    import select
    kept = []
    while not select.select([sys.stdin], [], [], 0.0005)[0]:
        kept.append(bytearray(len(kept) % 20000))
    sys.stdin.readline()
    del kept
def loop():
    total = 0
    for n in range(60000):
        item = [n, str(n), {"a": n}]
        total += len(item[1]) + len(bytearray(700 + n % 3000))
    return total
expected, times = loop(), []
for turn in range(12):
    begin = time.process_time()  # what others do on the machine is no part of it
    assert loop() == expected
    times.append((time.process_time() - begin) * 1e3)
print(json.dumps([expected, min(times)]))
"""


def answer(text, folder, *arguments):
    return json.loads(subprocess.run([sys.executable, "-c", text, *arguments], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, check=True).stdout)


def after_pid(folder):
    """The answer of a process that `watch --pid` has looked into for three seconds."""
    process = subprocess.Popen([sys.executable, "-c", LOOP, "pid"], cwd=folder, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    result = os.path.join(folder, "pid.json")
    subprocess.run([ENVIRONMENT["MILLPOND"], "watch", "--pid", str(process.pid), "--for", "3", "--force", "-o", os.path.join(folder, "run.pond"), "--json", result],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(result) as file:
        looked_inside = any(finding["blame"] for finding in json.load(file)["findings"])
    told, _ = process.communicate("\n")
    return json.loads(told) if looked_inside and process.returncode == 0 else None


def spread(values):
    return "%.2f (%.2f to %.2f)" % (statistics.median(values), min(values), max(values))


def main():
    with tempfile.TemporaryDirectory() as folder:
        imports = [answer(IMPORT, folder) for _ in range(TIMES)]
        times = {"bare": [], "after": [], "pid": []}
        for _ in range(TIMES):
            results = {"bare": answer(LOOP, folder, "bare"), "after": answer(LOOP, folder, "after"), "pid": after_pid(folder)}
            if results["pid"] is None:
                sys.exit("inside: `watch --pid` did not look into the process: is gdb installed, or Python 3.14?")
            if not results["bare"][0] == results["after"][0] == results["pid"][0]:
                sys.exit("inside: the loop has another result after the probe has left: %s" % results)
            for which, (_, spent) in results.items():
                times[which].append(spent)
            os.unlink(os.path.join(folder, "run.pond"))
    ratios = {which: statistics.median(times[which]) / statistics.median(times["bare"]) for which in ("after", "pid")}
    print("import millpond       %s ms; the bar is %d" % (spread(imports), IMPORT_BAR))
    print("a loop, never watched %s ms" % spread(times["bare"]))
    for which, words in (("after", "after watch()"), ("pid", "after --pid")):
        print("the same %-12s %s ms: %.3f times; the bar is %.2f" % (words, spread(times[which]), ratios[which], RATIO_BAR))
    sys.exit(statistics.median(imports) > IMPORT_BAR or max(ratios.values()) > RATIO_BAR)


if __name__ == "__main__":
    main()
