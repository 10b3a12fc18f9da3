"""What cannot be looked into (a sanitizer's run time, another allocator, a static program) runs as without us, and the report says what was not seen."""
import os
import sys
import unittest

from harm import CLANG, GCC, PYTHON, Harm
from program import SANITIZED


class Unseen(Harm):
    GROWS_C = """\
        #include <stdio.h>
        #include <stdlib.h>
        #include <string.h>
        #include <unistd.h>
        int main(void) {
          for (int i = 0; i < 40; ++i) {
            char* block = malloc(2000000);
            if (!block) return 3;
            memset(block, i + 1, 2000000);
            printf("round %d %d\\n", i, block[i]);
            usleep(40000);
          }
          fflush(stdout);
          _exit(5);
        }
        """

    def compiled(self, name, *options, compiler=GCC):
        self.write("grows.c", self.GROWS_C)
        done = self.run_bare(compiler, *options, "grows.c", "-o", name)
        if done.returncode:
            self.skipTest("cannot build with " + " ".join(options))
        return self.path(name)

    # A run time comes as a library, or is linked into the program itself and shown to its libraries, as clang does it unless told otherwise.
    WITH_RUN_TIME = [(GCC, "-fsanitize=address"), (GCC, "-fsanitize=thread"), (GCC, "-fsanitize=address", "-static-libasan", "-rdynamic"), (CLANG, "-fsanitize=address"),
                     (CLANG, "-fsanitize=address", "-shared-libasan"), (CLANG, "-fsanitize=memory"), (CLANG, "-fsanitize=thread")]

    def for_each_run_time(self, check):
        """Calls check(path of a program built so); those that this machine cannot build or run are named."""
        for compiler, *options in self.WITH_RUN_TIME:
            with self.subTest(compiler=os.path.basename(compiler or "clang"), options=options):
                if compiler is None:
                    self.skipTest("no clang")
                program = self.compiled("sanitized", *options, compiler=compiler)
                if self.run_bare(program).returncode != 5:
                    self.skipTest("a program built so does not run here")
                check(program)

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_program_under_a_sanitizer_runs_and_its_growth_is_unsure(self):
        def check(program):
            bare = self.run_bare(program)
            done, found = self.watch(program)
            self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
            self.assertIn("sanitizer", found["not_seen"])
            self.assertEqual(found["verdict"], "unsure", found["sentence"])
        self.for_each_run_time(check)

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_sanitized_child_runs_too_and_the_report_says_that_nothing_was_loaded_into_it(self):
        self.write("program.py", """\
            import os, subprocess
            quiet = {"stdout": subprocess.DEVNULL}
            print(subprocess.run(["./sanitized"], **quiet).returncode, subprocess.run(["./sanitized"], env=dict(os.environ), **quiet).returncode,
                  os.system("./sanitized > /dev/null") >> 8, subprocess.run(["./no such program"], shell=True, stderr=subprocess.DEVNULL, **quiet).returncode)
            """)
        def check(_):
            done, found = self.watch(PYTHON, "program.py")
            self.assertEqual(done.stdout, "5 5 5 127\n", done.stderr)
            self.assertNotIn("Sanitizer", done.stderr)
            self.assertIn("3 of its processes ran under a sanitizer", found["not_seen"])
        self.for_each_run_time(check)

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_script_whose_interpreter_is_sanitized_runs_as_program_and_as_child(self):
        self.compiled("sanitized", "-fsanitize=address")
        self.write("script", "#!%s\n" % self.path("sanitized"))
        os.chmod(self.path("script"), 0o755)
        done, found = self.watch(self.path("script"))
        self.assertEqual(done.returncode, 5, done.stderr)
        self.assertIn("sanitizer", found["not_seen"])
        self.write("program.py", "import subprocess\nprint(subprocess.run(['./script'], stdout=subprocess.DEVNULL).returncode)\n")
        done, found = self.watch(PYTHON, "program.py")
        self.assertEqual(done.stdout, "5\n", done.stderr)
        self.assertIn("1 of its processes ran under a sanitizer", found["not_seen"])

    def run_time(self, name="libasan.so"):
        """The path of gcc's run time."""
        path = os.path.realpath(self.run_bare(GCC, "-print-file-name=" + name).stdout.strip())
        if not os.path.isabs(path) or not os.path.exists(path):
            self.skipTest("gcc has no " + name)
        return path

    GROWS = """\
        import ctypes, os, sys, time
        kept = []
        for epoch in range(30):
            kept.append(b"x" * 2_000_000)
            print("epoch", epoch, flush=True)
            time.sleep(0.04)
        maps = open("/proc/self/maps").read()
        print(hasattr(ctypes.CDLL(None), "__asan_init"), "libmillpond_probe" in maps, os.environ.get("LD_PRELOAD"))
        sys.exit(6)
        """

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_sanitizer_that_is_preloaded_stays_first_and_what_was_not_seen_is_said(self):
        self.write("program.py", self.GROWS)
        library = self.run_time()
        os.symlink(library, self.path("not-by-name-libasan.so.1"))
        # By its path, by its name alone, and by another name: what it exports tells. It insists itself on these letters in its name.
        for preload in (library, os.path.basename(library), self.path("not-by-name-libasan.so.1") + " libm.so.6", "not-by-name-libasan.so.1"):
            with self.subTest(preload):
                environment = dict(os.environ, LD_PRELOAD=preload, LD_LIBRARY_PATH=self.folder + ":" + os.path.dirname(library), ASAN_OPTIONS="detect_leaks=0")
                bare = self.run_bare(PYTHON, "program.py", env=environment)
                self.assertEqual(bare.returncode, 6, bare.stderr)
                done, found = self.watch(PYTHON, "program.py", env=environment)
                self.assertEqual((done.returncode, done.stdout), (bare.returncode, bare.stdout), done.stderr)
                self.assertIn("LD_PRELOAD has the address sanitizer", found["not_seen"])
                self.assertEqual(found["verdict"], "unsure", found["sentence"])

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_child_with_a_sanitizer_preloaded_runs_and_is_counted(self):
        self.write("child.py", self.GROWS)
        library = self.run_time()
        os.symlink(library, self.path("not-by-name-libasan.so.1"))
        self.write("program.py", """\
            import os, subprocess, sys
            for preload in sys.argv[1:]:
                environment = dict(os.environ, LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0")
                print(subprocess.run([sys.executable, "child.py"], env=environment).returncode, flush=True)
                print(os.system("LD_PRELOAD='%s' ASAN_OPTIONS=detect_leaks=0 %s child.py" % (preload, sys.executable)) >> 8, flush=True)
            """)
        command = [PYTHON, "program.py", library, self.path("not-by-name-libasan.so.1") + ":libm.so.6"]
        bare = self.run_bare(*command)
        self.assertEqual(bare.stdout.count("\n6\n"), 4, bare.stderr)
        done, found = self.watch(*command)
        self.assertEqual(done.stdout, bare.stdout, done.stderr)
        self.assertIn("4 of its processes ran under a sanitizer", found["not_seen"])

    @unittest.skipUnless(GCC, "no compiler")
    def test_another_allocator_that_is_preloaded_stays_and_what_it_hides_is_said(self):
        self.write("other.c", """\
            #include <stddef.h>
            void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void*, size_t);
            void __libc_free(void*);
            static long calls;
            void* malloc(size_t n) { ++calls; return __libc_malloc(n); }
            void* calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
            void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
            void free(void* p) { __libc_free(p); }
            void* _Znwm(size_t n) { return __libc_malloc(n); }
            long other_calls(void) { return calls; }
            """)
        if self.run_bare(GCC, "-shared", "-fPIC", "-O1", "-fno-builtin", "other.c", "-o", "libother.so").returncode:
            self.skipTest("cannot build")
        self.write("program.py", "import ctypes, os\nprint(ctypes.CDLL(None).other_calls() > 100, os.environ['LD_PRELOAD'])\n")
        environment = dict(os.environ, LD_PRELOAD=self.path("libother.so"))
        bare = self.run_bare(PYTHON, "program.py", env=environment)
        done, found = self.watch(PYTHON, "program.py", env=environment)
        self.assertEqual(done.stdout, bare.stdout, done.stderr)
        self.assertIn("another allocator", found["not_seen"])

    @unittest.skipUnless(GCC, "no compiler")
    def test_a_static_program_that_grows_is_unsure_and_never_flat(self):
        done, found = self.watch(self.compiled("static", "-static"))
        self.assertEqual(done.returncode, 5)
        self.assertEqual(found["verdict"], "unsure", found["sentence"])
        self.assertIn("linked statically", found["not_seen"])
        self.assertNotIn("does not grow", found["sentence"])


if __name__ == "__main__":
    if SANITIZED:
        print("not under a sanitizer: LD_PRELOAD and its run time exclude each other")
        sys.exit(0)
    unittest.main()
