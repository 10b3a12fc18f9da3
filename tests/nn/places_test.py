"""What a new layer, initializer or loss costs: a class is named, as a text, in the one file that declares it, and nowhere else in the engine.
Whoever keeps a list of classes by hand somewhere else is found here."""
import os, pathlib, re, sys

root = pathlib.Path(os.environ.get("MILLPOND_SOURCE_DIR", "."))
without_comments = lambda text: re.sub(r"//[^\n]*", "", text)
files = {p: without_comments(p.read_text()) for folder in ("src/nn", "src/train", "src/io", "include") for p in sorted((root / folder).rglob("*")) if p.suffix in (".cc", ".h", ".inc")}
page = (root / "docs/layers.md").read_text()
layers, rest = page.split("\n## Activations")
initializers, losses = rest.split("\n## Losses")

failures = 0
def expect(count, most, what, places):
    global failures
    if not 1 <= count <= most:
        failures += 1
        print(f"{what} is named in {count} places, but 1 to {most} are allowed: {', '.join(places)}")

# An initializer is a value: its class stands in its constructor in the public header, and in the list.
for part, most in ((layers, 1), (initializers, 2), (losses, 1)):
    for name in re.findall(r"^### (\w+)$", part, re.M):
        places = [str(p.relative_to(root)) for p, text in files.items() if f'"{name}"' in text and not re.search(r"/(metrics?|optimizers?)\b", str(p))]
        if part is layers and name in ("Softmax", "Dropout"):  # MultiHeadAttention names layers that Keras keeps inside it
            places = [p for p in places if p != "src/nn/attention.cc"]
        expect(len(places), most, name, places)
headers = re.findall(r'^#include "millpond/layers/(\w+)\.h"', (root / "include/millpond/layers.h").read_text(), re.M)
for header in headers:
    if not (root / f"src/nn/{header}.cc").exists():
        failures += 1
        print(f"include/millpond/layers/{header}.h has no src/nn/{header}.cc")
sys.exit(failures > 0)
