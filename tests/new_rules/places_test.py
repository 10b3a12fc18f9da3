"""Places that an optimizer and a metric are named in: the public header and one file of their own. Comments do not count."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
CODE = {".h", ".cc", ".inc", ".cmake", ".py", ".txt"}


def class_of(file):
    """The class whose constructor the file has: RMSprop of rmsprop.cc."""
    return re.search(r"\b(\w+)::\1\(", file.read_text()).group(1)


def places(name):
    """Files of the library and its build that name the class, its options or, as a text, what it is asked for by."""
    word = re.compile(rf"\b{name}(Options)?\b|\"{name.lower()}\"")
    found = set()
    for folder in ("include", "src", "cmake", "python"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in CODE and word.search(re.sub(r"//.*|#.*" if file.suffix in (".cmake", ".txt", ".py") else r"//.*", "", file.read_text(errors="replace"))):
                found.add(str(file.relative_to(ROOT)))
    return found


def files(folder):
    return sorted((ROOT / folder).glob("*.cc"))


class Places(unittest.TestCase):
    def test_an_optimizer_is_two_places(self):
        for file in files("src/train/optimizers"):
            if file.stem in ("sgd", "adam", "adamw"):  # models of ours and the doctor speak of them too
                continue
            with self.subTest(file.stem):
                self.assertEqual(places(class_of(file)), {"include/millpond/optimizers.h", f"src/train/optimizers/{file.stem}.cc"})

    def test_a_metric_is_two_places(self):
        for file in files("src/nn/metrics"):
            if file.stem in ("accuracy", "errors"):  # words of every day
                continue
            with self.subTest(file.stem):
                self.assertEqual(places(class_of(file)), {"include/millpond/metrics.h", f"src/nn/metrics/{file.stem}.cc"})

    def test_there_are_some(self):
        self.assertGreaterEqual(len(files("src/train/optimizers")), 7)
        self.assertGreaterEqual(len(files("src/nn/metrics")), 5)

    def test_what_is_planted_is_found(self):
        self.assertIn("src/train/optimizer.cc", places("Optimizer"))


if __name__ == "__main__":
    unittest.main()
