#include "probe/first_place.h"

#include <elf.h>
#include <limits.h>
#include <string.h>

#include "probe/system.h"

namespace millpond::probe {
namespace {

constexpr size_t kMostSegments = 64, kMostEntries = 512, kMostChain = 4096;
constexpr const char* kLibraries[] = {"libasan.so",         "libtsan.so",       "liblsan.so",       "libmsan.so",
                                      "libhwasan.so",       "libclang_rt.asan", "libclang_rt.tsan", "libclang_rt.lsan",
                                      "libclang_rt.hwasan", "libclang_rt.msan"};
constexpr const char* kSymbols[] = {"__asan_init", "__tsan_init", "__lsan_init", "__msan_init", "__hwasan_init"};
constexpr const char* kFolders[] = {
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"};

bool read_at(int fd, void* to, size_t size, uint64_t at) {
  return syscall(SYS_pread64, fd, to, size, at) == long(size);
}

bool is_run_time(const char* name) {
  for (const char* begin : kLibraries)
    if (strncmp(name, begin, strlen(begin)) == 0) return true;
  return false;
}

// Where the parts lie in the file.
struct Tables {
  uint64_t texts = 0, symbols = 0, hash = 0;
};

bool is_text(int fd, uint64_t at, const char* text) {
  char found[32];
  const size_t size = strlen(text) + 1;
  return size <= sizeof found && read_at(fd, found, size, at) && memcmp(found, text, size) == 0;
}

// By the table that the dynamic linker uses, so some words are read and not every symbol; it holds what is defined here
// and nothing else.
bool defines(int fd, const Tables& t, const char* name) {
  uint32_t head[4];  // buckets, first symbol, words of the filter, its shift
  if (!t.hash || !t.symbols || !t.texts || !read_at(fd, head, sizeof head, t.hash) || head[0] == 0 || head[2] == 0)
    return false;
  uint32_t hash = 5381;
  for (const char* c = name; *c; ++c) hash = hash * 33 + uint8_t(*c);
  uint64_t filter = 0;
  if (!read_at(fd, &filter, sizeof filter, t.hash + sizeof head + (hash / 64 % head[2]) * sizeof filter)) return false;
  if (!(filter >> (hash % 64) & 1) || !(filter >> (hash >> head[3]) % 64 & 1)) return false;
  const uint64_t buckets = t.hash + sizeof head + uint64_t{head[2]} * 8, chains = buckets + uint64_t{head[0]} * 4;
  uint32_t at = 0;
  if (!read_at(fd, &at, sizeof at, buckets + hash % head[0] * 4) || at < head[1]) return false;
  for (size_t n = 0; n < kMostChain; ++n, ++at) {
    uint32_t of_symbol = 0;
    Elf64_Sym symbol;
    if (!read_at(fd, &of_symbol, sizeof of_symbol, chains + uint64_t{at - head[1]} * 4)) return false;
    if ((of_symbol | 1) == (hash | 1) &&
        read_at(fd, &symbol, sizeof symbol, t.symbols + uint64_t{at} * sizeof symbol) &&
        is_text(fd, t.texts + symbol.st_name, name))
      return true;
    if (of_symbol & 1) return false;  // the last of its bucket
  }
  return false;
}

bool elf_needs_first_place(int fd) {
  Elf64_Ehdr head;
  if (!read_at(fd, &head, sizeof head, 0) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  Elf64_Phdr segments[kMostSegments];
  const size_t count = head.e_phnum < kMostSegments ? head.e_phnum : kMostSegments;
  if (head.e_phentsize != sizeof *segments || !read_at(fd, segments, count * sizeof *segments, head.e_phoff))
    return false;
  const auto place = [&](uint64_t address) -> uint64_t {
    for (size_t i = 0; i < count; ++i)
      if (segments[i].p_type == PT_LOAD && address >= segments[i].p_vaddr &&
          address - segments[i].p_vaddr < segments[i].p_filesz)
        return address - segments[i].p_vaddr + segments[i].p_offset;
    return 0;
  };
  Tables tables;
  for (size_t i = 0; i < count; ++i) {
    if (segments[i].p_type != PT_DYNAMIC) continue;
    const uint64_t begin = segments[i].p_offset, size = segments[i].p_filesz / sizeof(Elf64_Dyn);
    const size_t entries = size < kMostEntries ? size : kMostEntries;
    for (int round = 0; round < 2; ++round)  // where the names lie, then the names
      for (size_t n = 0; n < entries; ++n) {
        Elf64_Dyn entry;
        if (!read_at(fd, &entry, sizeof entry, begin + n * sizeof entry) || entry.d_tag == DT_NULL) break;
        if (entry.d_tag == DT_STRTAB) tables.texts = place(entry.d_un.d_ptr);
        if (entry.d_tag == DT_SYMTAB) tables.symbols = place(entry.d_un.d_ptr);
        if (entry.d_tag == DT_GNU_HASH) tables.hash = place(entry.d_un.d_ptr);
        char name[64] = "";
        if (round == 1 && entry.d_tag == DT_NEEDED && tables.texts &&
            read_at(fd, name, sizeof name - 1, tables.texts + entry.d_un.d_val) && is_run_time(name))
          return true;
      }
  }
  // clang links its run time into the program, which shows it to its libraries.
  for (const char* name : kSymbols)
    if (defines(fd, tables, name)) return true;
  return false;
}

// The interpreter that the first line of a script names; false: it is none.
bool interpreter_of(int fd, char* to, size_t size) {
  const long got = syscall(SYS_pread64, fd, to, size - 1, 0L);
  if (got < 3 || to[0] != '#' || to[1] != '!') return false;
  to[got] = 0;
  char* begin = to + 2 + strspn(to + 2, " \t");
  begin[strcspn(begin, " \t\r\n")] = 0;
  memmove(to, begin, strlen(begin) + 1);
  return to[0] == '/';
}

bool needs_first_place(const char* path, bool script_too) {
  const int fd = int(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd < 0) return false;
  char interpreter[256];
  const bool script = script_too && interpreter_of(fd, interpreter, sizeof interpreter),
             answer = !script && elf_needs_first_place(fd);
  syscall(SYS_close, fd);
  return script ? needs_first_place(interpreter, false) : answer;
}

bool word_needs_first_place(const char* word, size_t size, const char* library_path) {
  char full[PATH_MAX];
  if (size == 0 || size >= sizeof full) return false;
  memcpy(full, word, size);
  full[size] = 0;
  const char* slash = strrchr(full, '/');
  if (is_run_time(slash ? slash + 1 : full)) return true;
  if (slash) return needs_first_place(full, false);
  const auto there = [&](const char* folder, size_t length) {
    if (length == 0 || length + size + 2 > sizeof full) return false;
    memcpy(full, folder, length);
    full[length] = '/';
    memcpy(full + length + 1, word, size);
    full[length + 1 + size] = 0;
    return syscall(SYS_access, full, R_OK) == 0;
  };
  for (const char* at = library_path; *at;) {
    const size_t length = strcspn(at, ":;");
    if (there(at, length)) return needs_first_place(full, false);
    at += length + (at[length] != 0);
  }
  for (const char* folder : kFolders)
    if (there(folder, strlen(folder))) return needs_first_place(full, false);
  return false;
}

}  // namespace

bool needs_first_place(const char* path) { return needs_first_place(path, true); }

bool preload_needs_first_place(const char* preload, const char* library_path) {
  for (const char* at = preload; *at;) {
    const size_t size = strcspn(at, " :");
    if (word_needs_first_place(at, size, library_path)) return true;
    at += size + (at[size] != 0);
  }
  return false;
}

}  // namespace millpond::probe
