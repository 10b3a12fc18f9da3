"""What becomes of a value in the instructions of a function, on the Python that runs this."""

import types
import unittest

from support import agent_modules

agent_modules()
from millpond_agent import frames, limits, puts, readings  # noqa: E402

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
    ("del x[k]", [("delete", None, (), None)]),
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


# Functions that add to `kept`, and how many items their code leaves there.
LIMITS = (
    ("kept.append(v)\n    if len(kept) > 50:\n        kept.pop(0)", 50),
    ("if len(kept) >= 40:\n        kept.clear()\n    kept.append(v)", 40),
    ("while len(kept) > kMost:\n        kept.popitem()\n    kept[v] = v", 70),
    ("kept.append(v)\n    del kept[:-60]", 60),
    ("if len(self.kept) < self.room:\n        self.kept.append(v)\n    else:\n        self.kept[0] = v", 80),
    ("if len(kept) < 30:\n        kept[v] = v", 30),
    ("kept.append(v)", None),
    ("kept.append(v)\n    if len(kept) > 10:\n        print(kept[-1])", None),  # asked, and nothing taken out
    ("kept[v] = v\n    if len(kept) == 1000:\n        print(v)", None),  # only replaced, whatever its length is
    ("kept.append(v)\n    kept.pop(0)", None),  # taken out, whatever its length is
    ("kept.append(v)\n    if len(kept) > v:\n        kept.pop(0)", None),  # a number that is not there any more
    ("kept.append(v)\n    if len(other) > 20:\n        kept.pop()", None),  # the length of something else
)


class Limits(unittest.TestCase):
    def test_a_limit_that_the_code_keeps_is_read(self):
        for text, expected in LIMITS:
            with self.subTest(text):
                made = {"kMost": 70}
                exec("def f(kept, self, v, other):\n    " + text, made)
                module = types.ModuleType("given")
                vars(module).update(made, __file__=made["f"].__code__.co_filename)
                before, frames.user_modules = frames.user_modules, lambda: [module]
                try:
                    search = puts._Search()
                    trail = puts._Trail(search, ())
                    reader = search.reader(made["f"].__code__)
                    for at, depth in reader.loads("kept", "self." in text):
                        trail.used(reader, at, depth, ())
                    self.assertEqual(search.guards.limit([[], {"room": 80}]), expected)
                finally:
                    frames.user_modules = before

    def test_a_limit_is_told_until_it_is_passed(self):
        limits._known[("kept",)] = 5
        row = {"len": 6, "bound": None}
        limits.tell(("kept",), row)
        self.assertEqual(row["bound"], 5)
        row = {"len": 7, "bound": None}
        limits.tell(("kept",), row)
        self.assertIsNone(row["bound"])


if __name__ == "__main__":
    unittest.main()
