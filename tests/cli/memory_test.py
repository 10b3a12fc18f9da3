"""What training does to memory, judged from outside: /proc and the counting library, beside what the program says of itself."""
import fcntl
import json
import os
import pty
import struct
import subprocess
import tempfile
import termios
import unittest

from program import BUILD, PROGRAM, SANITIZED, CHECKS, millpond, millpond_json

MIB = 1 << 20
JUDGE = os.path.join(BUILD, "bin", "memory_judge")
PLANTED = os.path.join(BUILD, "tests", "millpond_planted")
FIRST_FIVE = ("tiny", "mlp_small", "mlp_large", "mlp_784", "cnn_224")


def judged(program, *arguments, **environment):
    """Trains under the judge: (what the judge saw, what the program said). The program waits a moment before it takes memory."""
    with tempfile.TemporaryDirectory() as folder:
        seen, said = os.path.join(folder, "seen.json"), os.path.join(folder, "said.json")
        done = subprocess.run([JUDGE, "--json", seen, "--start", "training begins", "--no-count", "--", program, "train", *map(str, arguments), "--json", said],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=dict(os.environ, MILLPOND_WAIT_MS="300", **environment))
        if done.returncode:
            raise AssertionError(done.stdout)
        with open(seen) as a, open(said) as b:
            seen, said = json.load(a), json.load(b)
    if not seen["start"]:
        raise AssertionError("the judge did not see training begin:\n" + done.stdout)
    return seen, said


def in_terminal(*arguments, columns=None):
    """What the program writes to a terminal of that width."""
    terminal, its_end = pty.openpty()
    if columns:
        fcntl.ioctl(its_end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdin=its_end, stdout=its_end, stderr=its_end)
    os.close(its_end)
    text = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:  # nobody has the other end any more
            break
        if not part:
            break
        text += part
    os.close(terminal)
    text = text.decode().replace("\r\n", "\n")
    if process.wait(timeout=60):
        raise AssertionError(text)
    return text


def unexplained_growth(seen, said):
    """Bytes that rose during training beside the plan, seen from outside."""
    return seen["peak"]["rss"] - seen["start"]["rss"] - said["planned_bytes"]


@unittest.skipIf(SANITIZED, "a sanitizer takes memory of its own, so resident memory says nothing about ours")
class FromOutside(unittest.TestCase):
    def rises_by_the_plan(self, *arguments):
        seen, said = judged(PROGRAM, *arguments)
        rise = seen["peak"]["rss"] - seen["start"]["rss"]
        self.assertLess(abs(rise - said["planned_bytes"]), 0.02 * said["planned_bytes"] + 4 * MIB,
                        f"planned {said['planned_bytes'] / MIB:.1f} MiB, rose by {rise / MIB:.1f} MiB")
        return seen, said

    def test_resident_memory_of_cnn_224_rises_by_the_plan_and_by_less_than_a_mebibyte_beside_it(self):
        seen, said = self.rises_by_the_plan("cnn_224", "--synthetic", "--epochs", 2)
        self.assertLess(unexplained_growth(seen, said), MIB)

    def test_resident_memory_of_resnet50_rises_by_the_plan(self):
        self.rises_by_the_plan("resnet50", "--synthetic", "--epochs", 1, "--steps-per-epoch", 2, "--batch", 8)

    @unittest.skipUnless(os.path.exists(PLANTED), "the planted program is not built here")
    def test_one_per_cent_hidden_in_a_kernel_is_seen(self):
        plan = millpond_json("plan", "cnn_224")["planned_bytes"]
        honest, said = judged(PLANTED, "cnn_224", "--synthetic", "--epochs", 2)
        self.assertLess(unexplained_growth(honest, said), MIB)
        hiding, said = judged(PLANTED, "cnn_224", "--synthetic", "--epochs", 2, MILLPOND_PLANT=str(plan // 100))
        self.assertGreater(unexplained_growth(hiding, said), MIB, "the check does not see what it is there to see")

    def test_what_the_program_says_about_its_peak_is_what_the_judge_saw(self):
        seen, said = judged(PROGRAM, "mlp_784", "--synthetic", "--epochs", 2)
        self.assertLess(abs(seen["peak"]["rss"] - said["rss_peak"]), 0.5 * MIB)


@unittest.skipIf(SANITIZED, "a sanitizer takes memory of its own, so resident memory says nothing about ours")
class FromInside(unittest.TestCase):
    def test_resident_memory_is_flat_to_the_page_over_ten_thousand_steps(self):
        for name, epochs in (("mlp_small", 33), ("tiny", 6)):
            with self.subTest(name):
                run = millpond_json("train", name, "--synthetic", "--epochs", epochs)
                self.assertGreaterEqual(run["steps"], 10000)
                self.assertEqual(len(set(run["rss_per_epoch"][1:])), 1, run["rss_per_epoch"])

    def test_what_is_touched_is_at_least_98_per_cent_of_the_plan_and_never_more(self):
        # On one thread: where a core is busy with something else, a second thread may never take part, nor touch its own scratch.
        for name, threads in [(name, 1) for name in FIRST_FIVE] + [("cnn_224", 2)]:
            with self.subTest(name, threads=threads):
                run = millpond_json("train", name, "--synthetic", "--epochs", 2, "--threads", threads)
                self.assertLessEqual(run["touched_bytes"], run["planned_bytes"])
                self.assertGreaterEqual(run["touched_bytes"], 0.98 * run["planned_bytes"])

    def test_a_step_allocates_nothing(self):
        for name in FIRST_FIVE:
            with self.subTest(name):
                run = millpond_json("train", name, "--synthetic", "--count-allocations")
                self.assertEqual(run["allocations_per_step"], 0)
                self.assertEqual(run["library_churn_per_step"], 0)

    def test_a_step_allocates_nothing_with_the_line_of_each_epoch_printed(self):
        for name in ("tiny", "mlp_small"):
            with self.subTest(name):
                text, _ = millpond("train", name, "--synthetic", "--count-allocations")
                self.assertIn("\n0 allocations a step after the first epoch", text)
                self.assertIn("  memory ", text)

    def test_a_step_allocates_nothing_with_the_line_that_moves_on_a_terminal(self):
        for name, epochs in (("tiny", 6), ("mlp_small", 8)):
            for columns in (None, 60, 200):  # a terminal that does not tell its width, one that cuts the line, one that does not
                with self.subTest(name, columns=columns):
                    text = in_terminal("train", name, "--synthetic", "--epochs", epochs, "--count-allocations", columns=columns)
                    for epoch in range(1, epochs + 1):
                        self.assertGreaterEqual(text.count(f"\rEpoch {epoch}/{epochs} "), 2, "the line moved, and then stood\n" + text)
                    self.assertIn("\n0 allocations a step after the first epoch", text)

    @unittest.skipIf(CHECKS, "a build with checks is larger")
    def test_resident_memory_of_a_small_training_is_explained_to_98_per_cent(self):
        self.assertGreaterEqual(millpond_json("train", "mlp_small", "--synthetic")["explained_share"], 0.98)

    def test_almost_all_that_is_added_during_training_has_a_name(self):
        run = millpond_json("train", "cnn_224", "--synthetic", "--epochs", 2)
        self.assertGreater(run["explained_growth_share"], 0.98)
        self.assertGreater(run["explained_share"], 0.95)

    @unittest.skipIf(CHECKS, "a build with checks is larger")
    def test_a_small_training_process_stays_under_26_mebibytes(self):
        self.assertLess(millpond_json("train", "mlp_small", "--synthetic")["rss_peak"], 26 * MIB)


if __name__ == "__main__":
    unittest.main()
