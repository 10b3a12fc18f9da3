"""Real JAX (peers): compilations by the user's line, live arrays."""

import unittest

from support import line_of, run

PROGRAM = """
import time
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def square(x):
    return (x * x).sum()
def main():
    kept = []
    for epoch in range(12):
        x = np.ones((epoch + 1, 1000), np.float32)
        square(x)
        kept.append(jnp.asarray(np.ones((200, 100), np.float32)) + epoch)
        print(f"epoch {epoch}")
        time.sleep(0.25)  # long enough for a probe, which counts live arrays
main()
"""


class Jax(unittest.TestCase):
    def test_compilations_and_live_arrays(self):
        result = run(PROGRAM, environment={"JAX_PLATFORMS": "cpu"}, timeout=200)
        self.assertEqual(result.code, 0, result.err)
        lines = {line: row["count"] for (what, line), row in result.calls().items() if what == "jax_compile"}
        self.assertEqual(lines[line_of(PROGRAM, "        square(x)")], 12)
        self.assertGreaterEqual(result.marks("end")[0]["units"][4], 12)
        row = result.containers()["kept"]
        self.assertEqual(row["line"], line_of(PROGRAM, "kept.append"))
        self.assertLess(abs(row["bytes_per_period"] - 80000), 4000)
        values = {}
        for note in result.notes("counters"):
            values.update(note["values"])
        self.assertGreaterEqual(values["jax.live_arrays"], 4)


if __name__ == "__main__":
    unittest.main()
