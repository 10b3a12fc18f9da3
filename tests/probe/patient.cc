// A program of known allocations: patient SCENARIO. It says "ready", waits for a byte, does what the scenario is, says
// "done", waits for another byte and ends. Between the two it allocates exactly what the test expects, so it prints
// with write(2) and nothing else. Its last line is the change of its own counters as it sees them itself.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "probe/count.h"

namespace {
void* volatile keep;  // a block stored here cannot be optimised away

void say(const char* text) { (void)!write(1, text, strlen(text)); }
void wait_for_byte() {
  char c;
  (void)!read(0, &c, 1);
}
void block(void* p) {
  keep = p;
  free(keep);
}

void malloc_free() {
  for (int i = 0; i < 1000; ++i) block(malloc(100));
}
void every_kind() {
  block(calloc(10, 30));
  block(realloc(nullptr, 40));
  keep = malloc(50);
  keep = realloc(keep, 5000);
  keep = realloc(keep, 0);  // frees
  void* p = nullptr;
  (void)!posix_memalign(&p, 64, 256);
  block(p);
  block(aligned_alloc(128, 512));
  block(memalign(64, 1000));
  block(valloc(2000));
  block(pvalloc(1));
  free(nullptr);
}
void mappings() {
  void* p = mmap(nullptr, 10000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  p = mremap(p, 12288, 40960, MREMAP_MAYMOVE);
  p = mremap(p, 40960, 8192, 0);
  munmap(p, 8192);
  void* q = mmap64(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(q, 4096);
  keep = sbrk(8192);
  keep = sbrk(-8192);
  keep = sbrk(0);
  (void)!brk(keep);
}
void failures() {
  volatile size_t huge = SIZE_MAX / 4;  // volatile: the compiler warns about what it can see
  keep = malloc(huge);
  keep = calloc(huge, 8);
  keep = mmap(nullptr, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  keep = malloc(10);
  void* p = realloc(keep, huge);
  if (!p) free(keep);
  munmap(reinterpret_cast<void*>(1), 4096);
}
void libraries() {
  block(strdup("the C library calls malloc by name"));  // 35 bytes
  {
    std::string s(200, 'x');
    keep = s.data();
  }  // libstdc++: 201 bytes
  block(reallocarray(nullptr, 3, 7));  // inside: realloc of 21 bytes
}
void* thread_body(void*) {
  for (int i = 0; i < 20000; ++i) {
    void* p = malloc(64);
    asm volatile("" : : "r"(p) : "memory");
    free(p);
  }
  return nullptr;
}
pthread_t threads[4];
void run_threads() {
  for (pthread_t& t : threads) pthread_create(&t, nullptr, thread_body, nullptr);
  for (pthread_t& t : threads) pthread_join(t, nullptr);
}
void forked_child() {
  const pid_t child = fork();
  if (child == 0) {
    malloc_free();
    const CountPage* page = count_page();
    _exit(page->pid == getpid() && page->of[kCount_malloc].calls == 1000 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) say("the child's own counters are wrong\n");
}
char* self;
void started_child() {
  const pid_t child = vfork();
  if (child == 0) {
    execl(self, self, "quiet_malloc", nullptr);
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

// Takes `mib` MiB in steps and holds them: for memory_judge.
void grow(int mib, int steps) {
  for (int i = 0; i < steps; ++i) {
    const size_t size = (size_t(mib) << 20) / size_t(steps);
    void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, size);
    usleep(20000);
  }
}
}  // namespace

int main(int argc, char** argv) {
  const char* scenario = argc > 1 ? argv[1] : "";
  self = argv[0];
  if (!strcmp(scenario, "quiet_malloc")) return malloc_free(), 0;
  if (!strcmp(scenario, "counted")) return count_page() ? 0 : 3;
  if (!strcmp(scenario, "grow")) {
    say("starting\nEpoch 1/1\n");
    usleep(50000);
    grow(argc > 2 ? atoi(argv[2]) : 8, 8);
    say("finished\n");
    if (argc > 3) {  // and more, after the end of the training
      usleep(50000);
      grow(16, 1);
    }
    return 5;
  }
  if (!strcmp(scenario, "spike")) {  // a peak that is gone long before the end, shorter than a sample may see
    say("Epoch 1/1\n");
    usleep(50000);
    void* p = mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, 64 << 20);
    munmap(p, 64 << 20);
    return 0;
  }
  if (!strcmp(scenario, "crash")) {
    say("Epoch 1/1\n");
    usleep(50000);
    grow(4, 2);
    abort();
  }
  if (!strcmp(scenario, "exec")) {
    malloc_free();
    execl(self, self, "malloc_free", nullptr);
    return 1;
  }
  const struct {
    const char* name;
    void (*run)();
  } scenarios[] = {{"malloc_free", malloc_free},   {"every_kind", every_kind},      {"mappings", mappings},
                   {"failures", failures},         {"libraries", libraries},        {"threads", run_threads},
                   {"forked_child", forked_child}, {"started_child", started_child}};
  for (const auto& s : scenarios) {
    if (strcmp(s.name, scenario)) continue;
    const CountPage* page = count_page();
    if (!page) return 3;
    free(malloc(1));
    if (s.run == forked_child) s.run();  // once for whatever fork sets up at its first call
    const CountPage before = *page;
    say("ready\n");
    wait_for_byte();
    s.run();
    const CountPage after = *page;
    char line[200];
    snprintf(line, sizeof line, "done malloc %ld taken %ld given %ld\n",
             long(after.of[kCount_malloc].calls - before.of[kCount_malloc].calls),
             long(after.heap_taken.bytes - before.heap_taken.bytes),
             long(after.heap_given.bytes - before.heap_given.bytes));
    say(line);
    wait_for_byte();
    return 0;
  }
  return 2;
}
