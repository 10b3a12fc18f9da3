"""A watched program is as without us: it lives, says, leaves and ends the same, whatever it does to its process and however little there is left on the machine."""
import os
import signal
import subprocess
import sys
import time
import unittest

from harm import FORKS, MILLPOND, PYTHON, Harm, children_of, proc, pythons
from program import SANITIZED

class Programs(Harm):
    # Children -------------------------------------------------------------------------------------------------------

    def test_forked_children_live_when_they_are_not_followed(self):
        self.write("program.py", FORKS % 12)
        done, _ = self.watch(PYTHON, "program.py", options=["--no-follow-fork"])
        self.assertIn("failed 0\n", done.stdout)

    def test_forked_children_live_after_the_watcher_has_gone(self):
        self.write("program.py", FORKS % 40)
        with open(self.path("out.txt"), "w") as out:
            done = subprocess.run([MILLPOND, "watch", "--quiet", "--for", "1", "--", PYTHON, "program.py"], cwd=self.folder, stdout=out, stderr=subprocess.PIPE, timeout=60)
        self.wait_for(lambda: "failed" in self.read("out.txt"))
        self.assertIn("failed 0\n", self.read("out.txt"), done.stderr)

    def test_forked_children_live_in_a_background_program_whose_launcher_has_ended(self):
        self.write("program.py", FORKS % 40)
        self.write("launch.sh", "%s program.py > out.txt 2> err.txt &\nsleep 1\n" % PYTHON)
        self.watch("sh", "launch.sh")
        self.wait_for(lambda: "failed" in self.read("out.txt"))
        self.assertIn("failed 0\n", self.read("out.txt"))
        self.assertEqual(self.read("err.txt"), "")

    # gc ---------------------------------------------------------------------------------------------------------------

    def test_gc_stays_off_where_the_program_turned_it_off(self):
        self.write("program.py", """\
            import gc, time, weakref
            gc.disable()
            class Node: pass
            references, kept = [], []
            for epoch in range(24):
                node = Node()
                node.itself = node
                references.append(weakref.ref(node))
                del node
                kept.append(bytes(2_000_000))
                print("epoch", epoch, flush=True)
                time.sleep(0.06)
            print("alive", sum(reference() is not None for reference in references))
            """)
        done, found = self.watch(PYTHON, "program.py")
        self.assertIn("alive 24\n", done.stdout)

    def test_what_was_frozen_before_us_stays_frozen_and_nothing_else_is(self):
        # Of the objects that a .pth file has made and frozen; those of the interpreter's own come and go.
        self.write("program.py", """\
            import gc, sys
            known = {id(item) for item in gc.get_objects()}  # of those that are not frozen
            marked = getattr(sys, "marked", [])
            print(len(marked), sum(id(item) not in known for item in marked), gc.isenabled(), gc.get_threshold(), None if marked else gc.get_freeze_count())
            """)
        for version, python in pythons().items():
            site = os.path.join(self.folder, "lib", "python" + version, "site-packages")
            os.makedirs(site)
            environment = dict(os.environ, PYTHONUSERBASE=self.folder)
            for frozen in (0, 1000):
                if frozen:
                    with open(os.path.join(site, "early.pth"), "w") as file:
                        file.write("import gc, sys; sys.marked = [[] for _ in range(%d)]; gc.freeze()\n" % frozen)
                bare = self.run_bare(python, "program.py", env=environment)
                self.assertEqual(bare.stdout.split()[:3], [str(frozen), str(frozen), "True"], (version, bare.stderr))
                done, _ = self.watch(python, "program.py", env=environment)
                self.assertEqual(done.stdout, bare.stdout, version)

    def test_circles_that_pile_up_are_told_without_collecting_them(self):
        self.write("program.py", """\
            import gc, time
            gc.disable()
            class Node: pass
            for epoch in range(40):
                node = Node()
                node.itself = node
                node.data = b"x" * 4_000_000
                time.sleep(0.06)
                print("epoch", epoch, flush=True)
            print(gc.collect() > 0)
            """)
        bare = self.run_bare(PYTHON, "program.py")
        done, found = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, bare.stdout)
        self.assertEqual((found["verdict"], found["findings"][0]["cause"]), ("leak", "C10"), found["sentence"])

    # Signals and surroundings -------------------------------------------------------------------------------------------

    COUNTS = """\
        import signal, sys, time
        got = []
        signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))
        print("ready", flush=True)
        end = time.monotonic() + 60
        while not got and time.monotonic() < end: time.sleep(0.02)
        time.sleep(0.5)  # a second one would come by now
        print("got", len(got), flush=True)
        """

    def test_a_signal_to_the_group_comes_once_and_one_to_the_watcher_too(self):
        self.write("program.py", self.COUNTS)
        for send, expected in ((os.killpg, "got 1\n"), (os.kill, "got 1\n")):
            process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                       start_new_session=True)
            self.assertEqual(process.stdout.readline(), "ready\n")
            send(process.pid, signal.SIGTERM)
            self.assertEqual(process.stdout.read(), expected, send.__name__)
            self.assertEqual(process.wait(), 0)
            process.stdout.close()

    def test_a_program_that_a_signal_ends_makes_the_watcher_end_by_it_too(self):
        self.write("program.py", """\
            import os, signal, sys
            kept = [bytes(40000) for _ in range(100)]
            print("up", flush=True)
            signal.signal(int(sys.argv[1]), signal.SIG_DFL) if int(sys.argv[1]) != signal.SIGKILL else None
            os.kill(os.getpid(), int(sys.argv[1]))
            """)
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGABRT, signal.SIGRTMIN + 5):
            bare = self.run_bare(PYTHON, "program.py", int(number))
            done, found = self.watch(PYTHON, "program.py", int(number))
            self.assertEqual((bare.returncode, done.returncode), (-number, -number), done.stderr)
            self.assertEqual((found["program"]["signal"], found["program"]["exit_code"]), (number, 128 + number))
            self.assertIn("millpond: ", done.stderr)
        shell = self.run_bare("sh", "-c", "%s watch --quiet -- %s program.py 9; echo $?" % (MILLPOND, PYTHON))
        self.assertEqual(shell.stdout, "up\n137\n")
        check = self.run_bare(MILLPOND, "check", "--quiet", "--", PYTHON, "program.py", "9")
        self.assertEqual(check.returncode, 3, check.stderr)

    @unittest.skipUnless(open("/proc/sys/kernel/core_pattern").read().strip().isalnum(), "cores are not written into the folder here")
    def test_the_core_is_the_programs_and_the_watcher_leaves_none(self):
        self.write("program.py", "import os, signal\nos.chdir('inner')\nos.kill(os.getpid(), signal.SIGABRT)\n")
        os.mkdir(self.path("inner"))
        done = self.run_bare("sh", "-c", "ulimit -c unlimited; exec \"$@\"", "sh", MILLPOND, "watch", "--quiet", "-o", "x.pond", "--", PYTHON, "program.py")
        self.assertEqual(done.returncode, -signal.SIGABRT, done.stderr)
        self.assertEqual((len(os.listdir(self.path("inner"))), [name for name in os.listdir(self.folder) if name.startswith("core")]), (1, []))

    def test_stop_and_go_reach_the_program(self):
        self.write("program.py", "import os, time\nprint('ready', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.02)\nprint('done', flush=True)\n")
        # a group of its own, but not a session: the system stops no group that has no parent outside of it
        process = subprocess.Popen([MILLPOND, "watch", "--quiet", "--", PYTHON, "program.py"], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   preexec_fn=os.setpgrp)
        process.stdout.readline()
        child = children_of(process.pid)[0]
        state = lambda pid: proc(pid, "stat").rpartition(")")[2].split()[0]
        os.kill(process.pid, signal.SIGTSTP)
        self.wait_for(lambda: state(child) == "T" and state(process.pid) == "T")
        self.write("go", "")
        os.kill(process.pid, signal.SIGCONT)
        self.assertEqual(process.stdout.read(), "done\n")
        self.assertEqual(process.wait(), 0)
        process.stdout.close()

    def test_signals_masks_descriptors_and_environment_are_as_without_us(self):
        self.write("program.py", """\
            import os, signal, subprocess, sys
            status = [line for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt"))]
            # but that of libffi 3.5 and newer, which opens its own file in whoever loads it, as the agent does
            descriptors = [name for name in os.listdir("/proc/self/fd") if "libffi" not in os.path.realpath("/proc/self/fd/" + name)]
            print(status, os.umask(0o77), descriptors, open("program.py").fileno(), sorted(os.environ.items()), sys.path)
            try:
                import sitecustomize
                print(sitecustomize.__file__)
            except ImportError:
                print("none")
            print(type(print), type(sys.stdout.write), vars(sys.stdout), sys.excepthook is sys.__excepthook__)
            """)
        shell = "trap '' HUP PIPE; umask 027; export PYTHONPATH=$PWD/a:$PWD/b; exec \"$@\""
        bare = self.run_bare("sh", "-c", shell, "sh", PYTHON, "program.py")
        done, _ = self.watch(PYTHON, "program.py", before=["sh", "-c", shell, "sh"])
        self.assertEqual(done.stdout, bare.stdout, done.stderr)

    def test_a_standard_stream_that_is_closed_stays_closed_and_nothing_of_ours_takes_its_number(self):
        self.write("program.py", """\
            import os, sys
            told = [(fd, os.path.exists("/proc/self/fd/%d" % fd)) for fd in range(3)], sys.stdin is None, sys.stdout is None, sys.stderr is None
            try:
                os.write(2, b"to whatever has number 2\\n")
            except OSError:
                pass
            with open(sys.argv[1], "w") as out:
                print(told, out.fileno(), file=out)
            """)
        for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            shell = ["sh", "-c", 'exec "$@" ' + closing, "sh"]
            self.run_bare(*shell, PYTHON, "program.py", "bare.txt")
            done, found = self.watch(PYTHON, "program.py", "watched.txt", before=shell, options=("--force", "-o", "run.pond"))
            with self.subTest(closing):
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIsNotNone(found)
                self.assertTrue(self.read("bare.txt"))
                self.assertEqual(self.read("watched.txt"), self.read("bare.txt"))

    def test_a_child_that_is_given_a_copy_of_the_environment_is_watched_too(self):
        self.write("program.py", """\
            import os, subprocess, sys
            child = "import os, time; time.sleep(0.4); print('MILLPOND_WATCH' in os.environ, os.environ.get('EXTRA'), open('/proc/self/maps').read().count('millpond_probe') > 0)"
            for environment in (None, dict(os.environ, EXTRA="1"), {"PATH": os.environ["PATH"]}):
                subprocess.run([sys.executable, "-c", child], env=environment)
            """)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "False None True\nFalse 1 True\nFalse None True\n", done.stderr)

    def test_a_module_of_the_users_by_a_librarys_name_is_found(self):
        self.write("json.py", "WHO = 'mine'\n")
        self.write("program.py", "import json\nprint(json.WHO)\n")
        done, _ = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "mine\n", done.stderr)

    def test_a_timeout_by_alarm_is_not_lost_among_prints(self):
        self.write("program.py", """\
            import signal, sys
            class Stop(Exception): pass
            def stop(number, frame): raise Stop
            signal.signal(signal.SIGALRM, stop)
            stops = 0
            for turn in range(30):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.02)
                    for step in range(10 ** 9): print("step", step, "of", turn)
                except Stop:
                    stops += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            print(stops, file=sys.stderr)
            """)
        done, _ = self.watch(PYTHON, "program.py")
        self.assertIn("30\n", done.stderr[:10])

    def test_a_timeout_by_alarm_is_not_lost_among_prints_of_a_program_with_threads(self):
        # With other threads the signal may come at any moment of the agent's work, also while it reads the source for the first time.
        self.write("program.py", """\
            import os, signal, sys, threading, time
            class Stop(Exception): pass
            def stop(number, frame): raise Stop
            def main():
                signal.signal(signal.SIGALRM, stop)
                busy, stops, sink, real = True, 0, open(os.devnull, "w"), sys.stdout
                def allocates():
                    while busy: [bytes(3000) for _ in range(50)]
                others = [threading.Thread(target=allocates) for _ in range(2)]
                for thread in others: thread.start()
                for turn in range(5):
                    end = time.monotonic() + 5
                    try:
                        try:
                            sys.stdout = sink
                            signal.setitimer(signal.ITIMER_REAL, 0.013)
                            while time.monotonic() < end: print("step", stops, "of", turn)
                        finally:
                            sys.stdout = real
                    except Stop:
                        stops += 1
                busy = False
                for thread in others: thread.join()
                print(stops)
            main()
            """)
        for python in pythons().values():
            done, _ = self.watch(python, "program.py", env=dict(os.environ, MILLPOND_INTERVAL="3000"))
            self.assertEqual(done.stdout, "5\n", (python, done.stderr))


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
