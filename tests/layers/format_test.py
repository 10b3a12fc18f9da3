"""Every C++ file is as clang-format writes it, at the version that is pinned for all."""
import os
import subprocess
import sys
import unittest

ROOT = os.environ["MILLPOND_SOURCE_DIR"]
SCRIPT = os.path.join(ROOT, "scripts", "format.sh")


class Format(unittest.TestCase):
    def test_no_file_would_change(self):
        environment = dict(os.environ, MILLPOND_PEERS=sys.prefix)
        done = subprocess.run([SCRIPT, "--check"], env=environment, capture_output=True, text=True)
        places = [line for line in done.stderr.splitlines() if ": error: " in line]
        self.assertEqual(done.returncode, 0, "\n".join(places[:20] or [done.stderr]) + "\n`make format` mends %d places" % len(places))


if __name__ == "__main__":
    unittest.main()
