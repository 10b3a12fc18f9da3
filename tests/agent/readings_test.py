"""What becomes of a value in the instructions of a function, on the Python that runs this."""

import unittest

from support import agent_modules

agent_modules()
from millpond_agent import readings  # noqa: E402

# Statements with x, and what each of its loads is used for: how, name, the keys that lead to what is used, the key of a stored item.
FORMS = (
    ("x[k] += [v]", [("aug", None, (None,), None)]),
    ("x['a'].append(v)", [("method", "append", ("a",), None)]),
    ("x['b'] += [v]", [("aug", None, ("b",), None)]),
    ("x['c'] = x['c'] + [v]", [(None, None, (), None), ("item", None, (), "c")]),
    ("x[k] = v", [("item", None, (), None)]),
    ("x[1:2] = [v]", [("item", None, (), None)]),
    ("x.get(k).append(v)", [("method", "append", (None,), None)]),
    ("x.setdefault(k, []).append(v)", [("method", "setdefault", (), None)]),
    ("x |= {k: v}", [("aug", None, (), None)]),
    ("x += [q for q in v]", [("aug", None, (), None)]),
    ("y = x['e']", [("alias", ("y",), ("e",), None)]),
    ("w, u = x, v", [("alias", ("w",), (), None)]),
    ("for p in x.values():\n        p.append(v)", [("alias", ("p",), (None,), None)]),
    ("for a, b in x.items():\n        b.append(v)", [("alias", ("a", "b"), (None,), None)]),
    ("self.z = x", [("attribute", "z", (), None)]),
    ("g(x, k=v)", [("pass", None, (), None)]),
    ("g(v, x['d'])", [("pass", None, ("d",), None)]),
    ("g(x, v if c else k)", [("pass", None, (), None)]),
    ("g(*x)", [("pass", None, (), None)]),
    ("x.append(v if c else k)", [("method", "append", (), None)]),
    ("x[k]['f'] = [i for i in range(3)]", [("item", None, (None,), "f")]),
    ("return x", [(None, None, (), None)]),
    ("del x[k]", [(None, None, (), None)]),
)


class Uses(unittest.TestCase):
    def test_each_form_is_read_as_what_it_does(self):
        for text, expected in FORMS:
            with self.subTest(text):
                made = {}
                exec("def f(x, k, v, g, self, c):\n    " + text, made)
                reader = readings.Reader(made["f"].__code__)
                found = [reader.use(at, depth) for at, depth in reader.loads("x", False)]
                self.assertEqual([(use.how, use.name, use.path, use.key) for use in found], expected)

    def test_the_place_of_an_argument_is_known_where_it_has_no_name(self):
        made = {}
        exec("def f(x, v, g):\n    g(v, x)\n    g.keep(x)\n    g(v, where=x)", made)
        reader = readings.Reader(made["f"].__code__)
        self.assertEqual([reader.use(at, depth).place for at, depth in reader.loads("x", False)], [1, 0, None])


if __name__ == "__main__":
    unittest.main()
