"""The agent's part for GPUs, with a stand-in for torch (tests/gpu/stand_in): counters, blocks with their births, recordings. The real ones: tests/gpu/run.py."""

import gzip
import os
import unittest

from support import SOURCE, agent_modules, run

STAND_IN = os.path.join(SOURCE, "tests", "gpu", "stand_in", "site-packages")
PATH = "import sys; sys.path.insert(0, %r)\n" % STAND_IN

LOOP = PATH + """
import time, torch
def main():
    kept = []
    for epoch in range(30):
        kept.append(torch.zeros(100_000))
        torch.zeros(1_000_000)
        print(f"epoch {epoch}")
        time.sleep(0.06)
main()
from torch.cuda import memory
print("switched", memory.switched)
print("asked", memory.asked)
print("compiler", memory.compiler_asked)
"""


def asked(result, what):
    line = next(line for line in result.out.splitlines() if line.startswith(what + " "))
    return eval(line.partition(" ")[2], {})


class Torch(unittest.TestCase):
    def test_counters_at_rounds(self):
        result = run(LOOP)
        self.assertEqual(result.code, 0, result.err)
        rows = [note["devices"][0] for note in result.notes("gpu")]
        self.assertGreaterEqual(len(rows), 10)
        self.assertEqual({row["space"] for row in rows}, {"gpu:0"})
        self.assertEqual([row["in_use"] for row in rows], sorted(row["in_use"] for row in rows))
        self.assertGreater(rows[-1]["in_use"], rows[0]["in_use"])
        self.assertEqual(rows[-1]["limit"], 8 << 30)
        self.assertGreaterEqual(rows[-1]["reserved"], rows[-1]["peak"])

    def test_births_are_recorded_in_a_few_rounds_and_the_recording_ends(self):
        result = run(LOOP)
        switched = asked(result, "switched")
        self.assertGreaterEqual(switched.count("state"), 3)
        self.assertLessEqual(switched.count("state"), 3 + 30 // 8)
        self.assertEqual(switched, ["state", None] * (len(switched) // 2) + ["state"] * (len(switched) % 2))

    def test_nothing_is_asked_of_a_device_that_is_not_started(self):
        text = PATH + ("import torch, time\nfor epoch in range(8):\n    print(f'epoch {epoch}')\n    time.sleep(0.1)\n"
                       "from torch.cuda import memory\nprint('asked', memory.asked)\nassert not torch.cuda.is_initialized()\n")
        result = run(text)
        self.assertEqual(result.code, 0, result.err)
        self.assertEqual(asked(result, "asked"), {"stats": 0, "snapshots": 0, "while_capturing": 0, "not_started": 0})

    def test_nothing_is_asked_while_a_graph_is_captured(self):
        result = run(LOOP.replace("    kept = []\n", "    kept = []\n    torch.cuda.capturing = True\n"))
        self.assertEqual(asked(result, "asked")["while_capturing"], 0)
        self.assertEqual(asked(result, "switched"), [])

    def test_a_program_that_records_itself_is_left_alone(self):
        text = LOOP.replace("    kept = []\n", "    kept = []\n    torch.cuda.memory._record_memory_history('all')\n")
        result = run(text)
        self.assertEqual(asked(result, "switched"), ["all"])
        self.assertTrue(any("itself" in note.get("refused", "") for note in result.notes("gpu")))

    def test_a_look_does_not_import_the_compiler(self):
        result = run(LOOP)
        self.assertGreater(asked(result, "asked")["snapshots"], 3)
        self.assertEqual(asked(result, "compiler"), [])

    def test_another_signature_is_told_plainly(self):
        text = LOOP.replace("import time, torch\n", "import time, torch\nfrom torch.cuda import memory\ndef other(state):\n    raise RuntimeError\nmemory._record_memory_history = other\n")
        result = run(text)
        self.assertEqual(result.code, 0, result.err)
        self.assertTrue(any("not known here" in note.get("refused", "") for note in result.notes("gpu")))

    def test_a_device_that_is_hidden_keeps_its_number(self):
        result = run(LOOP, environment={"CUDA_VISIBLE_DEVICES": "3,1"})
        self.assertEqual({row["space"] for note in result.notes("gpu") for row in note["devices"]}, {"gpu:3"})


class Births(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        agent_modules()
        from millpond_agent import gpu

        cls.gpu = gpu

    def test_a_block_is_born_between_two_looks_and_again_when_its_place_is_taken_anew(self):
        ledger = self.gpu.Ledger()
        stack = lambda: [("train.py", 7, "main")]  # noqa: E731
        ledger.sees(10, [(1, 100, 0, None, None, None)])
        ledger.sees(20, [(1, 100, 0, None, None, None), (2, 100, 0, None, None, None)])
        self.assertIsNone(ledger.known[1][2])
        self.assertEqual(ledger.known[2][2], 15)
        ledger.sees(30, [(1, 100, 0, None, ("train.py", 7, 1), stack), (2, 200, 0, None, None, None)])
        self.assertEqual(self.gpu._stacks[ledger.known[1][3]], (("train.py", 7, "main"),))
        self.assertGreater(ledger.known[1][2], 20)
        self.assertGreater(ledger.known[2][2], 20)
        ledger.sees(40, [])
        self.assertEqual(ledger.known, {})


def varint(number):
    out = b""
    while True:
        out += bytes([number & 127 | (128 if number > 127 else 0)])
        number >>= 7
        if not number:
            return out


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


class Profile(unittest.TestCase):
    """jax.profiler.device_memory_profile, as far as it is read."""

    def profile(self):
        strings = [b"", b"kind", b"buffer", b"/home/me/train.py", b"main"]
        out = b"".join(field(6, text) for text in strings)
        out += field(5, field(1, 1) + field(2, 4) + field(4, 3))
        out += field(4, field(1, 9) + field(4, field(1, 1) + field(2, 31)))
        out += field(2, field(1, varint(9)) + field(2, varint(3) + varint(4096)) + field(3, field(1, 1) + field(2, 2)))
        return gzip.compress(out)

    def test_stacks_with_their_bytes(self):
        agent_modules()
        from millpond_agent import pprof

        self.assertEqual(pprof.read(self.profile()), [([("/home/me/train.py", 31, "main")], 3, 4096, {"kind": "buffer"})])

    def test_what_is_no_profile_is_none(self):
        agent_modules()
        from millpond_agent import pprof

        whole = gzip.decompress(self.profile())
        for text in (b"\x1f\x8bnonsense", gzip.compress(whole[:-3]), gzip.compress(b"\xff" * 40), b"\x12\x05ab"):
            self.assertIsNone(pprof.read(text))
        self.assertEqual(pprof.read(b""), [])


class TensorFlow(unittest.TestCase):
    """Counters only: as recorded from the documentation, no GPU with TensorFlow was at hand."""

    def test_in_use_and_peak_once_the_program_has_started_it(self):
        agent_modules()
        import sys
        import types

        from millpond_agent.tensorflow_pool import TensorFlowPool

        pool = TensorFlowPool()
        context = types.SimpleNamespace(_context=None)
        experimental = types.SimpleNamespace(get_memory_info=lambda name: {"current": 512, "peak": 4096} if name == "GPU:0" else {})
        added = {"tensorflow": types.SimpleNamespace(config=types.SimpleNamespace(experimental=experimental)), "tensorflow.python.eager.context": context}
        before = {name: sys.modules.get(name) for name in added}
        sys.modules.update(added)
        try:
            self.assertFalse(pool.ready())
            device = types.SimpleNamespace(name="/device:GPU:0")
            context._context = types.SimpleNamespace(_initialized=True, list_logical_devices=lambda kind: [device])
            self.assertTrue(pool.ready())
            self.assertEqual(list(pool.counters()), [(0, {"in_use": 512, "peak": 4096})])
        finally:
            for name, module in before.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module


if __name__ == "__main__":
    unittest.main()
