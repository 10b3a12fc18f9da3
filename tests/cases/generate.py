#!/usr/bin/env python3
"""Writes training programs whose memory behaviour is known, so that the doctor is not fitted to the hand-written cases.

  generate.py --seed 7 --count 200 --out FOLDER [--only-plain]    writes NAME.py and NAME.json (README.md has its fields)
  generate.py --balance FOLDER                                     counts verdicts, causes and checks

A program is a random combination of what holds (list, closure, lru_cache, chain of nodes, native block, ...), its rhythm, the size and kind of what is
kept, a framework, a way to lay out the script, names and progress lines. A leak may come with a twin: the same script with the fix.
names.py has the words, parts.py work and holders, layout.py the scripts around them, leaks.py and levels.py the makers of programs.
measure.py runs them alone and writes down what they really do."""
import argparse
import ast
import collections
import glob
import hashlib
import json
import os
import random
import re

from layout import function_at
from leaks import figures, generator_leak, jax_shapes, keras_compile, keras_fit, keras_models, loop_leak, lru_leak, model_leak, tf_retrace, torch_graph
from levels import cache, fragmentation, garbage, keras_cache, reserve, retention, sawtooth, torch_reserve
from names import TASKS, WORDS

SHARES = {"leak": 45, "flat": 25, "cache": 10, "reserve": 8, "retention": 8, "fragmentation": 4}


def loop(framework):
    return lambda rng, _, fixed: loop_leak(rng, framework, fixed)


LEAKS_PLAIN = [(loop("python"), "python", 26), (loop("numpy"), "numpy", 34), (model_leak, "numpy", 5), (lru_leak, "numpy", 4), (lru_leak, "python", 3), (generator_leak, "numpy", 5), (figures, "numpy", 2)]
LEAKS_HEAVY = [(loop("torch"), "torch", 5), (torch_graph, "torch", 5), (loop("jax"), "jax", 4), (jax_shapes, "jax", 1.5), (loop("tensorflow"), "tensorflow", 2), (keras_fit, "keras", 5), (tf_retrace, "tensorflow", 1),
               (keras_models, "keras", 1), (keras_compile, "keras", 0.7)]
OTHER = {"flat": [(sawtooth, "numpy", 4), (garbage, "numpy", 3)], "cache": [(cache, "numpy", 9)], "reserve": [(reserve, "numpy", 8)], "retention": [(retention, "numpy", 1)], "fragmentation": [(fragmentation, "numpy", 1)]}
OTHER_HEAVY = {"cache": [(keras_cache, "keras", 1)], "reserve": [(torch_reserve, "torch", 1.5)]}


def build(seed, index, verdict, only_plain, fixed=False, attempt=0):
    """One program: its name, source and truth. fixed gives the twin of the leak of the same seed and index."""
    digest = hashlib.sha256(f"{seed}/{index}/{verdict}/{only_plain}/{attempt}".encode()).digest()
    rng = random.Random(int.from_bytes(digest[:8], "big"))
    if verdict == "leak":
        table = LEAKS_PLAIN + ([] if only_plain else LEAKS_HEAVY)
    else:
        table = OTHER[verdict] + ([] if only_plain else OTHER_HEAVY.get(verdict, []))
    maker, framework, _ = rng.choices(table, [w for *_, w in table])[0]
    name = f"{rng.choice(WORDS)}_{rng.choice(TASKS)}_{index:03d}"
    source, tags, t = maker(rng, framework, fixed)
    source = source.replace("python run.py", f"python {name}{'_v2' if fixed else ''}.py")
    if fixed:
        name += "_v2"
        t.update(verdict="flat", cause="none", rhythm="none", fix="Nothing to fix.", also_accept=["reserve"])
        t.pop("bytes_by_construction", None)
    elif verdict == "leak":
        lines = source.split("\n")
        if len(tags["keep"]) != 1:
            raise AssertionError(f"{name}: {len(tags['keep'])} lines keep\n{source}")
        line = tags["keep"][0]
        where = function_at(source, line)
        also = sorted({*tags["also"], *(m for m in tags["made"] if function_at(source, m) == where)} - {line})
        t["blame"] = {"file": name + ".py", "line": line, "function": where, "text": lines[line - 1].strip()}
        if also:
            t["blame"]["also_lines"] = also
    if t["verdict"] not in ("leak", "flat") and tags["holder"]:
        t["holder"] = {"line": tags["holder"][0], "text": source.split("\n")[tags["holder"][0] - 1].strip()}
    t = {"name": name, **t, "bytes_per_unit": 0, "made_from": {"seed": seed, "index": index, "verdict": verdict, "only_plain": only_plain, "attempt": attempt}}
    ast.parse(source)
    return name, source, t


def write(folder, name, source, t):
    with open(os.path.join(folder, name + ".py"), "w") as f:
        f.write(source)
    save(folder, t)


def save(folder, t):
    with open(os.path.join(folder, t["name"] + ".json"), "w") as f:
        f.write(re.sub(r"\[\s+([-\d.,\s]+?)\s+\]", lambda m: "[" + re.sub(r"\s+", " ", m.group(1)) + "]", json.dumps(t, indent=1)) + "\n")


def generate(seed, count, folder, only_plain):
    os.makedirs(folder, exist_ok=True)
    rng = random.Random(f"plan {seed} {count}")
    want = {v: round(count * share / 100) for v, share in SHARES.items()}
    want["leak"] += count - sum(want.values())
    plan = []
    twins = min(want["leak"], round(want["flat"] * 0.72))
    plan += [("leak", k < twins) for k in range(want["leak"])]
    plan += [(v, False) for v in ("flat", "cache", "reserve", "retention", "fragmentation") for _ in range(want[v] - (twins if v == "flat" else 0))]
    rng.shuffle(plan)
    for index, (verdict, twin) in enumerate(plan):
        write_pair(folder, seed, index, verdict, only_plain, twin)
    print(f"{count} programs in {folder}")


def write_pair(folder, seed, index, verdict, only_plain, twin, attempt=0):
    name, source, t = build(seed, index, verdict, only_plain, attempt=attempt)
    names = [name]
    if twin:
        other, other_source, other_t = build(seed, index, verdict, only_plain, fixed=True, attempt=attempt)
        t["leak_free_twin"] = other
        write(folder, other, other_source, other_t)
        names.append(other)
    write(folder, name, source, t)
    return names


def balance(folder):
    cases = []
    for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
        with open(path) as f:
            cases.append(json.load(f))
    for title, key in (("verdict", lambda c: c["verdict"]), ("cause of leaks", lambda c: c["cause"] if c["verdict"] == "leak" else None), ("framework", lambda c: c["framework"]),
                       ("rhythm of leaks", lambda c: c["rhythm"] if c["verdict"] == "leak" else None), ("holder of leaks", lambda c: c.get("holder_kind") if c["verdict"] == "leak" else None),
                       ("check", lambda c: c.get("check", "not measured")[:30])):
        print(f"{title}: " + ", ".join(f"{k} {v}" for k, v in collections.Counter(k for k in map(key, cases) if k).most_common()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--out")
    parser.add_argument("--only-plain", action="store_true", help="plain Python and numpy only")
    parser.add_argument("--balance", metavar="FOLDER")
    args = parser.parse_args()
    if args.out:
        generate(args.seed, args.count, args.out, args.only_plain)
    if args.balance:
        balance(args.balance)
    if not (args.out or args.balance):
        parser.error("one of --out, --balance")


if __name__ == "__main__":
    main()
