"""Training on files that are larger than memory, within a byte budget."""
import os
import struct
import tempfile
import unittest

from program import SANITIZED, millpond, millpond_json, read_npy, write_npy

MIB = 1 << 20


def write_sparse(path, kind, shape, size):
    """An array of zeros that takes no room on the disk."""
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join(f"{n}, " for n in shape))
    header += " " * ((64 - (10 + len(header) + 1) % 64) % 64) + "\n"
    for n in shape:
        size *= n
    with open(path, "wb") as out:
        out.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1"))
        out.truncate(out.tell() + size)


class Streams(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def grows_less_than_the_budget(self, kind, size, rows):
        write_sparse(self.path("x.npy"), kind, (rows, 100), size)
        write_sparse(self.path("y.npy"), kind, (rows, 1), size)
        self.assertGreater(os.path.getsize(self.path("x.npy")), 20e9 - 1)
        run = millpond_json("train", "mlp_small", "--data", self.path("x.npy"), self.path("y.npy"), "--steps-per-epoch", 2000, "--epochs", 5, "--data-budget", "64MiB")
        self.assertEqual(run["steps"], 10000)
        self.assertEqual(run["data"]["budget"], 64 * MIB)
        self.assertLessEqual(run["data"]["peak"], 64 * MIB)
        self.assertLess(run["loss_per_epoch"][-1], run["loss_per_epoch"][0])
        if SANITIZED:
            return
        self.assertLess(run["rss_peak"] - run["rss_start"], 16 * MIB)
        # Flat: queues may still deepen in the first epochs, by batches of 13 KiB.
        self.assertLess(run["rss_per_epoch"][-1] - run["rss_per_epoch"][1], MIB)
        self.assertGreater(run["explained_share"], 0.9)

    def test_twenty_gigabytes_are_shuffled_within_64_mib(self):
        self.grows_less_than_the_budget("f4", 4, 50_000_000)

    def test_float64_is_converted_batch_by_batch(self):
        self.grows_less_than_the_budget("f8", 8, 25_000_000)

    def test_streaming_gives_what_mapping_gives(self):
        values = [((i * 2654435761) % 1000) / 1000 for i in range(300 * 100)]
        write_npy(self.path("x.npy"), values, (300, 100))
        write_npy(self.path("y.npy"), [float(i % 2) for i in range(300)], (300, 1))
        millpond("train", "mlp_small", "--data", self.path("x.npy"), self.path("y.npy"), "--epochs", 2, "--data-budget", "4MiB", "--save", self.path("w.weights.h5"))
        mapped = millpond_json("evaluate", "mlp_small", "--weights", self.path("w.weights.h5"), "--data", self.path("x.npy"), self.path("y.npy"))
        streamed = millpond_json("evaluate", "mlp_small", "--weights", self.path("w.weights.h5"), "--data", self.path("x.npy"), self.path("y.npy"), "--data-budget", "4MiB")
        self.assertEqual(mapped, streamed)
        millpond("predict", "mlp_small", "--weights", self.path("w.weights.h5"), "--data", self.path("x.npy"), "--out", self.path("a.npy"))
        millpond("predict", "mlp_small", "--weights", self.path("w.weights.h5"), "--data", self.path("x.npy"), "--out", self.path("b.npy"), "--data-budget", "4MiB")
        self.assertEqual(read_npy(self.path("a.npy")), read_npy(self.path("b.npy")))
        self.assertEqual(read_npy(self.path("a.npy"))[0], (300, 1))

    def test_the_table_names_the_stages(self):
        write_npy(self.path("x.npy"), [0.5] * 6400, (64, 100))
        write_npy(self.path("y.npy"), [1.0] * 64, (64, 1))
        text, _ = millpond("train", "mlp_small", "--data", self.path("x.npy"), self.path("y.npy"), "--data-budget", "4MiB", "--explain-data")
        for word in ("npy(64 rows)", "shuffle(all 64", "batch(32)", "prefetch(AUTOTUNE)", "budget 4.00 MiB"):
            self.assertIn(word, text)

    def test_a_budget_that_is_too_small_is_refused_with_the_table(self):
        write_npy(self.path("x.npy"), [0.5] * 6400, (64, 100))
        write_npy(self.path("y.npy"), [1.0] * 64, (64, 1))
        _, text = millpond("train", "mlp_small", "--data", self.path("x.npy"), self.path("y.npy"), "--data-budget", "10KiB", code=1)
        self.assertIn("the data pipeline needs at least", text)
        self.assertIn("batch", text)
        _, text = millpond("train", "mlp_small", "--data", self.path("x.npy"), self.path("y.npy"), "--data-budget", "much", code=2)
        self.assertIn("much", text)


if __name__ == "__main__":
    unittest.main()
