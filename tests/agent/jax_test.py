"""Real JAX (peers): compilations by the user's line, live arrays."""

import unittest

from support import agent_modules, line_of, run

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


class Pool(unittest.TestCase):
    """The part for GPUs, with the processor's memory in the place of a device's."""

    def test_arrays_have_the_lines_that_made_them_and_so_has_the_profile(self):
        agent_modules()
        import os
        import sys

        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax.numpy as jnp
        from millpond_agent import gpu, jax_pool, pprof

        pool = jax_pool.JaxPool()
        self.assertFalse(jnp.zeros(1).sum() and pool.ready())
        jax_pool.kProcessors = ()
        self.assertTrue(pool.ready())
        ledger = gpu.Ledger()
        ledger.sees(1, pool.blocks(ledger))
        made = [jnp.ones((100, 100)) + index for index in range(5)]
        line = sys._getframe().f_lineno - 1
        ledger.sees(2, pool.blocks(ledger))
        for array in made:
            size, device, born, number, owner, _ = ledger.known[id(array)]
            self.assertEqual((size, device), (40000, 0))
            self.assertGreater(born, 1)
            self.assertIs(owner(), array)
            self.assertIn((__file__, line), [(file, at) for file, at, _ in gpu._stacks[number]])
        rows = pprof.read(sys.modules["jax"].profiler.device_memory_profile())
        found = sum(size for stack, _, size, labels in rows if labels.get("kind") == "buffer" and (__file__, line) in [(file, at) for file, at, _ in stack])
        self.assertEqual(found, 5 * 40000)
        keys = [id(array) for array in made]
        del made, array
        ledger.sees(3, pool.blocks(ledger))
        self.assertFalse([key for key in keys if ledger.known.get(key, [0, 0, 9])[2] < 2])


if __name__ == "__main__":
    unittest.main()
