// Exact counts of a program of known allocations, read from outside while it waits.
#include "probe/count.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {
std::string built(const char* path) {
  const char* folder = getenv("MILLPOND_BUILD_DIR");
  return std::string(folder ? folder : "build") + path;
}

struct Seen {
  CountPage before{}, after{};
  std::string said;  // by the patient, after "ready"
  int exit = -1;
  uint64_t calls(CountHook h) const { return after.of[h].calls - before.of[h].calls; }
  uint64_t bytes(CountHook h) const { return after.of[h].bytes - before.of[h].bytes; }
  uint64_t taken() const { return after.heap_taken.calls - before.heap_taken.calls; }
  uint64_t given() const { return after.heap_given.calls - before.heap_given.calls; }
  uint64_t taken_bytes() const { return after.heap_taken.bytes - before.heap_taken.bytes; }
  uint64_t given_bytes() const { return after.heap_given.bytes - before.heap_given.bytes; }
};

std::string read_line(int fd) {
  std::string s;
  for (char c; read(fd, &c, 1) == 1 && c != '\n';) s += c;
  return s;
}

Seen run(const char* scenario, bool preload = true) {
  Seen seen;
  const int shared = memfd_create("counts", MFD_CLOEXEC);
  REQUIRE(ftruncate(shared, kCountPageBytes) == 0);
  const auto* page = static_cast<const CountPage*>(mmap(nullptr, kCountPageBytes, PROT_READ, MAP_SHARED, shared, 0));
  const std::string name = "MILLPOND_COUNT=/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(shared);
  const std::string library = "LD_PRELOAD=" + built("/lib/millpond/libmillpond_count.so"),
                    program = built("/tests/count_patient");
  int in[2], out[2];
  REQUIRE(pipe2(in, O_CLOEXEC) == 0);
  REQUIRE(pipe2(out, O_CLOEXEC) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    const char* argv[] = {program.c_str(), scenario, nullptr};
    const char* env[] = {name.c_str(), preload ? library.c_str() : nullptr, nullptr};
    execve(program.c_str(), const_cast<char**>(argv), const_cast<char**>(env));
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  if (read_line(out[0]) == "ready") {
    seen.before = *page;
    (void)!write(in[1], "x", 1);
    seen.said = read_line(out[0]);
    seen.after = *page;
    (void)!write(in[1], "x", 1);
  }
  close(in[1]);
  close(out[0]);
  int status = 0;
  waitpid(child, &status, 0);
  seen.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  munmap(const_cast<CountPage*>(page), kCountPageBytes);
  close(shared);
  CHECK(seen.after.version == (preload && seen.exit == 0 ? uint64_t{kCountVersion} : 0));
  return seen;
}

size_t usable(size_t size) {
  void* p = malloc(size);
  const size_t n = malloc_usable_size(p);
  free(p);
  return n;
}
}  // namespace

TEST_CASE("count: a thousand blocks of a hundred bytes are a thousand calls, and inside and outside see the same") {
  const Seen s = run("malloc_free");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 1000);
  CHECK(s.bytes(kCount_malloc) == 100000);
  CHECK(s.calls(kCount_free) == 1000);
  CHECK(s.bytes(kCount_free) == 1000 * usable(100));
  CHECK(s.taken() == 1000);
  CHECK(s.given() == 1000);
  CHECK(s.taken_bytes() == 1000 * usable(100));
  CHECK(s.given_bytes() == 1000 * usable(100));
  CHECK(s.said == "done malloc 1000 taken " + std::to_string(1000 * usable(100)) + " given " +
                      std::to_string(1000 * usable(100)));
  CHECK(count_allocations(&s.after) - count_allocations(&s.before) == 1000);
}

TEST_CASE("count: each function of the malloc family has its own exact count") {
  const Seen s = run("every_kind");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 1);
  CHECK(s.calls(kCount_calloc) == 1);
  CHECK(s.bytes(kCount_calloc) == 300);
  CHECK(s.calls(kCount_realloc) == 3);
  CHECK(s.bytes(kCount_realloc) == 40 + 5000);
  CHECK(s.calls(kCount_posix_memalign) == 1);
  CHECK(s.bytes(kCount_posix_memalign) == 256);
  CHECK(s.calls(kCount_aligned_alloc) == 1);
  CHECK(s.bytes(kCount_aligned_alloc) == 512);
  CHECK(s.calls(kCount_memalign) == 1);
  CHECK(s.bytes(kCount_memalign) == 1000);
  CHECK(s.calls(kCount_valloc) == 1);
  CHECK(s.calls(kCount_pvalloc) == 1);
  CHECK(s.calls(kCount_free) == 8);  // seven blocks and a null
  CHECK(s.taken() == 9);
  CHECK(s.given() == 9);
  CHECK(s.taken_bytes() == s.given_bytes());
}

TEST_CASE("count: mappings are counted in whole pages, growing and shrinking too") {
  const Seen s = run("mappings");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_mmap) + s.calls(kCount_mmap64) == 2);
  CHECK(s.bytes(kCount_mmap) + s.bytes(kCount_mmap64) == 14096);
  CHECK(s.calls(kCount_mremap) == 2);
  CHECK(s.calls(kCount_munmap) == 2);
  CHECK(s.after.mapped.bytes - s.before.mapped.bytes == 12288 + (40960 - 12288) + 4096);
  CHECK(s.after.unmapped.bytes - s.before.unmapped.bytes == (40960 - 8192) + 8192 + 4096);
  CHECK(s.calls(kCount_sbrk) == 3);
  CHECK(s.bytes(kCount_sbrk) == 8192);
  CHECK(s.calls(kCount_brk) == 1);
  CHECK(s.taken() == 0);
}

TEST_CASE("count: a refused call is a call, but takes nothing") {
  const Seen s = run("failures");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 2);
  CHECK(s.calls(kCount_calloc) == 1);
  CHECK(s.bytes(kCount_calloc) == 0);
  CHECK(s.calls(kCount_realloc) == 1);
  CHECK(s.calls(kCount_mmap) == 1);
  CHECK(s.after.mapped.calls == s.before.mapped.calls);
  CHECK(s.calls(kCount_munmap) == 1);
  CHECK(s.after.unmapped.calls == s.before.unmapped.calls);
  CHECK(s.taken() == 1);
  CHECK(s.given() == 1);
}

TEST_CASE("count: calls made inside libraries are not missed") {
  const Seen s = run("libraries");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 2);
  CHECK(s.bytes(kCount_malloc) == 35 + 201);
  CHECK(s.calls(kCount_realloc) == 1);
  CHECK(s.bytes(kCount_realloc) == 21);
  CHECK(s.taken() == 3);
  CHECK(s.given() == 3);
}

TEST_CASE("count: four threads at once lose no call") {
  const Seen s = run("threads");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 4 * 20000);
  CHECK(s.bytes(kCount_malloc) == 4 * 20000 * 64);
  CHECK(s.given() >= 4 * 20000);
}

TEST_CASE("count: a forked child counts for itself, and its parent's counters do not move") {
  const Seen s = run("forked_child");
  REQUIRE(s.exit == 0);
  CHECK(s.said.starts_with("done malloc 0 "));
  CHECK(s.calls(kCount_malloc) == 0);
}

TEST_CASE("count: a started program counts for itself, too") {
  const Seen s = run("started_child");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 0);
  CHECK(s.after.pid == s.before.pid);
}

TEST_CASE("count: a program that replaces itself starts from zero") {
  const Seen s = run("exec");
  REQUIRE(s.exit == 0);
  CHECK(s.calls(kCount_malloc) == 1000);
  CHECK(s.before.of[kCount_malloc].calls < 1000);
}

TEST_CASE("count: without the library there is no page, which is not the same as zero") {
  CHECK(run("counted", false).exit == 3);
  CHECK(count_page() == nullptr);
}
