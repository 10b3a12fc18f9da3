"""Whole scripts around work and holders: imports, constants, functions or classes, a loop; and the lines that the truth speaks of."""
import ast
import math
import re
import sys

from names import COMMENTS, DOCS, TASKS, WORDS, block, indent, progress

MB = 1e6


def header(rng, n, imports, file):
    lines = []
    if rng.random() < 0.4:
        lines += ['"""' + rng.choice(DOCS).format(a=rng.choice(WORDS).capitalize(), b=rng.choice(TASKS), file=file) + '"""']
    std = sorted({i for i in imports if i.split()[1].split(".")[0] in sys.stdlib_module_names})
    other = sorted({i for i in imports} - set(std), key=lambda i: (i.startswith("from"), i))
    return lines + std + ([""] if std and other else []) + other + [""]


def constants(rng, pairs):
    pairs = list(pairs)
    rng.shuffle(pairs)
    lines = [f"{k} = {v}" for k, v in pairs]
    if rng.random() < 0.3:
        k = rng.randrange(len(lines))
        lines[k] += "  " + rng.choice(COMMENTS)
    return lines + [""]


def assemble(rng, n, file, imports, consts, defs, main_lines, args=None, guard=True, main=None):
    """Puts a script together; args are (flag, type, default) read by argparse into names in capitals."""
    main = main or n["main"]
    if args:
        imports = [*imports, "import argparse"]
        parse = ["parser = argparse.ArgumentParser()"] + [f'parser.add_argument("--{flag}", type={kind}, default={default})' for flag, kind, default in args] + ["args = parser.parse_args()"]
        main_lines = parse + main_lines
    lines = header(rng, n, imports, file)
    if consts:
        lines += constants(rng, consts)
    lines += [""] if lines[-1] else []
    for d in defs:
        short = len(d) == 1 or not d[0].startswith(("def", "class", "@"))
        if not short and lines[-1]:
            lines += ["", ""]
        elif not short and len(lines) > 1 and lines[-2]:
            lines += [""]
        lines += [line for line in d]
        while lines and not lines[-1].strip():
            lines.pop()
        lines += [""] if short else ["", ""]
    while lines and not lines[-1].strip():
        lines.pop()
    lines += ["", ""]
    if guard:
        lines += [f"def {main}():", *indent(main_lines), "", "", 'if __name__ == "__main__":', f"    {main}()"]
    else:
        lines += main_lines
    return lines


def finish(lines):
    """Takes the tags out of the lines; returns the source and the tagged line numbers."""
    tags, clean = {"keep": [], "also": [], "made": [], "holder": []}, []
    for number, line in enumerate(lines, 1):
        m = re.search(r"\s+#@(\w+)$", line)
        if m:
            tags[m.group(1)].append(number)
            line = line[:m.start()]
        clean.append(line.rstrip())
    source = "\n".join(clean).rstrip() + "\n"
    return source, tags


def function_at(source, line):
    """The qualified name of the function around a line, <module> outside any."""
    best = ("<module>", 0)

    def walk(node, path):
        nonlocal best
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
                name = path + [child.name]
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                if first <= line <= child.end_lineno and not isinstance(child, ast.ClassDef) and first > best[1]:
                    best = (".".join(name), first)
                walk(child, name)
            else:
                walk(child, path)
    walk(ast.parse(source), [])
    return best[0]


TIMED = block("""
def timed(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.perf_counter()
        try:
            return fn(*args, **kwargs)
        finally:
            wrapper.seconds += time.perf_counter() - start

    wrapper.seconds = 0.0
    return wrapper
""")


def fillers(rng, silent):
    """What people also have in their scripts: definitions, lines before the loop and lines after it."""
    defs, before, after = [], [], []
    if rng.random() < 0.3 and not silent:
        show = rng.choice(["show_config", "print_settings", "banner"])
        defs.append([f"def {show}(**settings):", "    for key in sorted(settings):", '        print(f"{key:>12} = {settings[key]}")'])
        before.append(f'{show}(dataset="{rng.choice(WORDS)}-{rng.randint(1, 9)}", host="{rng.choice(["lab", "gpu-box", "laptop"])}", steps=STEPS)')
    if rng.random() < 0.3:
        defs.append(["class Clock:", "    def __init__(self):", "        self.start = time.monotonic()", "", "    def minutes(self):", "        return (time.monotonic() - self.start) / 60"])
        before.append("clock = Clock()")
        after += [] if silent else ['print(f"finished after {clock.minutes():.2f} min")']
    return defs, before, after


def loop_layout(rng, n, work, holder, periods, per_period, pause, rhythm, every, word, silent_ok, extra_end=None):
    """The script around a workload and a holder: everything in main, a function for a period, or a class."""
    layout = rng.choice(["inline", "function", "class"])
    guard = not (layout == "inline" and rng.random() < 0.3)
    var = {"epoch": "epoch", "round": "round_", "iteration": "it", "pass": "p_", "sweep": "sweep_", "cycle": "cycle"}[word]
    total = "PERIODS"
    use_args = rng.random() < 0.3 and guard
    S = "self." if layout == "class" else ""
    loss, i = work["loss"], work["i"]
    name = holder["name"]
    R = f"{S}{name}" if name else ""
    prog = progress(rng, word, var, "args.epochs" if use_args and layout != "function" else total, loss, silent_ok)
    imports = [*work["imports"], *holder["imports"], *prog["imports"]]
    consts = [*work["consts"], ("STEPS", per_period)]
    fill = lambda lines: [s.replace("{S}", S).replace("{R}", R).replace("{E}", var).replace("{L}", loss) for s in lines]
    step = fill(work["step"])
    site = fill(holder["site"])
    sleep = []
    if pause > 0:
        imports.append("import time")
        sleep = [f"time.sleep({pause})" + rng.choice(["", "", "  # the machine is shared", "  # leave some air for the others", "  # loader latency"])]
    at_step = rhythm in ("batch", "call")
    inner = step + (site if at_step else []) + sleep
    after = []
    if not at_step:
        after = site if every == 1 else [f"if {var} % {every} == 0:", *indent(site)]
    after += fill(holder["close"])
    state = []
    for key, expr in work["state"]:
        expr = expr.replace("{rng}", f"{S}rng").replace("{model}", f"{S}model")
        state.append(f"{S}{key} = {expr}")
    defs = [*work["defs"], *holder["defs"]]
    init = [f"{S}{line}" for line in holder["init"]]
    more_defs, more_before, more_after = fillers(rng, prog["mark"] is None)
    if more_before:
        imports.append("import time")
    defs = more_defs + defs if rng.random() < 0.5 else defs + more_defs
    init = init if layout == "class" else more_before + init
    prog["before"] = prog["before"] + (more_before if layout == "class" else [])
    holder["end"] = [*holder["end"], *more_after]
    epochs = "args.epochs" if use_args else total
    if use_args:
        args = [("epochs", "int", periods)]
    else:
        args = None
        consts.append((total, periods))
    if layout == "inline":
        body = [*state, *init, *prog["before"], f"for {var} in range({epochs}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, *prog["end"]]), *fill(holder["end"])]
        return assemble(rng, n, "run.py", imports, consts, defs, body, args, guard), prog
    if layout == "function":
        params = [var, *[k for k, _ in work["state"]], *([name] if name else [])]
        back = [loss, *([] if work["in_place"] else work["mutable"])]
        fn = n["train"]
        if args:
            prog["end"] = [e.replace(total, "args.epochs") for e in prog["end"]]
        decorated = rng.random() < 0.25
        if decorated:
            imports += ["import functools", "import time"]
            defs = [TIMED, *defs]
        fdef = [*(["@timed"] if decorated else []), f"def {fn}({', '.join(params)}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {', '.join(back)}"])]
        body = [*state, *init, *prog["before"], f"for {var} in range({epochs}):", *indent([f"{', '.join(back)} = {fn}({', '.join(params)})", *prog["end"]]), *fill(holder["end"])]
        return assemble(rng, n, "run.py", imports, consts, defs + [fdef], body, args, guard), prog
    trainer, obj = n["Trainer"], rng.choice(["runner_", "trainer", "session", "job"])
    split = rng.random() < 0.5
    if split:
        methods = [f"    def one_step(self, {var}, {i}):", *indent(inner + [f"return {loss}"], 2), "", f"    def run(self, {var}):",
                   *indent([f"for {i} in range(STEPS):", f"    {loss} = self.one_step({var}, {i})", *after, f"return {loss}"], 2)]
        if not at_step and work["value"].split(".")[0].split("(")[-1].split(")")[0] in " ".join(site):  # the value is a local of the step: keep it there
            methods = [f"    def run(self, {var}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {loss}"], 2)]
    else:
        methods = [f"    def run(self, {var}):", *indent([f"for {i} in range(STEPS):", *indent(inner), *after, f"return {loss}"], 2)]
    cdef = [f"class {trainer}:", "    def __init__(self):", *indent(state + init, 2), "", *methods]
    end = [e.replace("self.", f"{obj}.") for e in fill(holder["end"])]
    body = [f"{obj} = {trainer}()", *prog["before"], f"for {var} in range({epochs}):", *indent([f"{loss} = {obj}.run({var})", *prog["end"]]), *end]
    return assemble(rng, n, "run.py", imports, consts, defs + [cdef], body, args, guard), prog


def truth(verdict, cause, rhythm, unit, units_per_mark, prog, work, **more):
    t = {"framework": work["framework"], "packages": work["packages"], "cause": cause, "verdict": verdict, "rhythm": rhythm, "blame": None, "unit": unit, "units_per_mark": units_per_mark,
         "fix": "Nothing to fix.", "leak_free_twin": None, "mark": prog["mark"], "also_accept": []}
    t.update(more)
    return t


def busy_seconds(work):
    return work["flops"] / 6e9 + (3e-8 * work["elements"] if work["flops"] else 0) + work.get("seconds", 0) + 2e-4


def pace(rng, work, periods, per_period, seconds):
    """Seconds of sleep for each step, so that the run takes about `seconds` and a period 0.1 s or more."""
    want = max(seconds / periods, 0.11)
    busy = busy_seconds(work)
    return round(max(0.0005, want / per_period - 0.5 * busy), 4)


def sizes(rng, framework, small=False):
    """Rhythm, periods, units for each period and bytes for each unit of something that grows."""
    rhythm = rng.choice(["batch", "batch", "call", "epoch", "epoch", "kth"] if framework != "jax" else ["batch", "call"])
    periods = rng.randint(14, 40) if rhythm != "kth" else rng.randint(24, 40)
    every = rng.choice([2, 3, 4]) if rhythm == "kth" else 1
    per_period = rng.randint(4, 30) if rhythm in ("batch", "call") else rng.randint(2, 10)
    units = periods * per_period if rhythm in ("batch", "call") else periods // every
    total = math.exp(rng.uniform(math.log(70e6), math.log((180 if small else 450) * MB)))
    payload = min(max(total / units, 20e3), 8e6 if framework != "jax" else 1.5e6)  # larger outputs of jit: malloc's own noise hides the label
    if payload * units < 60e6:
        payload = 60e6 / units
    return rhythm, every, periods, per_period, int(payload)
