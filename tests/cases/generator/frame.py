"""The program around its parts: layout, rhythm, process."""
import ast
import re

from .text import guarded, indent

LINES = [("epoch %d: loss %.4f", "(«r», §loss)", r"^epoch \d+: loss"), ("Epoch %d/«rounds» - loss: %.4f", "(«r» + 1, §loss)", r"^Epoch \d+/\d+ - loss"), ("[%d/«rounds»] loss=%.5f", "(«r» + 1, §loss)", r"^\[\d+/\d+\] loss"),
         ("round %d done, score %.3f", "(«r», §loss)", r"^round \d+ done"), ("iteration %d: %.4f", "(«r», §loss)", r"^iteration \d+:"), ("episode %d, return %.2f", "(«r», §loss)", r"^episode \d+,"), ("fold %d: %.3f", "(«r», §loss)", r"^fold \d+:"),
         ("%d\\t%.4f", "(«r», §loss)", r"^\d+\t"), ("pass %03d  value=%.3f", "(«r», §loss)", r"^pass \d+"), ("finished part %d (%.3f)", "(«r», §loss)", r"^finished part \d+"), ("... %d %.3f", "(«r», §loss)", r"^\.\.\. \d+")]
IMPORT_ORDER = re.compile(r"^(import|from) ")


def state_names(parts):
    return sorted({name for part in parts for name in re.findall(r"§(\w+)", part.begin + "\n" + part.each + "\n" + part.end)})


def resolve(text, layout, box):
    """§names as the layout has them."""
    return re.sub(r"§(\w+)", {"script": r"\1", "function": r"\1", "class": r"self.\1", "namespace": rf"{box}.\1", "dict": rf'{box}["\1"]'}[layout], text)


def progress(rng, names, shape):
    """The line that is printed in each round, or every few: text and pattern; nothing for silent programs."""
    if not shape.every:
        return "", None, ()
    words, values, pattern = rng.choice(LINES)
    words = words.replace("«rounds»", str(shape.rounds))
    way = rng.choice(["print", "print", "print", "write", "logging"])
    if way == "print":
        line = f'print("{words}" % {values}, flush=True)'
    elif way == "write":
        line = f'sys.stdout.write("{words}\\n" % {values})\nsys.stdout.flush()'
    else:
        line = f'logging.info("{words}" % {values})'
    when = [f"«r» % {shape.every} == {shape.every - 1}"] * (shape.every > 1) + ["os.environ.get(\"RANK\") == \"0\""] * (shape.process == "ranks")
    text = guarded(" and ".join(when), line)
    return text, pattern, {"print": (), "write": ("import sys",), "logging": ("import logging", "import sys")}[way]


def body_of_round(rng, shape, parts, print_text, number, step):
    """One round: the calls of all parts in some order, steps inside, the line at its end."""
    by_step = [part for part in parts if part.per_step]
    by_round = [part for part in parts if not part.per_step]
    index = number if shape.steps == 1 else f"({number} * {shape.steps} + {step})"
    steps = "\n".join(part.each.replace("«i»", index).replace("«r»", number) for part in by_step if part.each)
    if shape.pause >= 0.0002:
        steps += f"\ntime.sleep({shape.pause:.4f})"
    if shape.steps > 1:
        steps = f"for {step} in range({shape.steps}):\n{indent(steps)}"
    rounds = [part.each.replace("«i»", number).replace("«r»", number) for part in by_round if part.each]
    rng.shuffle(rounds)
    cut = rng.randint(0, len(rounds))
    pieces = [*rounds[:cut], steps, *rounds[cut:]]
    if shape.paced:
        pieces.append(f"§due += {shape.paced:.4f}\ntime.sleep(max(0.0, §due - time.monotonic()))")
    if print_text:
        pieces.append(print_text.replace("«r»", number))
    return "\n".join(pieces)


def run_text(rng, names, shape, parts, layout, printed):
    """Top-level text that defines the run, and the name to call. Functions of a pool or a server take the number of the round."""
    number, step, box = names.draw("round"), names.draw("step"), names.draw("box")
    order = parts[:]
    rng.shuffle(order)
    body = body_of_round(rng, shape, order, printed, number, step)
    begin = "\n".join(part.begin for part in order if part.begin)
    begin = "§loss = 0.0\n" + begin + ("\n§due = time.monotonic()" if shape.paced else "")
    end = "\n".join(part.end for part in order if part.end)
    run, one, Name = names.draw("do_run"), names.draw("do_round"), names.draw("Name")
    fix = lambda text: resolve(text, layout, box)
    loop = f"for {number} in range({shape.rounds}):"
    if shape.rhythm in ("server", "pool"):  # the round is called from outside, with its number
        head = f"{box} = types.SimpleNamespace()" if layout == "namespace" else f"{box} = {{}}"
        # What begins a run is made in the process that runs it, at the first call.
        ready = names.draw("do_ready")
        return f"{head}\n\n\ndef {ready}():\n{indent(fix(begin))}\n\n\ndef {one}({number}):\n    if not {'vars(' + box + ')' if layout == 'namespace' else box}:\n        {ready}()\n{indent(fix(body))}\n    return {fix('§loss')}", one
    if layout == "script":
        return "\n".join(filter(None, [fix(begin), loop, indent(fix(body)), fix(end)])), None
    if layout == "function":
        return f"def {run}():\n{indent(fix(begin))}\n    {loop}\n{indent(fix(body), 2)}" + (f"\n{indent(fix(end))}" if end else "") + f"\n    return {fix('§loss')}", run
    if layout == "class":
        if rng.random() < 0.6:
            text = f"class {Name}:\n    def __init__(self):\n{indent(fix(begin), 2)}\n\n    def {one}(self, {number}):\n{indent(fix(body), 2)}\n\n    def {run}(self):\n        {loop}\n            self.{one}({number})" + (f"\n{indent(fix(end), 2)}" if end else "")
        else:
            text = f"class {Name}:\n    def __init__(self):\n{indent(fix(begin), 2)}\n\n    def {run}(self):\n        {loop}\n{indent(fix(body), 3)}" + (f"\n{indent(fix(end), 2)}" if end else "")
        start = names.draw("do_start")
        return f"{text}\n\n\ndef {start}():\n    {Name}().{run}()", start
    head = f"{box} = types.SimpleNamespace()" if layout == "namespace" else f"{box} = {{}}"
    text = f"def {one}({box}, {number}):\n{indent(fix(body))}\n\n\ndef {run}():\n    {head}\n{indent(fix(begin))}\n    {loop}\n        {one}({box}, {number})" + (f"\n{indent(fix(end))}" if end else "")
    return text, run


def launch(rng, names, shape, run, files):
    """How the run is started: the text of the main block, its imports, and more files."""
    child, index = names.draw("child"), names.draw("index")
    way = shape.process
    if way in ("main", "loader"):
        return f"{run}()", ()
    if way == "thread":
        return f"{child} = threading.Thread(target={run})\n{child}.start()\n{child}.join()", ("import threading",)
    if way == "fork":
        return f"{child} = os.fork()\nif {child} == 0:\n    {run}()\n    sys.stdout.flush()\n    os._exit(0)\nos.waitpid({child}, 0)", ("import os", "import sys")
    if way.startswith("process "):
        return f"{child} = multiprocessing.get_context(\"{way.split()[1]}\").Process(target={run})\n{child}.start()\n{child}.join()", ("import multiprocessing",)
    if way.startswith("pool "):
        pool = names.draw("pool")
        return (f"with multiprocessing.get_context(\"{way.split()[1]}\").Pool({shape.workers}) as {pool}:\n    for {index} in range({shape.rounds}):\n        {pool}.map({run}, [{index} * {shape.workers} + n for n in range({shape.workers})], 1)" if shape.workers > 1 else
                f"with multiprocessing.get_context(\"{way.split()[1]}\").Pool(1) as {pool}:\n    for {index} in range({shape.rounds}):\n        {pool}.apply({run}, ({index},))"), ("import multiprocessing",)
    if way == "ranks":
        return (f"if \"RANK\" in os.environ:\n    {run}()\nelse:\n    {child} = [subprocess.Popen([sys.executable, os.path.abspath(__file__)], env=dict(os.environ, RANK=str({index}))) for {index} in range(4)]\n    for {index} in {child}:\n        {index}.wait()",
                ("import os", "import subprocess", "import sys"))
    raise ValueError(way)


def server(rng, names, shape, one):
    """A loopback server whose handler runs the round, and the client that calls it."""
    Name, host, at, index = names.draw("Handler"), names.draw("host"), names.draw("at"), names.draw("index")
    count = names.draw("count")
    text = f"""class {Name}(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        {at} = int(self.path.rsplit("/", 1)[1])
        body = ("%.4f" % {one}({at})).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *{names.draw("more")}):
        return None"""
    kind = rng.choice(["HTTPServer", "ThreadingHTTPServer"])
    main = f"""{host} = http.server.{kind}(("127.0.0.1", 0), {Name})
threading.Thread(target={host}.serve_forever, daemon=True).start()
for {index} in range({shape.rounds}):
    {count} = urllib.request.urlopen("http://127.0.0.1:%d/part/%d" % ({host}.server_address[1], {index})).read()
    time.sleep({shape.gap:.4f})
{host}.shutdown()"""
    return text, main, ("import http.server", "import threading", "import urllib.request", "import time")


def module_of(names, part):
    """A file for what a part has at the top, and the line that imports what the part uses of it."""
    name = names.draw("module")
    tree = ast.parse(re.sub(r"#@\w+(:\d+)?", "", part.top))
    defined = []
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            defined.append(node.name)
        elif isinstance(node, ast.Assign):
            defined += [target.id for target in node.targets if isinstance(target, ast.Name)]
    used = [one for one in defined if re.search(rf"\b{one}\b", part.begin + "\n" + part.each)]
    return name, f"from {name} import {', '.join(sorted(used))}" if used else f"import {name}"


def file_text(docstring, imports, pieces):
    lines = sorted(set(imports), key=lambda line: (line.startswith("from"), line))
    third = [line for line in lines if re.search(r"\b(numpy|torch|jax|keras|tensorflow|matplotlib)\b", line)]
    standard = [line for line in lines if line not in third]
    head = "\n".join([docstring] if docstring else []) + ("\n" if docstring else "") + "\n".join(standard) + ("\n\n" if standard and third else "") + "\n".join(third)
    return head.strip("\n") + ("\n\n\n" if pieces and pieces[0].startswith(("def ", "class ", "@")) else "\n\n") + "\n\n\n".join(piece for piece in pieces if piece) + "\n"
