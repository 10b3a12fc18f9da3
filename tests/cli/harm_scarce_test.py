"""A watched program is as without us however little there is left: no descriptor, no shared memory, no disk, no place for the run file; and the report says what was not seen."""
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import unittest

from harm import FORKS, MILLPOND, PACKAGE, PYTHON, ROOT, Harm, can_mount, children_of
from program import SANITIZED


class Scarce(Harm):
    # Descriptors ------------------------------------------------------------------------------------------------------

    NO_DESCRIPTOR = """\
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
held = []
try:
    while True: held.append(os.open("/dev/null", os.O_RDONLY))
except OSError: pass
"""

    def test_forked_children_live_without_a_descriptor_left_and_the_report_says_why_they_were_not_seen(self):
        self.write("program.py", (FORKS % 12).replace("kept, failed", self.NO_DESCRIPTOR + "kept, failed", 1))
        done, found = self.watch(PYTHON, "program.py")
        self.assertIn("failed 0\n", done.stdout, done.stderr)
        self.assertIn("12 of its processes had no descriptor left", found["not_seen"])
        self.assertNotIn("shared memory", found["not_seen"])

    def test_a_program_that_watches_itself_is_told_of_children_without_a_descriptor_too(self):
        forks = (FORKS % 6).replace("kept, failed", self.NO_DESCRIPTOR + "kept, failed", 1).split("\n", 1)[1]
        text = "import os, sys, time, millpond\nwith millpond.watch(output='x.pond') as w:\n"
        text += "".join("    " + line + "\n" for line in forks.splitlines()) + "    for fd in held: os.close(fd)\nprint(w.report().remarks)\n"
        self.write("program.py", text)
        done = self.run_bare(PYTHON, "program.py", env=dict(os.environ, MILLPOND=MILLPOND, PYTHONPATH=PACKAGE))
        self.assertIn("failed 0\n", done.stdout, done.stderr)
        self.assertIn("6 of its processes had no descriptor left", done.stdout)

    # The run file -----------------------------------------------------------------------------------------------------

    def test_a_run_file_that_is_refused_starts_nothing(self):
        self.write("program.py", "open('ran', 'w')\n")
        self.write("there.pond", "")
        done = self.run_bare(MILLPOND, "watch", "-o", "there.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("there.pond", done.stderr)
        done = self.run_bare(MILLPOND, "watch", "-o", "no/such/folder/x.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, 2, done.stderr)
        time.sleep(0.3)
        self.assertFalse(os.path.exists(self.path("ran")))

    def test_a_program_that_cannot_be_started_leaves_no_run_file(self):
        self.write("program", "no first line\n")
        os.chmod(self.path("program"), 0o755)
        done = self.run_bare(MILLPOND, "watch", "-o", "x.pond", "--", "./program")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["program"])

    def test_a_folder_that_cannot_be_written_starts_nothing(self):
        self.write("program.py", "open('%s', 'w')\n" % self.path("ran"))
        os.mkdir(self.path("closed"))
        before = []
        if can_mount():
            before = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o ro tmpfs closed && exec \"$@\"", "sh"]
        elif ROOT:
            self.skipTest("root writes everywhere, and may not mount")
        else:
            os.chmod(self.path("closed"), 0o555)
        for options in ("-o closed/x.pond --", "--"):  # a name that is given, and one that is found in the folder
            into = "cd closed && exec" if options == "--" else "exec"
            done = self.run_bare(*before, "sh", "-c", "%s %s watch %s %s %s" % (into, MILLPOND, options, PYTHON, self.path("program.py")))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(".pond", done.stderr)
        time.sleep(0.3)
        self.assertFalse(os.path.exists(self.path("ran")))

    FILLS = """\
        import sys, time
        kept = []
        def deep(n, epoch):
            return deep(n - 1, epoch) if n else [bytes(70000) for _ in range(5)]
        for epoch in range(60):
            for depth in range(40):
                kept.append(deep(depth, epoch))
            print("epoch", epoch)
            time.sleep(0.02)
            if epoch == 5:
                with open(SMALL, "wb", buffering=0) as file:
                    try:
                        while True: file.write(bytes(1000))
                    except OSError: pass
        """
    SMALL = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=4m tmpfs small && exec \"$@\"", "sh"]

    def fills(self, more):
        os.mkdir(self.path("small"))
        self.write("program.py", "SMALL = %r\n%s%s" % (self.path("small/filler"), textwrap.dedent(self.FILLS), more))

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_full_disk_ends_the_recording_and_not_the_program_and_the_answer_says_so(self):
        self.fills("sys.exit(7)\n")
        done, found = self.watch(PYTHON, "program.py", options=["-o", "small/x.pond"], before=self.SMALL)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(done.stdout.count("epoch"), 60)
        self.assertIn("small/x.pond could not be written any further", done.stderr)
        self.assertIn("the run file could not be written any further, and ends before the program did", found["not_seen"])
        self.assertNotIn(found["verdict"], ("flat", "reserve"))

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_check_on_a_full_disk_does_not_pass(self):
        self.fills("")
        done = self.run_bare(*self.SMALL, MILLPOND, "check", "--quiet", "--json", "result.json", "-o", "small/x.pond", "--", PYTHON, "program.py")
        self.assertIn(done.returncode, (1, 4), done.stderr)
        self.assertIn("could not be written any further", done.stderr)
        with open(self.path("result.json")) as file:
            self.assertIn("could not be written any further", json.load(file)["not_seen"])

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_bisection_on_a_full_disk_says_why_a_run_has_no_answer(self):
        self.fills("")
        done = self.run_bare(*self.SMALL, MILLPOND, "bisect", "--in-place", "--only", "arenas", "--seconds", "20", "--json", "result.json", "-o", "small", "--", PYTHON, "program.py")
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn("could not be written any further", done.stderr)
        with open(self.path("result.json")) as file:
            self.assertIn("could not be written any further", json.load(file)["base"]["no_answer"])

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_a_program_that_watches_itself_on_a_full_disk_is_told(self):
        os.mkdir(self.path("small"))
        inner = "".join("    " + line + "\n" for line in textwrap.dedent(self.FILLS).splitlines())
        self.write("program.py", "import millpond\nSMALL = %r\nwith millpond.watch(output='small/x.pond') as w:\n%sprint(w._session.remarks)\n" % (self.path("small/filler"), inner))
        done = self.run_bare(*self.SMALL, PYTHON, "program.py", env=dict(os.environ, MILLPOND=MILLPOND, PYTHONPATH=PACKAGE))
        self.assertIn("the run file could not be written any further", done.stdout, done.stderr)

    # Shared memory ----------------------------------------------------------------------------------------------------

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_forked_children_live_and_the_report_says_so_when_shared_memory_is_full(self):
        self.write("program.py", FORKS % 12)
        fill = "mount -t tmpfs -o size=8m tmpfs /dev/shm && head -c %d /dev/zero > /dev/shm/full; exec \"$@\""
        for left, seen in ((0, False), (300000, False), (4000000, True)):
            done, found = self.watch(PYTHON, "program.py", before=["unshare", "-m", "sh", "-c", fill % ((8 << 20) - left), "sh"])
            self.assertIn("failed 0\n", done.stdout, done.stderr)
            if not seen:
                self.assertIn("found no room in shared memory", found["not_seen"])
                self.assertNotIn("does not grow", found["sentence"])

    def most_held(self, process, place="/dev/shm"):
        """The most that the watcher's folder held while it ran, the most processes in it at once, and what it held when the program was last seen alone."""
        most, files, last = 0, 0, 0
        while process.poll() is None:
            held = count = 0
            try:
                for name in os.listdir(place):
                    if name.startswith("millpond-%d-" % process.pid):
                        for entry in os.scandir(os.path.join(place, name)):
                            held += entry.stat().st_blocks * 512
                            count += entry.name.endswith(".probe")
            except OSError:
                pass  # a file, or the program, that has just gone
            most, files = max(most, held), max(files, count)
            last = held if count == 1 else last
            time.sleep(0.01)
        return most, files, last

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_what_ended_children_left_in_shared_memory_goes_at_once(self):
        self.write("program.py", """\
            import subprocess, sys
            for n in range(24):
                subprocess.run([sys.executable, "-c", "x = [bytes(30000) for _ in range(800)]"])
            print("done")
            """)
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        most, files, _ = self.most_held(process)
        self.assertGreater(files, 0)
        self.assertLess(files, 12)
        self.assertLess(most, 8 << 20)

    # Thousands of places that allocate: alone it would take several MiB of shared memory.
    PLACES = """\
        import sys
        names = {}
        exec("".join(f"def place_{i}(n):\\n    return bytearray(n)\\n" for i in range(6000)), names)
        kept = [names[f"place_{i}"](70000) for i in range(6000)]
        print("up", flush=True)
        sys.stdin.read()
        """
    ELEVEN = """\
        import subprocess, sys, time
        children = [subprocess.Popen([sys.executable, "child.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(11)]
        for child in children: child.stdout.readline()
        time.sleep(1)
        for child in children: child.communicate()
        time.sleep(2)
        print(sum(child.returncode for child in children))
        """

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_many_processes_at_once_take_8_mib_for_eight_and_512_kib_for_each_more_and_give_it_back(self):
        self.write("child.py", self.PLACES)
        self.write("program.py", self.ELEVEN)
        # As many samples as on a quiet machine, whatever they cost here: otherwise they are taken less often, and want less room.
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=dict(os.environ, MILLPOND_INTERVAL="65536"))
        most, files, last = self.most_held(process)
        self.assertEqual(process.stdout.read(), "0\n")
        process.stdout.close()
        self.assertEqual(files, 12)
        self.assertLessEqual(most, (8 << 20) + 4 * (512 << 10))
        self.assertGreater(most, 6 << 20, "they wanted more than they were promised")
        self.assertLess(last, 2 << 20, "only the parent is left")

    @unittest.skipUnless(can_mount(), "needs to mount")
    def test_never_more_than_a_quarter_of_what_is_free_is_taken_and_the_report_says_who_was_not_seen(self):
        self.write("child.py", self.PLACES)
        self.write("program.py", self.ELEVEN)
        mount = "mount -t tmpfs -o size=8m tmpfs /dev/shm && exec \"$@\""
        command = ["unshare", "-m", "sh", "-c", mount, "sh", MILLPOND, "watch", "--quiet", "--json", "result.json", "--", PYTHON, "program.py"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        most, files, _ = self.most_held(process, "/proc/%d/root/dev/shm" % process.pid)
        self.assertEqual(process.stdout.read(), "0\n")
        process.stdout.close()
        self.assertGreater(files, 0)
        self.assertLessEqual(most, 2 << 20)
        with open(self.path("result.json")) as file:
            self.assertRegex(json.load(file)["not_seen"], r"\d+ of its processes found no room in shared memory")

    @unittest.skipUnless(os.access("/dev/shm", os.W_OK), "no shared memory")
    def test_what_a_killed_watcher_left_goes_at_the_next_start_and_what_a_living_one_has_stays(self):
        self.write("program.py", "import time\nprint('up', flush=True)\ntime.sleep(60)\n")
        watchers = [subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
                    for _ in range(2)]
        programs = []
        try:
            for watcher in watchers:
                watcher.stdout.readline()
                programs += children_of(watcher.pid)
            folders = [[name for name in os.listdir("/dev/shm") if name.startswith("millpond-%d-" % watcher.pid)] for watcher in watchers]
            self.assertEqual([len(names) for names in folders], [1, 1])
            watchers[0].kill()
            watchers[0].wait()
            self.assertTrue(os.path.exists(os.path.join("/dev/shm", folders[0][0])))
            self.watch("true")
            self.assertFalse(os.path.exists(os.path.join("/dev/shm", folders[0][0])))
            self.assertTrue(os.path.exists(os.path.join("/dev/shm", folders[1][0])))
        finally:
            for watcher in watchers:
                watcher.kill()
                watcher.wait()
                watcher.stdout.close()
            for pid in programs:
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
