// A native program with four threads that allocate, write, check and free. visited LIBRARY TIMES: lets the probe enter and leave that often meanwhile.
// visited --leak SECONDS: keeps what remember() allocates, for a visitor from outside.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<bool> stop{false};
std::atomic<int> wrong{0};

void work(unsigned seed) {
  struct Block {
    unsigned char* at = nullptr;
    size_t size = 0;
    unsigned char value = 0;
  };
  std::vector<Block> blocks(512);
  unsigned n = seed;
  while (!stop) {
    n = n * 1664525 + 1013904223;
    Block& b = blocks[(n >> 8) % blocks.size()];
    for (size_t i = 0; i < b.size; i += 97) wrong += b.at[i] != b.value;
    const size_t size = (n >> 16) % 5000 + 1;
    if (n % 5 == 0) {
      b.at = static_cast<unsigned char*>(realloc(b.at, size));
    } else {
      free(b.at);
      b.at = static_cast<unsigned char*>(n % 3 == 0 ? calloc(1, size) : n % 7 == 0 ? aligned_alloc(64, (size + 63) / 64 * 64) : malloc(size));
    }
    b.size = size, b.value = static_cast<unsigned char>(n >> 3);
    memset(b.at, b.value, size);
    if (n % 1024 == 0) {
      void* p = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      munmap(p, 1 << 20);
    }
  }
  for (Block& b : blocks) free(b.at);
}

std::vector<char*> kept;
__attribute__((noinline)) void remember() {
  kept.push_back(static_cast<char*>(malloc(100000)));
  memset(kept.back(), 1, 100000);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "--leak") == 0) {
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < atoi(argv[2]) * 100; ++i) {
      remember();
      usleep(10000);
    }
    printf("unharmed\n");
    return 0;
  }
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i * 77777 + 1);
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 2;
  auto enter = reinterpret_cast<int (*)(const char*, unsigned)>(dlsym(library, "millpond_probe_enter"));
  auto leave = reinterpret_cast<int (*)()>(dlsym(library, "millpond_probe_leave"));
  char folder[] = "/dev/shm/millpond-XXXXXX";
  if (!mkdtemp(folder)) return 2;
  const std::string file = std::string(folder) + "/" + std::to_string(getpid()) + ".probe";
  int refused = 0, left = 0;
  for (int i = 0; i < atoi(argv[2]); ++i) {
    refused += enter(folder, 3) != 0;
    usleep(500);
    left += leave() != 0;
    unlink(file.c_str());
  }
  stop = true;
  for (std::thread& t : threads) t.join();
  rmdir(folder);
  printf("refused %d, left %d, wrong %d\n", refused, left, wrong.load());
  return refused || left || wrong ? 1 : 0;
}
