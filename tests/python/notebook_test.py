"""In a notebook: %load_ext millpond, %%millpond and %mprof, in a kernel as Jupyter runs it."""
import os
import re
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from support import SOURCE, environment  # noqa: E402

try:
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
except ImportError:
    print("skipped: nbclient and ipykernel are not here; 'make peers' installs them.")
    sys.exit(77)

TRAINER = open(os.path.join(SOURCE, "examples", "leaky_training.py")).read().rpartition("\n\nif __name__")[0]


class Notebook(unittest.TestCase):
    def run_cells(self, *cells):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
                                            metadata={"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}})
        with tempfile.TemporaryDirectory() as folder:
            os.environ.update({key: value for key, value in environment().items() if key in ("MILLPOND", "PYTHONPATH")})
            NotebookClient(notebook, timeout=120, resources={"metadata": {"path": folder}}).execute()
            self.assertEqual([name for name in os.listdir(folder) if name.endswith(".pond")], [])
        return [cell.outputs for cell in notebook.cells]

    def shown(self, outputs):
        """The HTML and the text of the object that was displayed."""
        found = [output["data"] for output in outputs if output.output_type in ("display_data", "execute_result") and "text/html" in output["data"]]
        self.assertEqual(len(found), 1, outputs)
        return found[0]["text/html"], found[0]["text/plain"]

    def test_a_cell_that_leaks_is_told_with_its_line_and_a_chart(self):
        define, watched = TRAINER, "%%millpond\nmain()"
        outputs = self.run_cells("%load_ext millpond", define, watched, "print(_millpond.verdict, _millpond.findings[0].file, _millpond.findings[0].line, _millpond.findings[0].snippet)",
                                 "import sqlite3\nprint(sqlite3.connect(_millpond.path).execute('SELECT function, first, text FROM sources').fetchall())")
        html, text = self.shown(outputs[2])
        line = 1 + TRAINER.splitlines().index("        self.seen.append(batch)")
        self.assertIn("LEAK", text)
        self.assertIn("self.seen.append(batch)", text)
        self.assertIn("<svg", html)
        self.assertIn("self.seen.append(batch)", html)
        self.assertNotIn("<script", html)
        self.assertRegex(outputs[3][0]["text"], r"leak /tmp/ipykernel_\d+/\d+\.py %d self\.seen\.append\(batch\)" % line)
        self.assertIn("('train_on', %d, '    def train_on(self" % (1 + TRAINER.splitlines().index("    def train_on(self, batch, rate=0.05):")), outputs[4][0]["text"])
        self.assertIn("epoch 11", "".join(output.get("text", "") for output in outputs[2]))

    def test_names_that_look_like_html_are_shown_as_text(self):
        cell = "%%millpond\nclass T:\n    pass\nT.__name__ = T.__qualname__ = '<img src=x onerror=alert(1)>'\nt = T()\nt.kept = []\nfor epoch in range(12):\n" \
               "    t.kept.append([bytearray(500000) for _ in range(4)]); '<script>alert(1)</script>'\n    print('epoch', epoch)"
        html, _ = self.shown(self.run_cells("%load_ext millpond", cell)[1])
        self.assertNotIn("<script", html)
        self.assertNotIn("<img", html)

    def test_lines_of_a_function_as_a_table(self):
        outputs = self.run_cells(
            "%load_ext millpond", "def work(n):\n    kept = bytearray(n)  # <i>here</i>\n    return kept", "%mprof -f work x = work(4 << 20)",
            "print(len(x), _mprof.functions[0].lines[1].change >> 20)", "%%mprof -f work\nfor i in range(3):\n    work(1 << 20)", "print(_mprof.functions[0].lines[1].hits)")
        html, text = self.shown(outputs[2])
        self.assertIn("&lt;i&gt;here&lt;/i&gt;", html)
        self.assertNotIn("<i>here", html)
        self.assertRegex(text, r"\+4\.00 MiB .* kept = bytearray\(n\)")
        self.assertEqual(outputs[3][0]["text"].split(), ["4194304", "4"])
        self.assertEqual(outputs[5][0]["text"].split(), ["3"])

    def test_wrong_words_are_told_and_an_error_in_the_cell_is_its_own(self):
        for cell, said in (("%mprof work(1)", "%mprof -f FUNCTION"), ("%mprof -f nothing nothing()", "nothing is no function here"), ("%%millpond --wat\n1", "does not know '--wat'"),
                           ("%%millpond\n1 / 0", "ZeroDivisionError")):
            with self.subTest(cell=cell):
                try:
                    outputs = self.run_cells("%load_ext millpond", cell)
                    text = str(outputs[1])
                except CellExecutionError as error:
                    text = str(error)
                self.assertIn(said, re.sub(r"\x1b\[[0-9;]*m", "", text))


if __name__ == "__main__":
    unittest.main()
