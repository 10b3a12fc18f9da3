#include "probe/relocations.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "probe/loader.h"
#include "probe/lock.h"
#include "probe/system.h"

namespace millpond::probe::relocations {
namespace {

using Word = uintptr_t;

// ---- a module, as its dynamic section tells ----
struct Module {
  uintptr_t base = 0;
  const ElfW(Phdr) * headers = nullptr;
  int header_count = 0;
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  size_t names_size = 0;
  const uint16_t* versions = nullptr;
  const uint32_t* gnu_hash = nullptr;
  const uint32_t* old_hash = nullptr;
  const ElfW(Rela) * calls = nullptr;  // DT_JMPREL
  size_t call_count = 0;
  const ElfW(Rela) * data = nullptr;  // DT_RELA
  size_t data_count = 0;

  bool holds(uintptr_t address, uint32_t flags = 0) const {
    for (int i = 0; i < header_count; ++i)
      if (const auto& part = headers[i];
          part.p_type == PT_LOAD && (part.p_flags & flags) == flags && address - (base + part.p_vaddr) < part.p_memsz)
        return true;
    return false;
  }
  const char* name_of(const ElfW(Sym) & symbol) const {
    return symbol.st_name < names_size ? names + symbol.st_name : "";
  }
};

bool read(const dl_phdr_info& info, Module& m) {
  m = {};
  m.base = info.dlpi_addr;
  m.headers = info.dlpi_phdr;
  m.header_count = info.dlpi_phnum;
  const ElfW(Dyn)* entry = nullptr;
  for (int i = 0; i < m.header_count; ++i)
    if (m.headers[i].p_type == PT_DYNAMIC) entry = reinterpret_cast<const ElfW(Dyn)*>(m.base + m.headers[i].p_vaddr);
  if (!entry) return false;
  // The loader turns offsets into addresses, except where the section cannot be written.
  const auto at = [&](const ElfW(Dyn) & e) { return e.d_un.d_ptr >= m.base ? e.d_un.d_ptr : m.base + e.d_un.d_ptr; };
  size_t call_bytes = 0, data_bytes = 0, relative = 0;
  bool calls_are_rela = true;
  for (; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        m.symbols = reinterpret_cast<const ElfW(Sym)*>(at(*entry));
        break;
      case DT_STRTAB:
        m.names = reinterpret_cast<const char*>(at(*entry));
        break;
      case DT_STRSZ:
        m.names_size = entry->d_un.d_val;
        break;
      case DT_VERSYM:
        m.versions = reinterpret_cast<const uint16_t*>(at(*entry));
        break;
      case DT_GNU_HASH:
        m.gnu_hash = reinterpret_cast<const uint32_t*>(at(*entry));
        break;
      case DT_HASH:
        m.old_hash = reinterpret_cast<const uint32_t*>(at(*entry));
        break;
      case DT_JMPREL:
        m.calls = reinterpret_cast<const ElfW(Rela)*>(at(*entry));
        break;
      case DT_PLTRELSZ:
        call_bytes = entry->d_un.d_val;
        break;
      case DT_PLTREL:
        calls_are_rela = entry->d_un.d_val == DT_RELA;
        break;
      case DT_RELA:
        m.data = reinterpret_cast<const ElfW(Rela)*>(at(*entry));
        break;
      case DT_RELASZ:
        data_bytes = entry->d_un.d_val;
        break;
      case DT_RELACOUNT:
        relative = entry->d_un.d_val;
        break;
      default:
        break;
    }
  }
  if (!m.symbols || !m.names) return false;
  if (m.calls && calls_are_rela) m.call_count = call_bytes / sizeof(ElfW(Rela));
  if (m.data) m.data_count = data_bytes / sizeof(ElfW(Rela));
  relative = relative < m.data_count
                 ? relative
                 : m.data_count;  // those come first and name no symbol: a million of them in a large library
  m.data += relative;
  m.data_count -= relative;
  return true;
}

// ---- where a name is defined ----
uint32_t gnu_hash_of(const char* name) {
  uint32_t h = 5381;
  for (; *name; ++name) h = h * 33 + uint8_t(*name);
  return h;
}
uint32_t old_hash_of(const char* name) {
  uint32_t h = 0;
  for (; *name; ++name) {
    h = (h << 4) + uint8_t(*name);
    const uint32_t high = h & 0xf0000000u;
    h ^= high >> 24;
    h &= ~high;
  }
  return h;
}

void* defined_as(const Module& m, uint32_t number, const char* name) {
  const ElfW(Sym)& symbol = m.symbols[number];
  const int type = ELF64_ST_TYPE(symbol.st_info), bind = ELF64_ST_BIND(symbol.st_info);
  if (symbol.st_shndx == SHN_UNDEF || symbol.st_value == 0 || (type != STT_FUNC && type != STT_NOTYPE) ||
      (bind != STB_GLOBAL && bind != STB_WEAK))
    return nullptr;
  if (m.versions && m.versions[number] & 0x8000) return nullptr;  // kept for old programs
  return strcmp(m.name_of(symbol), name) == 0 ? reinterpret_cast<void*>(m.base + symbol.st_value) : nullptr;
}

void* defined_in(const Module& m, const char* name) {
  if (m.gnu_hash) {
    const uint32_t buckets = m.gnu_hash[0], first = m.gnu_hash[1], filter_words = m.gnu_hash[2];
    const uint32_t* bucket = m.gnu_hash + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t* chain = bucket + buckets;
    const uint32_t hash = gnu_hash_of(name);
    uint32_t number = buckets ? bucket[hash % buckets] : 0;
    if (number < first) return nullptr;
    for (;; ++number) {
      const uint32_t link = chain[number - first];
      if ((link | 1) == (hash | 1))
        if (void* found = defined_as(m, number, name)) return found;
      if (link & 1) return nullptr;
    }
  }
  if (m.old_hash) {
    const uint32_t buckets = m.old_hash[0];
    for (uint32_t number = buckets ? m.old_hash[2 + old_hash_of(name) % buckets] : 0; number;
         number = m.old_hash[2 + buckets + number])
      if (void* found = defined_as(m, number, name)) return found;
  }
  return nullptr;
}

const void* foreign_allocator = nullptr;

// The loader has a small malloc of its own, for itself; the kernel's module has no tables; and our own calls are not
// the program's.
bool is_left_out(const dl_phdr_info& info, const Module& m) {
  const uintptr_t loader = getauxval(AT_BASE), kernel = getauxval(AT_SYSINFO_EHDR);
  return (loader && info.dlpi_addr == loader) || (kernel && m.holds(kernel)) || m.holds(uintptr_t(&foreign_allocator));
}

struct Wanted {
  const char* name;
  const void* in;
  void* found;
};
int look_in(dl_phdr_info* info, size_t, void* wanted_) {
  auto& wanted = *static_cast<Wanted*>(wanted_);
  Module m;
  if (!read(*info, m) || is_left_out(*info, m) || (wanted.in && !m.holds(uintptr_t(wanted.in)))) return 0;
  wanted.found = defined_in(m, wanted.name);
  return wanted.found != nullptr;
}

// ---- how pages are protected: /proc/self/maps at one moment ----
struct Pages {
  uintptr_t begin, end;
  int protection;
};
struct Map {
  static constexpr size_t kMost = 1 << 16;
  Pages* pages = static_cast<Pages*>(sys::map_private(kMost * sizeof(Pages)));
  size_t count = 0;
  ~Map() {
    if (pages) sys::unmap(pages, kMost * sizeof(Pages));
  }

  void read() {
    count = 0;
    const int fd = pages ? int(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC)) : -1;
    if (fd < 0) return;
    char text[4096];
    enum { kBegin, kEnd, kFlags, kRest } part = kBegin;
    Pages line{};
    int flag = 0;
    for (long n; (n = syscall(SYS_read, fd, text, sizeof text)) > 0;)
      for (long i = 0; i < n; ++i) {
        const char c = text[i];
        if (part == kBegin || part == kEnd) {
          uintptr_t& value = part == kBegin ? line.begin : line.end;
          if (c == '-')
            part = kEnd;
          else if (c == ' ')
            part = kFlags, flag = 0;
          else
            value = value << 4 | uintptr_t(c <= '9' ? c - '0' : c - 'a' + 10);
        } else if (part == kFlags) {
          if (c == ' ')
            part = kRest;
          else if (c != '-' && flag < 3)
            line.protection |= 1 << flag;  // r, w, x: as PROT_READ, PROT_WRITE and PROT_EXEC are numbered
          ++flag;
        } else if (c == '\n') {
          if (count < kMost) pages[count++] = line;
          line = {};
          part = kBegin;
        }
      }
    syscall(SYS_close, fd);
  }
  const Pages* at(uintptr_t address) const {
    size_t low = 0, high = count;
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (address >= pages[middle].end)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count && address >= pages[low].begin ? &pages[low] : nullptr;
  }
};

// Writes words, most of which lie close together: pages without the right to be written get it once for a run of them.
class Writer {
 public:
  explicit Writer(const Map& map) : map_(map) {}
  ~Writer() { close(); }
  bool write(Word* at, Word value) {
    const uintptr_t page = uintptr_t(at) / sys::kPageSize * sys::kPageSize;
    if (page < begin_ || page >= end_) {
      close();
      const Pages* pages = map_.at(uintptr_t(at));
      if (!pages) return false;
      if (!(pages->protection & sys::kWrite)) {
        // Up to the end of what is protected alike: tables that the loader closes are a few pages long.
        const uintptr_t end = pages->end - page < kMostAtOnce ? pages->end : page + kMostAtOnce;
        if (!protect(page, end, pages->protection | sys::kWrite)) return false;
        begin_ = page, end_ = end, protection_ = pages->protection;
      }
    }
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    return true;
  }
  void close() {
    if (begin_ != end_) protect(begin_, end_, protection_);
    begin_ = end_ = 0;
  }

 private:
  static constexpr uintptr_t kMostAtOnce = 64 * sys::kPageSize;
  static bool protect(uintptr_t begin, uintptr_t end, int protection) {
    return syscall(SYS_mprotect, begin, end - begin, protection) == 0;
  }
  const Map& map_;
  uintptr_t begin_ = 0, end_ = 0;
  int protection_ = 0;
};

// ---- what was changed ----
struct Changed {
  Word* at;
  Word before;
};
constexpr size_t kMostChanged = 1 << 17, kMostSeen = 1 << 13;
struct Done {
  Changed words[kMostChanged];
  const ElfW(Phdr) * seen[kMostSeen];  // of modules; each has its own
};
Done* done = nullptr;
size_t changed_count = 0, seen_count = 0;
const Function* functions = nullptr;
size_t function_count = 0;
uint64_t adds_then = 0, subs_then = 0, tried_for = 0;
int tries = 0;
constexpr int kMostTries = 5;
Lock changing;

bool leads_to_a_hook(Word value) {
  for (size_t i = 0; i < function_count; ++i)
    if (Word(functions[i].hook) == value) return true;
  return false;
}

// False: a word is not what it should be, so the loader may be at work on it, or the module came after we looked at the
// pages.
bool look_at(const Module& m, const ElfW(Rela) * table, size_t count, Writer& writer) {
  bool whole = true;
  for (size_t i = 0; i < count && changed_count < kMostChanged; ++i) {
    const uint32_t type = uint32_t(ELF64_R_TYPE(table[i].r_info)), number = uint32_t(ELF64_R_SYM(table[i].r_info));
    if (!number || (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT && type != R_X86_64_64) ||
        (type == R_X86_64_64 && table[i].r_addend))
      continue;
    const char* name = m.name_of(m.symbols[number]);
    const Function* function = nullptr;
    for (size_t f = 0; f < function_count && !function; ++f)
      if (functions[f].real && functions[f].name[0] == name[0] && strcmp(functions[f].name, name) == 0)
        function = &functions[f];
    if (!function) continue;
    auto* word = reinterpret_cast<Word*>(m.base + table[i].r_offset);
    if (uintptr_t(word) % sizeof(Word) || !m.holds(uintptr_t(word), PF_W)) continue;
    const Word before = __atomic_load_n(word, __ATOMIC_ACQUIRE);
    const bool stub = type == R_X86_64_JUMP_SLOT && m.symbols[number].st_shndx == SHN_UNDEF && m.holds(before, PF_X);
    if (before != Word(function->real) && !stub) {
      whole = whole && (type == R_X86_64_64 ||
                        before == Word(function->hook));  // a pointer may have been changed by the program
      continue;
    }
    done->words[changed_count] = {word, before};
    if (writer.write(word, Word(function->hook)))
      ++changed_count;
    else
      whole = false;
  }
  return whole;
}

struct Changing {
  Map map;
  bool whole = true;
};
int change_module(dl_phdr_info* info, size_t, void* changing_) {
  auto& c = *static_cast<Changing*>(changing_);
  for (size_t i = 0; i < seen_count; ++i)
    if (done->seen[i] == info->dlpi_phdr) return 0;
  Module m;
  if (seen_count == kMostSeen || !read(*info, m) || is_left_out(*info, m) ||
      (foreign_allocator && m.holds(uintptr_t(foreign_allocator))))
    return 0;
  Writer writer(c.map);
  const bool calls = look_at(m, m.calls, m.call_count, writer), data = look_at(m, m.data, m.data_count, writer);
  if (calls && data)
    done->seen[seen_count++] = info->dlpi_phdr;
  else
    c.whole = false;
  return 0;
}

struct Restoring {
  Map map;
  size_t restored = 0;
};
int restore_module(dl_phdr_info* info, size_t, void* restoring_) {
  auto& r = *static_cast<Restoring*>(restoring_);
  Module m;
  if (!read(*info, m)) return 0;
  Writer writer(r.map);
  for (size_t i = 0; i < changed_count; ++i) {
    Changed& word = done->words[i];
    if (!word.at || !m.holds(uintptr_t(word.at), PF_W)) continue;
    if (leads_to_a_hook(__atomic_load_n(word.at, __ATOMIC_ACQUIRE)) && writer.write(word.at, word.before)) {
      word.at = nullptr;
      ++r.restored;
    }
  }
  return 0;
}

// After modules went: a word that went with its module is forgotten, before another module lies there. The lowest bit
// of its address marks a word that stays.
int mark_words(dl_phdr_info* info, size_t, void*) {
  Module m;
  if (!read(*info, m)) return 0;
  for (size_t i = 0; i < changed_count; ++i) {
    Word at = Word(done->words[i].at);
    if (!(at & 1) && m.holds(at, PF_W) && leads_to_a_hook(__atomic_load_n(done->words[i].at, __ATOMIC_ACQUIRE)))
      done->words[i].at = reinterpret_cast<Word*>(at | 1);
  }
  return 0;
}
void forget_gone_words() {
  dl_iterate_phdr(mark_words, nullptr);
  size_t kept = 0;
  for (size_t i = 0; i < changed_count; ++i)
    if (const Word at = Word(done->words[i].at); at & 1)
      done->words[kept++] = {reinterpret_cast<Word*>(at & ~Word{1}), done->words[i].before};
  changed_count = kept;
  seen_count = 0;
}

struct Counts {
  uint64_t adds = 0, subs = 0;
};
int read_counts(dl_phdr_info* info, size_t, void* counts) {
  *static_cast<Counts*>(counts) = {info->dlpi_adds, info->dlpi_subs};
  return 1;
}

// Whether a module still holds each word that was not put back: one that went with its module needs nothing.
int count_left(dl_phdr_info* info, size_t, void* left) {
  Module m;
  if (!read(*info, m)) return 0;
  for (size_t i = 0; i < changed_count; ++i)
    if (done->words[i].at && m.holds(uintptr_t(done->words[i].at), PF_W)) ++*static_cast<size_t*>(left);
  return 0;
}

}  // namespace

void* definition_of(const char* name, const void* in) {
  Wanted wanted{name, in, nullptr};
  dl_iterate_phdr(look_in, &wanted);
  return wanted.found;
}

void set_foreign_allocator(const void* code) { foreign_allocator = code; }

// A hook that is called while another thread changes or restores tables does not wait: that thread may be waiting for
// the loader, whose lock ours may hold.
size_t change(const Function* list, size_t count) {
  if (!changing.try_lock()) return 0;
  struct Unlock {
    ~Unlock() { changing.unlock(); }
  } unlock;
  if (!done) done = static_cast<Done*>(sys::map_private(sizeof(Done)));
  if (!done) return 0;
  functions = list;
  function_count = count;
  Counts now;
  dl_iterate_phdr(read_counts, &now);
  if (now.subs != subs_then) forget_gone_words();
  Changing c;
  c.map.read();
  const size_t before = changed_count;
  dl_iterate_phdr(change_module, &c);
  // A module that came meanwhile is looked at again; one that was not ready too, but not for ever: it may have a malloc
  // of its own.
  if (now.adds != tried_for) tries = 0;
  tried_for = now.adds;
  adds_then = c.whole || ++tries > kMostTries ? now.adds : 0;
  subs_then = now.subs;
  return changed_count - before;
}

size_t restore() {
  Locked locked(changing);
  if (!done) return 0;
  Counts now;
  dl_iterate_phdr(read_counts, &now);
  if (now.subs != subs_then) forget_gone_words();
  Restoring r;
  r.map.read();
  dl_iterate_phdr(restore_module, &r);
  size_t left = 0;
  dl_iterate_phdr(count_left, &left);
  sys::unmap(done, sizeof(Done));
  done = nullptr;
  changed_count = seen_count = 0;
  adds_then = subs_then = 0;
  return left;
}

bool modules_changed() {
  Counts now;
  loader::each_module(read_counts, &now);
  return now.adds != __atomic_load_n(&adds_then, __ATOMIC_RELAXED) ||
         now.subs != __atomic_load_n(&subs_then, __ATOMIC_RELAXED);
}

void forget() { changing = {}; }

}  // namespace millpond::probe::relocations
