"""Real Keras on TensorFlow (peers): phases, epochs, traces, tf.data stages, a callback that keeps arrays. And NumPy arrays that grow."""

import unittest

from support import line_of, run

ENV = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3", "KERAS_BACKEND": "tensorflow", "TF_ENABLE_ONEDNN_OPTS": "0"}

PROGRAM = """
import time, keras, numpy as np, tensorflow as tf
class Keep(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.saved = []
    def on_epoch_end(self, epoch, logs=None):
        self.saved.append(np.ones((300, 1000)))
        time.sleep(0.1)  # no probe comes within the first half second of rounds, however quick the machine
def build():
    model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(4), keras.layers.Dense(1)])
    model.compile(loss="mse")
    return model
def main():
    x, y = np.zeros((64, 8), "float32"), np.zeros((64, 1), "float32")
    model = build()
    history = model.fit(x, y, epochs=12, batch_size=16, verbose=0, validation_data=(x, y), callbacks=[Keep()])
    assert len(history.history["loss"]) == 12
    data = (tf.data.Dataset.range(20)
            .shuffle(10)
            .cache()
            .batch(2))
    @tf.function
    def double(x, n):
        return x * n
    for n in range(8):
        double(tf.constant(1.0), n)
    grown = np.zeros((0, 1000))
    for epoch in range(8):
        grown = np.concatenate([grown, np.ones((20, 1000))])
        model.train_on_batch(x, y)
        print(f"round {epoch} of 8")
    keras.utils.clear_session()
main()
"""


class Keras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.result = run(PROGRAM, environment=ENV, timeout=250)

    def test_it_ran_and_said_nothing(self):
        self.assertEqual(self.result.code, 0, self.result.err)
        self.assertEqual(self.result.out.count("\n"), 8)
        self.assertNotIn("millpond", self.result.err)

    def test_units(self):
        batch, epoch, model, _, trace, compiled, _, fit = self.result.marks("end")[0]["units"]
        self.assertEqual((batch, epoch, model, compiled, fit), (48 + 8, 12, 1, 1, 1))
        self.assertGreaterEqual(trace, 9)

    def test_phases(self):
        self.assertEqual(len(self.result.marks("fit", 1)), 1)
        self.assertEqual(len(self.result.marks("validation", 1)), 12)
        epochs = self.result.marks("epoch", 4)
        self.assertEqual([mark["index"] for mark in epochs if mark["name"] == "fit"][-1], 12)
        self.assertTrue(self.result.notes("probe"))

    def test_lines(self):
        calls = self.result.calls()
        self.assertEqual(calls["fit", line_of(PROGRAM, "model.fit(")]["count"], 1)
        self.assertEqual(calls["trace", line_of(PROGRAM, "double(tf.constant(1.0), n)")]["count"], 8)
        self.assertEqual(calls["model", line_of(PROGRAM, "keras.Sequential")]["count"], 1)
        self.assertEqual(calls["compile", line_of(PROGRAM, "model.compile")]["count"], 1)
        self.assertEqual(calls["clear_session", line_of(PROGRAM, "clear_session()")]["count"], 1)
        stages = {note["op"]: note for note in self.result.notes("dataset")}
        self.assertEqual(stages["shuffle"]["buffer"], 10)
        self.assertIn("retracing", [note["what"] for note in self.result.notes("advice")])
        if "cache" in stages:
            self.assertEqual(stages["cache"]["text"], ".cache()")
        data = self.result.notes("data")[0]
        self.assertEqual(data["arrays"][0], {"shape": [64, 8], "dtype": "float32", "bytes": 2048, "type": "ndarray"})

    def test_what_the_callback_keeps(self):
        rows = [row for note in self.result.notes("holders") for row in note["containers"] if row["holder"] == "Keep.saved"]
        self.assertEqual(rows[-1]["line"], line_of(PROGRAM, "self.saved.append"))
        self.assertEqual(rows[-1]["function"], "Keep.on_epoch_end")
        self.assertLess(abs(rows[-1]["bytes_per_period"] - 2400000), 60000)

    def test_counters(self):
        values = {}
        for note in self.result.notes("counters"):
            values.update(note["values"])
        for name in ("tf.traces", "tf.funcgraphs", "tf.gradient_registry", "keras.models", "keras.layers", "gc.objects", "fds", "threads"):
            self.assertIn(name, values)


class Arrays(unittest.TestCase):
    def test_numpy_arrays_that_grow_themselves(self):
        text = ("import numpy as np, time\nclass Store:\n    def __init__(self):\n        self.all = np.zeros((0, 512))\n    def add(self):\n"
                "        self.all = np.concatenate([self.all, np.ones((5, 512))])\nstore = Store()\nfor epoch in range(16):\n    store.add()\n"
                "    time.sleep(0.05)\n    print('epoch', epoch)\n")
        row = run(text).containers()["Store.all"]
        self.assertEqual((row["line"], row["function"], row["bytes_per_period"]), (6, "Store.add", 20480))


if __name__ == "__main__":
    unittest.main()
