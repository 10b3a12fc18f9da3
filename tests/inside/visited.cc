// A native program with four threads that allocate, write, check and free. visited LIBRARY TIMES: lets the probe enter
// and leave that often meanwhile. visited --leak SECONDS: keeps what remember() allocates, for a visitor from outside;
// says in the end what of its tables, mappings and descriptors is not as it was.
#include <dirent.h>
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <set>
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
      b.at = static_cast<unsigned char*>(n % 3 == 0   ? calloc(1, size)
                                         : n % 7 == 0 ? aligned_alloc(64, (size + 63) / 64 * 64)
                                                      : malloc(size));
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

// What a visitor must have left as it was.
struct State {
  std::map<std::string, std::string> words;  // of the relocation tables, by module and place
  std::set<std::string> mappings;            // without a file behind them, but for the heap and the stack
  std::set<std::string> descriptors;
};

// Where the functions that a module calls are written down. LD_BIND_NOW: otherwise a first call changes its own word.
int add_words(dl_phdr_info* module, size_t, void* to) {
  auto& words = *static_cast<std::map<std::string, std::string>*>(to);
  if (strstr(module->dlpi_name, "libmillpond") || strstr(module->dlpi_name, "/ld-") ||
      strstr(module->dlpi_name, "vdso"))
    return 0;
  for (int i = 0; i < module->dlpi_phnum; ++i) {
    if (module->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    uint64_t tables[2] = {}, sizes[2] = {};
    for (auto* e = reinterpret_cast<const ElfW(Dyn)*>(module->dlpi_addr + module->dlpi_phdr[i].p_vaddr);
         e->d_tag != DT_NULL; ++e) {
      if (e->d_tag == DT_JMPREL) tables[0] = e->d_un.d_ptr;
      if (e->d_tag == DT_PLTRELSZ) sizes[0] = e->d_un.d_val;
      if (e->d_tag == DT_RELA) tables[1] = e->d_un.d_ptr;
      if (e->d_tag == DT_RELASZ) sizes[1] = e->d_un.d_val;
    }
    for (int t = 0; t < 2; ++t)
      for (uint64_t at = 0; at < sizes[t]; at += sizeof(ElfW(Rela))) {
        const auto* r = reinterpret_cast<const ElfW(Rela)*>(tables[t] + at);
        const auto kind = ELF64_R_TYPE(r->r_info);
        if (kind == R_X86_64_JUMP_SLOT || kind == R_X86_64_GLOB_DAT)
          words[std::string(module->dlpi_name) + "+" + std::to_string(r->r_offset)] =
              std::to_string(*reinterpret_cast<const uint64_t*>(module->dlpi_addr + r->r_offset));
      }
  }
  return 0;
}

State state() {
  State s;
  dl_iterate_phdr(add_words, &s.words);
  std::ifstream maps("/proc/self/maps");
  std::string line, before;
  for (; std::getline(maps, line); before = line) {
    const bool of_file = line.find('/') != line.npos, special = line.find('[') != line.npos;
    // The end of a module's data that its file does not hold lies right behind it.
    const size_t dash = before.find('-'), space = before.find(' ');
    const bool behind =
        before.find('/') != before.npos && line.starts_with(before.substr(dash + 1, space - dash - 1) + "-");
    if (line.find("millpond-") != line.npos || (!of_file && !special && !behind)) s.mappings.insert(line);
  }
  DIR* folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) s.descriptors.insert(entry->d_name);
  closedir(folder);
  return s;
}

int differences(const State& before, const State& after) {
  int count = 0;
  for (const auto& [place, word] : before.words)
    if (!after.words.contains(place) || after.words.at(place) != word) ++count, printf("word %s\n", place.c_str());
  for (const std::string& line : after.mappings)
    if (!before.mappings.contains(line)) ++count, printf("mapping %s\n", line.c_str());
  for (const std::string& fd : after.descriptors)
    if (!before.descriptors.contains(fd)) ++count, printf("descriptor %s\n", fd.c_str());
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "--leak") == 0) {
    mallopt(M_MMAP_MAX, 0);  // what the program itself takes is in the heap, and no mapping of its own comes or goes
    const State before = state();
    printf("ready\n");
    fflush(stdout);
    for (int i = 0; i < atoi(argv[2]) * 100; ++i) {
      remember();
      usleep(10000);
    }
    const int wrong_now = differences(before, state());
    if (wrong_now == 0) printf("unharmed\n");
    return wrong_now != 0;
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
