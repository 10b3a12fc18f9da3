"""Public headers stand alone, and are silent in a program that is compiled more strictly than ours, by g++ and by clang."""

import os
import pathlib
import shutil
import subprocess
import sys
import unittest

INCLUDE = pathlib.Path(os.environ["MILLPOND_SOURCE_DIR"]) / "include"
HEADERS = sorted(str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*.h"))
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]


def complaints(compiler, headers):
    text = "".join("#include <%s>\n" % header for header in headers) + "int main() {}\n"
    done = subprocess.run([compiler, *STRICT, "-fsyntax-only", "-I", str(INCLUDE), "-x", "c++", "-"], input=text, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode or done.stdout else ""


class Headers(unittest.TestCase):
    def compilers(self):
        """Of both those that are here; the other is named as skipped."""
        for compiler in ("g++", "clang++"):
            with self.subTest(compiler):
                if shutil.which(compiler) is None:
                    self.skipTest("no %s here" % compiler)
                yield compiler

    def test_each_header_needs_no_other_before_it(self):
        self.assertGreater(len(HEADERS), 10)
        for header in HEADERS:
            with self.subTest(header):
                self.assertEqual(complaints(COMPILER, [header]), "")

    def test_all_of_them_are_silent_under_strict_warnings_by_both_compilers(self):
        for compiler in self.compilers():
            with self.subTest(compiler):
                self.assertEqual(complaints(compiler, HEADERS), "")

    def test_what_a_newcomer_wrote_compiles(self):
        for line in ("MaxPooling2D({2, 2}, {.strides = {2, 2}});", "MaxPooling2D(2, {.strides = 2});", 'Sequential m; m.compile("adam", "mse", "accuracy");',
                     'Sequential m; m.compile("adam", "mse", {"accuracy", "mse"});', "auto a = Input({4}); auto y = Dense(1)(a); Model m(a, y);",
                     "auto a = Input({4}); auto y = Dense(1)(a); Model m({a}, {y});", "std::vector<float> v(2); auto t = Tensor::of(v, {2});",
                     "auto t = Tensor::of({1.f, 2.f}, {2});", "std::array<int64_t, 2> v{}; auto t = Tensor::of(std::span(v), {2});",
                     "const Sequential m; auto p = m.predict(Tensor()); auto r = m.evaluate(Tensor(), Tensor());", 'write_npy("x.npy", read_npy("y.npy"));',
                     "auto all = memory().account(\"weights\"); auto own = Sequential().memory(); (void)all; (void)own;"):
            for compiler in self.compilers():
                with self.subTest(line, compiler=compiler):
                    self.assertEqual(compiled(compiler, line), "")

    def test_what_would_do_nothing_or_fail_later_does_not_compile(self):
        for line, word in (("Dataset::range(3).batch(32);", "nodiscard"), ("Tensor().astype(DType::kFloat64);", "nodiscard"), ("dtype_of<char16_t>();", "deleted"),
                           ("CallbackRef none(nullptr);", "deleted"), ("Sequential().predict(Tensor());", "nodiscard"), ("Sequential().predict(Dataset::range(3));", "nodiscard"),
                           ("Sequential().predict_on_batch(Tensor());", "nodiscard"), ("Sequential().get_weights();", "nodiscard"), ("Sequential().memory();", "nodiscard"),
                           ("Sequential().to_json();", "nodiscard")):
            for compiler in self.compilers():
                with self.subTest(line, compiler=compiler):
                    self.assertIn(word, compiled(compiler, line))


def compiled(compiler, body):
    # The variables of these lines are there to be declared; everything else is as strict as above, in what the templates become too.
    text = "#include <millpond/millpond.h>\n#include <array>\nusing namespace millpond;\nvoid f();\nvoid f() { %s }\n" % body
    done = subprocess.run([compiler, *STRICT, "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-fsyntax-only", "-I", str(INCLUDE), "-x", "c++", "-"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode or done.stdout else ""


if __name__ == "__main__":
    COMPILER = sys.argv.pop(1)
    unittest.main(verbosity=2)
