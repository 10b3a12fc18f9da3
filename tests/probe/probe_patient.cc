// A program of known allocations for the probe: probe_patient SCENARIO [argument]. It does what the scenario is, says
// so in a line of its own numbers, waits for a byte and ends. Blocks of exact_from bytes and more are all recorded, so
// most scenarios use those and expect exact numbers.
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <new>

#include "probe/chance.h"
#include "probe_file.h"

extern char** environ;

namespace {

constexpr size_t kMiB = 1 << 20;
void* volatile keep;  // a block stored here cannot be optimised away

void say(const char* format, ...) {
  char line[512];
  va_list list;
  va_start(list, format);
  const int n = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  (void)!write(1, line, size_t(n));
}
void wait_for_byte() {
  char c;
  (void)!read(0, &c, 1);
}
// The last one: what this process was before exec has files too.
std::string own_file() {
  const char* folder = getenv("MILLPOND_WATCH");
  const std::string begin = std::string(folder ? folder : "/nowhere") + "/" + std::to_string(getpid());
  std::string name = begin + ".probe";
  for (int n = 1; access((begin + "." + std::to_string(n) + ".probe").c_str(), F_OK) == 0; ++n)
    name = begin + "." + std::to_string(n) + ".probe";
  return name;
}
template <class F>
F probe(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
}
void mark(const char* kind, const char* name, int64_t index, uint32_t flags) {
  probe<decltype(&millpond_probe_mark)>("millpond_probe_mark")(kind, name, index, flags);
}

// ---- estimates ----

struct Pattern {
  std::vector<uint32_t> sizes;
  double truth = 0, sigma = 0, blocks_sigma = 0;
};
Pattern pattern_of(const char* name, double interval) {
  Pattern p;
  uint64_t random = 7;
  double bytes = 0, variance = 0, blocks_variance = 0;
  const bool mixed = strcmp(name, "mixed") == 0;
  while (bytes < 6e6) {
    random = millpond::probe::mixed(random);
    // mixed: as many bytes in each power of two from 16 to 128 Ki, so blocks near T and far below it
    const uint32_t power = 4 + uint32_t(random % 13);
    const uint32_t size = mixed ? (1u << power) + uint32_t((random >> 20) % (1u << power)) : 100;
    if (mixed && random % (1u << power) % 64 > (1u << 20) / size) continue;
    p.sizes.push_back(size);
    const double p_hit = -expm1(-(double(size) + 1) / interval);
    bytes += size;
    variance += double(size) * size * (1 - p_hit) / p_hit;
    blocks_variance += (1 - p_hit) / p_hit;
  }
  p.truth = bytes;
  p.sigma = sqrt(variance);
  p.blocks_sigma = sqrt(blocks_variance);
  return p;
}

// A hundred rounds: each makes all blocks of the pattern, reads what the table says of them, and frees them. Each is a
// draw of its own, as a run with another seed would be.
void estimate(const char* name) {
  const double interval = atof(getenv("MILLPOND_INTERVAL"));
  const Pattern p = pattern_of(name, interval);
  std::vector<void*> blocks(p.sizes.size());
  const ProbeFile file(own_file());
  int inside = 0;
  double mean = 0, mean_blocks = 0;
  for (int round = 0; round < 100; ++round) {
    const ProbeFile::Sum before = file.sum();
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = malloc(p.sizes[i]);
    const ProbeFile::Sum now = file.sum();
    const double bytes = double(now.bytes) - double(before.bytes);
    mean += bytes / 100;
    mean_blocks += (now.blocks - before.blocks) / 100;
    inside += fabs(bytes - p.truth) < 3 * p.sigma;
    for (void* block : blocks) free(block);
  }
  say("inside %d mean_off %.3f blocks_off %.3f sigma %.3f\n", inside, (mean - p.truth) / (p.sigma / 10),
      (mean_blocks - double(blocks.size())) / (p.blocks_sigma / 10), p.sigma / p.truth);
}

// ---- exact blocks ----

struct Seen {
  uint64_t entries, bytes;
};
// Of those made since the scenario began: the program's own start leaves some.
Seen since(const ProbeFile& file, const ProbeFile::Sum& before) {
  const ProbeFile::Sum now = file.sum();
  return {now.entries - before.entries, now.bytes - before.bytes};
}
#define SAY_SEEN(what)                                                                 \
  {                                                                                    \
    const Seen s = since(file, before);                                                \
    say(what " %lu %.2f; ", (unsigned long)s.entries, double(s.bytes) / double(kMiB)); \
  }

void reallocs(const char*) {
  const ProbeFile file(own_file());
  const ProbeFile::Sum before = file.sum();
  keep = malloc(kMiB);
  SAY_SEEN("malloc");
  keep = realloc(keep, 3 * kMiB);
  SAY_SEEN("grown");
  void* moved = realloc(keep, size_t{1} << 60);
  SAY_SEEN("failed");
  if (!moved) keep = realloc(keep, 2 * kMiB);
  SAY_SEEN("shrunk");
  keep = realloc(keep, 0);
  SAY_SEEN("ended");
  say("\n");
}

void kinds(const char*) {
  const ProbeFile file(own_file());
  const ProbeFile::Sum before = file.sum();
  void* p[7] = {malloc(kMiB),       calloc(2, kMiB), aligned_alloc(4096, kMiB),
                memalign(64, kMiB), valloc(kMiB),    pvalloc(kMiB)};
  if (posix_memalign(&p[6], 256, kMiB) != 0) abort();
  SAY_SEEN("alive");
  const auto free_sized = probe<void (*)(void*, size_t)>("free_sized");
  const auto free_aligned_sized = probe<void (*)(void*, size_t, size_t)>("free_aligned_sized");
  free_sized(p[0], kMiB);
  free_aligned_sized(p[2], 4096, kMiB);
  for (int i : {1, 3, 4, 5, 6}) free(p[i]);
  free(nullptr);
  SAY_SEEN("freed");
  say("\n");
}

// Each is seen once: also where operator new comes by malloc, and where an allocator has one of its own.
void news(const char*) {
  const ProbeFile file(own_file());
  const ProbeFile::Sum before = file.sum();
  constexpr std::align_val_t kAligned{4096};
  void* p[8] = {::operator new(kMiB),
                ::operator new[](kMiB),
                ::operator new(kMiB, std::nothrow),
                ::operator new[](kMiB, std::nothrow),
                ::operator new(kMiB, kAligned),
                ::operator new[](kMiB, kAligned),
                ::operator new(kMiB, kAligned, std::nothrow),
                ::operator new[](kMiB, kAligned, std::nothrow)};
  SAY_SEEN("alive");
  ::operator delete(p[0]);
  ::operator delete[](p[1], kMiB);
  ::operator delete(p[2], std::nothrow);
  ::operator delete[](p[3]);
  ::operator delete(p[4], kAligned);
  ::operator delete[](p[5], kMiB, kAligned);
  ::operator delete(p[6], kAligned, std::nothrow);
  ::operator delete[](p[7], kAligned);
  SAY_SEEN("freed");
  say("\n");
}

void throws(const char*) {
  bool thrown = false;
  try {
    keep = ::operator new(size_t{1} << 62);
  } catch (const std::bad_alloc&) {
    thrown = true;
  }
  say("thrown %d\n", int(thrown));
}

void mappings(const char*) {
  const ProbeFile file(own_file());
  const ProbeFile::Sum before = file.sum();
  const int rw = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
  auto* p = static_cast<char*>(mmap(nullptr, 8 * kMiB, rw, flags, -1, 0));
  SAY_SEEN("mapped");
  munmap(p, kMiB);  // its beginning
  SAY_SEEN("head");
  munmap(p + 7 * kMiB, kMiB);  // its end
  SAY_SEEN("tail");
  munmap(p + 3 * kMiB, kMiB);  // a hole: 1..3 and 4..7 stay
  SAY_SEEN("hole");
  mmap(p + 4 * kMiB, kMiB, rw, flags | MAP_FIXED, -1, 0);  // over its own beginning: 4..5 new, 5..7 old
  SAY_SEEN("over");
  p = static_cast<char*>(mremap(p + kMiB, 2 * kMiB, 16 * kMiB, MREMAP_MAYMOVE));
  SAY_SEEN("grown");
  mremap(p, 16 * kMiB, 4 * kMiB, 0);
  SAY_SEEN("shrunk");
  void* reserve = mmap(nullptr, 64 * kMiB, PROT_NONE, flags | MAP_NORESERVE, -1, 0);
  void* shared = mmap(nullptr, 4 * kMiB, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  const int memory = memfd_create("mapped", MFD_CLOEXEC), zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
  void* of_file = ftruncate(memory, 2 * kMiB) == 0 ? mmap(nullptr, 2 * kMiB, rw, MAP_SHARED, memory, 0) : nullptr;
  void* of_device = mmap(nullptr, 2 * kMiB, rw, MAP_PRIVATE, zero, 0);
  void* small = mmap(nullptr, 4096, rw, flags, -1, 0);
  SAY_SEEN("others");
  say("now %.2f; ", double(file.header().mapped_now) / double(kMiB));
  munmap(reserve, 64 * kMiB);
  munmap(shared, 4 * kMiB);
  munmap(of_file, 2 * kMiB);
  munmap(of_device, 2 * kMiB);
  munmap(small, 4096);
  munmap(p, 4 * kMiB);
  for (const Live& entry : file.live())
    if (entry.kind == kLiveMmap) munmap(reinterpret_cast<void*>(entry.address), entry.size);
  SAY_SEEN("ended");
  say("now %.2f\n", double(file.header().mapped_now) / double(kMiB));
}

// ---- many threads ----

constexpr int kThreads = 64, kShelf = 4096;
void* shelf[kShelf];  // a thread puts a block in any place, and frees what it finds there
void* wild(void* seed) {
  uint64_t random = uint64_t(seed);
  for (int i = 0; i < 5000; ++i) {
    random = millpond::probe::mixed(random);
    const size_t size = random % 7 == 0 ? 300000 + random % 100000 : 16 + (random >> 8) % 20000;
    void* block = random & 64 ? malloc(size) : calloc(1, size);
    if (random % 11 == 0) block = realloc(block, size / 2 + 1);
    free(__atomic_exchange_n(&shelf[(random >> 40) % kShelf], block, __ATOMIC_ACQ_REL));
  }
  return nullptr;
}
void threads(const char*) {
  const ProbeFile file(own_file());
  const ProbeFile::Sum before = file.sum();
  pthread_t all[kThreads];
  for (uintptr_t i = 0; i < kThreads; ++i) pthread_create(&all[i], nullptr, wild, reinterpret_cast<void*>(i + 1));
  for (pthread_t thread : all) pthread_join(thread, nullptr);
  const uint64_t samples = file.header().samples;
  for (void*& block : shelf) free(block), block = nullptr;
  // What is there now is of the C library, which keeps a vector of pointers for each stack it uses again.
  uint64_t largest = 0;
  for (const Live& entry : file.live())
    if (entry.size > largest && entry.born_ms > 0) largest = entry.size;
  const Seen s = since(file, before);
  say("samples %d left %ld largest %lu lost %lu\n", samples > 1000, long(s.entries), (unsigned long)largest,
      (unsigned long)file.header().lost_live);
}

// ---- processes ----

bool stop = false;
void* churn(void*) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    void* p = malloc(400000);
    keep = p;
    free(p);
    keep = nullptr;
  }
  return nullptr;
}
void* snap(void*) {
  for (int i = 0; !stop; ++i) {
    mark("timer", "snap", i, kMarkPeriod | kMarkSnapshot);
    usleep(200);
  }
  return nullptr;
}
// Children come while other threads allocate and take snapshots, and have a child of their own.
void forks(const char*) {
  void* mine = malloc(5 * kMiB);
  mark("timer", "first", 0, kMarkPeriod | kMarkSnapshot);
  pthread_t thread[3];
  for (pthread_t& t : thread) pthread_create(&t, nullptr, &t == thread ? snap : churn, nullptr);
  int good = 0;
  for (int i = 0; i < 100; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      void* p = malloc(2 * kMiB + size_t(i));
      keep = p;
      free(mine);  // the parent's; the child's file knows nothing of it
      mark("timer", "child", i, kMarkPeriod | kMarkSnapshot);
      if (i % 4 == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
          free(p);
          keep = malloc(kMiB);
          _exit(0);
        }
        int end = 1;
        waitpid(grandchild, &end, 0);
        if (end != 0) _exit(1);
      }
      exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    good += status == 0;
  }
  stop = true;
  for (pthread_t t : thread) pthread_join(t, nullptr);
  const ProbeFile file(own_file());
  const auto held = file.sum([&](const Live& l) { return l.address == uint64_t(mine); });
  say("good %d mine %lu\n", good, (unsigned long)held.entries);
}
void spawns(const char* program) {
  char nothing[] = "nothing";
  char* const argv[] = {const_cast<char*>(program), nothing, nullptr};
  pid_t child = 0;
  int status = 1;
  if (posix_spawn(&child, program, nullptr, nullptr, argv, environ) == 0) waitpid(child, &status, 0);
  say("spawned %d status %d\n", child, status);
}
void replaced(const char* program) {
  keep = malloc(kMiB);
  execl(program, program, "nothing", nullptr);
}
void libraries(const char*) {
  pthread_t thread;
  pthread_create(&thread, nullptr, churn, nullptr);
  int opened = 0;
  for (int i = 0; i < 200; ++i)
    for (const char* name : {"libsqlite3.so.0", "libfmt.so.9", "libstdc++.so.6"})
      if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
        ++opened;
        if (i % 20 == 0) mark("timer", name, i, kMarkSnapshot);
        dlclose(library);
      }
  stop = true;
  pthread_join(thread, nullptr);
  say("opened %d\n", opened > 100);
}
void killed(const char*) {
  for (int i = 0; i < 100; ++i) shelf[i] = malloc(kMiB + size_t(i));
  pthread_t thread[2];
  for (pthread_t& t : thread) pthread_create(&t, nullptr, churn, nullptr);
  say("busy\n");
  wait_for_byte();  // the test kills it here
}

// ---- what the agent calls ----

void marks(const char*) {
  for (int i = 0; i < 20; ++i) shelf[i] = malloc(kMiB);
  for (int i = 100; i < 3100; ++i) shelf[i] = malloc(500);
  uint64_t* units = probe<decltype(&millpond_probe_units)>("millpond_probe_units")();
  units[kUnitEpoch] = 3;
  mark("epoch", "first", 1, kMarkPeriod);
  usleep(80000);
  for (int i = 20; i < 30; ++i) shelf[i] = malloc(2 * kMiB);
  usleep(20000);
  const ProbeFile file(own_file());
  const ProbeFile::Sum sum = file.sum();
  mark("epoch", "second", 2, kMarkPeriod | kMarkSnapshot);
  const int note = probe<decltype(&millpond_probe_note)>("millpond_probe_note")("{\"note\":\"start\"}", 16);
  const auto pause = probe<decltype(&millpond_probe_pause)>("millpond_probe_pause");
  pause(1);
  pause(1);
  void* quiet = malloc(3 * kMiB);
  pause(0);
  keep = malloc(3 * kMiB);
  pause(0);
  void* loud = malloc(3 * kMiB);
  const auto held = [&](void* p) {
    return int(file.sum([&](const Live& l) { return l.address == uint64_t(p); }).entries);
  };
  say("bytes %lu note %d trim %d version %d quiet %d loud %d\n", (unsigned long)sum.bytes, note,
      probe<decltype(&millpond_probe_trim)>("millpond_probe_trim")(), probe<int (*)()>("millpond_probe_version")(),
      held(quiet) + held(keep), held(loud));
}
// A large block is freed below what the agent keeps: the heap is given back all the same.
void apart(const char*) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // the most there is
  mallopt(M_TRIM_THRESHOLD, 1 << 20);
  const auto pause = probe<decltype(&millpond_probe_pause)>("millpond_probe_pause");
  char* large = static_cast<char*>(malloc(30 * kMiB));
  memset(large, 1, 30 * kMiB);
  pause(kPauseApart);
  char* kept = static_cast<char*>(malloc(2000));
  char* zero = static_cast<char*>(calloc(300, 1000));
  memset(zero, 7, 300000);
  free(zero);
  zero = static_cast<char*>(calloc(300, 1000));  // the same again
  void* many[200];
  for (void*& p : many) p = malloc(900);
  for (int i = 0; i < 200; i += 2) free(many[i]);
  memset(kept, 42, 2000);
  pause(kPauseOff);
  free(large);
  const size_t held = mallinfo2().arena;
  bool right = malloc_usable_size(kept) >= 2000 && malloc_usable_size(kept) < 4096;
  for (int i = 0; i < 300000; ++i) right = right && zero[i] == 0;
  for (const size_t size : {size_t{2010}, size_t{3000}, size_t{100000}, 5 * kMiB, size_t{1500}}) {
    kept = static_cast<char*>(realloc(kept, size));
    for (int i = 0; i < 1500; ++i) right = right && kept[i] == 42;
  }
  pid_t child = fork();
  if (child == 0) {
    for (int i = 1; i < 200; i += 2) free(many[i]);
    free(zero);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  for (int i = 1; i < 200; i += 2) free(many[i]);
  free(kept), free(zero);
  say("held %d MiB right %d child %d\n", int(held >> 20), right, status);
}
void full_ring(const char*) {
  static char text[100000];
  memset(text, 'x', sizeof text);
  const auto note = probe<decltype(&millpond_probe_note)>("millpond_probe_note");
  const ProbeFile file(own_file());
  int written = 0;
  while (note(text, sizeof text) == 0) ++written;
  const int lost = int(file.header().lost_records);
  int round_again = 0;  // with a reader that keeps up, the ring turns for ever
  for (int i = 0; i < 500; ++i) {
    for (const auto& record : file.records(true))
      if (record.header.kind == kRecordNote) round_again += record.bytes.size() == sizeof(NoteRecord) + sizeof text;
    if (note(text, sizeof text - size_t(i) % 3 * 8) != 0) break;
  }
  say("written %d lost %d all_read %d\n", written, lost, round_again >= written + 166);
}
void nothing(const char*) {}
void harmless(const char*) {
  mark("epoch", "x", 1, kMarkSnapshot);
  probe<decltype(&millpond_probe_units)>("millpond_probe_units")()[0]++;
  const int note = probe<decltype(&millpond_probe_note)>("millpond_probe_note")("{}", 2);
  keep = malloc(3 * kMiB);
  free(keep);
  say("note %d\n", note);
}

// Two MiB that come and go at once, 3 MiB that stay a while, 5 MiB that stay; the first by two threads.
void* come_and_go(void* times) {
  for (int i = 0; i < *static_cast<int*>(times); ++i) {
    keep = malloc(2 * kMiB);
    free(keep);
  }
  return nullptr;
}
void temporary(const char*) {
  int times = 100;
  pthread_t thread;
  for (int i = 0; i < 2; ++i) {
    pthread_create(&thread, nullptr, come_and_go, &times);
    pthread_join(thread, nullptr);
  }
  void* while_[4];
  for (void*& p : while_) p = malloc(3 * kMiB);
  usleep(50'000);
  for (void* p : while_) free(p);
  keep = malloc(5 * kMiB);
  say("done\n");
}

struct Scenario {
  const char* name;
  void (*run)(const char* argument);
};
const Scenario all[] = {{"estimate", estimate},   {"reallocs", reallocs},   {"kinds", kinds},
                        {"news", news},           {"throws", throws},       {"mappings", mappings},
                        {"threads", threads},     {"forks", forks},         {"spawns", spawns},
                        {"replaced", replaced},   {"killed", killed},       {"libraries", libraries},
                        {"marks", marks},         {"full_ring", full_ring}, {"apart", apart},
                        {"temporary", temporary}, {"nothing", nothing},     {"harmless", harmless}};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (const Scenario& scenario : all)
    if (strcmp(scenario.name, argv[1]) == 0) {
      scenario.run(argc > 2 ? argv[2] : argv[0]);
      if (strcmp(argv[1], "nothing") != 0) wait_for_byte();
      return 0;
    }
  return 2;
}
