"""What a new operator, layer, loss, metric, optimizer or command costs: the places that must be touched, counted.

Two kinds of proof. tests/new_operator, new_rules and new_command add one that the library does not have, as CONTRIBUTING.md says it, and build:
their files are counted here, so that a further place cannot creep in. And of those that the library has, each may be named only where it is made:
whoever keeps a list by hand somewhere else is found. Comments and sentences do not count."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
CODE = {".h", ".cc", ".inc", ".cmake", ".py", ".txt"}


def code_of(file):
    """Its text without comments and without texts of several words, which are sentences for people."""
    text = file.read_text(errors="replace")
    text = re.sub(r"#.*", "", text) if file.suffix in (".cmake", ".txt", ".py") else re.sub(r"//.*", "", text)
    return re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda word: "" if " " in word.group() else word.group(), text)


CODES = {str(file.relative_to(ROOT)): code_of(file) for folder in ("include", "src", "cmake", "python") for file in sorted((ROOT / folder).rglob("*")) if file.suffix in CODE}


LOWER = {path: text.lower() for path, text in CODES.items()}


def named(key, word, but=()):
    """Files in which the word (a regular expression) occurs; it holds the key, in whatever letters, which is quick to look for."""
    pattern = re.compile(word)
    return {path for path, text in CODES.items() if key.lower() in LOWER[path] and not path.startswith(tuple(but)) and pattern.search(text)}


def stems(folder):
    return sorted(file.stem for file in (ROOT / folder).glob("*.cc"))


def recipe(folder):
    """The files of a recipe but for what makes it one."""
    return sorted(str(file.relative_to(ROOT / folder)) for file in (ROOT / folder).rglob("*") if file.is_file() and file.name != "CMakeLists.txt" and "__pycache__" not in str(file))


class Operators(unittest.TestCase):
    def test_an_operator_is_five_places_header_source_reference_kernel_test_and_one_line(self):
        files = recipe("tests/new_operator")
        self.assertEqual(files, ["backend/reference/row_scale.cc", "ops/row_scale.cc", "ops/row_scale.h", "row_scale_test.cc"])
        lines = re.findall(r"MP_OPERATOR\([^)]*\)\\n", (ROOT / "tests/new_operator/CMakeLists.txt").read_text())
        self.assertEqual(len(lines), 1)
        self.assertLessEqual(len(files) + len(lines), 5)

    def test_nobody_else_lists_them(self):
        operators = re.findall(r"^MP_(?:OPERATOR|FUSION|FLOW)\((\w+), (\w+)\)", (ROOT / "src/ops/list.inc").read_text(), re.M)
        self.assertGreater(len(operators), 40)
        for path, text in CODES.items():
            if path in ("src/ops/list.inc", "src/backend/cpu/list.inc"):  # the second has those with a fast kernel, and is a choice
                continue
            known = [name for kind, name in operators if f'"ops/{name}.h"' in text or f'"{name}"' in text or re.search(rf"\bops::{kind}\b", text)]
            self.assertLess(len(known), len(operators) / 2, f"{path} knows of {len(known)} of {len(operators)} operators")


class Layers(unittest.TestCase):
    # Keras's MultiHeadAttention has layers inside, whose names are in files of weights.
    ALSO = {"Softmax": {"src/nn/attention.cc"}, "Dropout": {"src/nn/attention.cc"}}
    # Operators have some of these names, in namespaces of their own; models are made of layers; the doctor knows nothing of them.
    ELSEWHERE = ("src/ops/", "src/eager/", "src/passes/", "src/backend/", "src/probe/", "src/verdict/", "src/cli/", "python/")

    def layers(self):
        page = (ROOT / "docs/layers.md").read_text().split("\n## Activations")[0]
        return re.findall(r"^### (\w+)$", page, re.M)

    def test_a_layer_is_four_places_header_its_line_source_and_test(self):
        self.assertGreater(len(self.layers()), 15)
        for layer in self.layers():
            with self.subTest(layer):
                found = named(layer, rf"(?<!ops::)\b{layer}(Options|Impl)?\b", self.ELSEWHERE) - self.ALSO.get(layer, set())
                sources = [path for path in found if path.startswith("src/nn/")]
                self.assertEqual(len(sources), 1, found)
                stem = pathlib.Path(sources[0]).stem
                header = f"include/millpond/layers/{stem}.h"
                self.assertEqual(found, {header, f"src/nn/{stem}.cc"})
                self.assertEqual(named(f"layers/{stem}.h", rf'"millpond/layers/{stem}\.h"') & {"include/millpond/layers.h"}, {"include/millpond/layers.h"})
                line, test = 1, 1
                self.assertLessEqual(len(found) + line + test, 4)


class LossesAndInitializers(unittest.TestCase):
    def classes(self, after, before):
        page = (ROOT / "docs/layers.md").read_text().split(f"\n## {after}")[1].split(f"\n## {before}")[0]
        return re.findall(r"^### (\w+)$", page, re.M)

    def test_a_loss_is_two_places(self):
        losses = self.classes("Losses", "Metrics")
        self.assertGreaterEqual(len(losses), 5)
        for loss in losses:
            with self.subTest(loss):
                # Metrics may have a loss's name, as in Keras.
                found = named(loss, rf"(?<!ops::)\b{loss}(Options|Impl)?\b", ("include/millpond/metrics.h", "src/nn/metrics/", *Layers.ELSEWHERE))
                self.assertEqual(found, {"include/millpond/losses.h", "src/nn/losses.cc"})

    def test_an_initializer_is_two_places(self):
        for initializer in self.classes("Initializers", "Losses"):
            with self.subTest(initializer):
                found = named(initializer, rf'(?<!ops::)\b{initializer}(Options|Impl)?\(|"{initializer}"', Layers.ELSEWHERE)
                self.assertLessEqual(found, {"include/millpond/initializers.h", "src/nn/initializers.cc"})


class OptimizersAndMetrics(unittest.TestCase):
    def class_of(self, path):
        """The class whose constructor the file has: RMSprop of rmsprop.cc."""
        return re.search(r"\b(\w+)::\1\(", (ROOT / path).read_text()).group(1)

    def places(self, name):
        return named(name, rf'\b{name}(Options)?\b|"{name.lower()}"')

    def test_the_new_ones_are_an_entry_in_a_header_and_a_file_each(self):
        self.assertEqual(recipe("tests/new_rules"),
                         ["millpond/metrics.entry", "millpond/optimizers.entry", "new_rules_test.cc", "nn/metrics/specificity.cc", "train/optimizers/slow_sign.cc"])

    def test_an_optimizer_is_two_places(self):
        self.assertGreaterEqual(len(stems("src/train/optimizers")), 7)
        for stem in stems("src/train/optimizers"):
            if stem in ("sgd", "adam", "adamw"):  # models of ours and the doctor speak of them too
                continue
            with self.subTest(stem):
                source = f"src/train/optimizers/{stem}.cc"
                self.assertEqual(self.places(self.class_of(source)), {"include/millpond/optimizers.h", source})

    def test_a_metric_is_two_places(self):
        self.assertGreaterEqual(len(stems("src/nn/metrics")), 5)
        for stem in stems("src/nn/metrics"):
            if stem in ("accuracy", "errors"):  # words of every day
                continue
            with self.subTest(stem):
                source = f"src/nn/metrics/{stem}.cc"
                self.assertEqual(self.places(self.class_of(source)), {"include/millpond/metrics.h", source})

    def test_what_is_planted_is_found(self):
        self.assertIn("src/train/optimizer.cc", self.places("Optimizer"))


class Commands(unittest.TestCase):
    def test_a_command_is_three_places_source_test_and_golden_file(self):
        files = recipe("tests/new_command")
        self.assertEqual(files, ["commands/greet.cc", "golden.txt", "new_command_test.py"])
        self.assertLessEqual(len(files), 3)

    def test_each_is_made_in_its_own_file_and_nobody_else_lists_them(self):
        self.assertGreaterEqual(len(stems("src/cli/commands")), 13)
        for stem in stems("src/cli/commands"):
            with self.subTest(stem):
                source = f"src/cli/commands/{stem}.cc"
                self.assertEqual(named(stem, rf'\badd_{stem}\b|\bcommands::{stem}\b|add_subcommand\("{stem}"'), {source})
        for path, text in CODES.items():
            known = [stem for stem in stems("src/cli/commands") if path.startswith("src/cli/") and f'"{stem}"' in text]
            self.assertLess(len(known), 4, path)


if __name__ == "__main__":
    unittest.main()
