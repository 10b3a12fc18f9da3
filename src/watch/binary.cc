#include "watch/binary.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

namespace millpond::watch {
namespace {

constexpr size_t kMostSegments = 256, kMostBytes = 64 << 20;  // of one table

class File {
 public:
  explicit File(const std::string& path) : file_(path, std::ios::binary) {}
  template <class T>
  bool read(uint64_t at, T* to, size_t count = 1) {
    file_.clear();
    return file_.seekg(std::streamoff(at)) &&
           file_.read(reinterpret_cast<char*>(to), std::streamsize(count * sizeof(T)));
  }

 private:
  std::ifstream file_;
};

// Those whose run time replaces malloc; the others (undefined behaviour) come along with anybody.
constexpr std::pair<const char*, const char*> kRunTimes[] = {{"asan", "address sanitizer"},
                                                             {"tsan", "thread sanitizer"},
                                                             {"msan", "memory sanitizer"},
                                                             {"lsan", "leak sanitizer"},
                                                             {"hwasan", "address sanitizer"}};

std::string sanitizer_of_library(std::string_view name) {
  for (const auto& [part, words] : kRunTimes)
    if (name.starts_with(std::string("lib") + part + ".so") || name.starts_with(std::string("libclang_rt.") + part))
      return words;
  return {};
}
// Linked into the program itself.
std::string sanitizer_of_symbol(std::string_view name) {
  for (const auto& [part, words] : kRunTimes)
    if (name == std::string("__") + part + "_init") return words;
  return {};
}

std::string_view text_at(const std::vector<char>& texts, uint64_t at) {
  if (at >= texts.size()) return {};
  return {texts.data() + at, strnlen(texts.data() + at, texts.size() - at)};
}

struct Dynamic {
  std::vector<Elf64_Dyn> entries;
  uint64_t value(int64_t tag) const {
    for (const Elf64_Dyn& e : entries)
      if (e.d_tag == tag) return e.d_un.d_val;
    return 0;
  }
};

// What the first line of a script names; empty: it is none.
std::string interpreter_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string line(255, '\0');  // the system reads no more of it
  file.read(line.data(), std::streamsize(line.size()));
  line.resize(size_t(file.gcount()));
  const size_t begin = line.starts_with("#!") ? line.find_first_not_of(" \t", 2) : line.npos;
  return begin == line.npos ? "" : line.substr(begin, line.find_first_of(" \t\r\n", begin) - begin);
}

constexpr const char* kFolders[] = {
    "/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"};

// The parts between any of these characters, without empty ones.
std::vector<std::string> parts_of(const std::string& text, const char* between) {
  std::vector<std::string> parts;
  for (size_t at = 0; (at = text.find_first_not_of(between, at)) != text.npos;) {
    const size_t end = std::min(text.find_first_of(between, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

Binary read_elf(const std::string& path) {
  Binary b;
  File file(path);
  Elf64_Ehdr head{};
  if (!file.read(0, &head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return b;
  b.is_static = true;
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr)) return b;
  std::vector<Elf64_Phdr> segments(std::min<size_t>(head.e_phnum, kMostSegments));
  if (!segments.empty() && !file.read(head.e_phoff, segments.data(), segments.size())) return b;
  Dynamic dynamic;
  for (const Elf64_Phdr& s : segments) {
    if (s.p_type == PT_INTERP) b.is_static = false;
    if (s.p_type != PT_DYNAMIC || s.p_filesz > kMostBytes) continue;
    dynamic.entries.resize(s.p_filesz / sizeof(Elf64_Dyn));
    if (!file.read(s.p_offset, dynamic.entries.data(), dynamic.entries.size())) dynamic.entries.clear();
  }
  // An address of the program, as a place in its file.
  const auto place = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& s : segments)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    return 0;
  };
  const uint64_t size = dynamic.value(DT_STRSZ), at = place(dynamic.value(DT_STRTAB));
  if (size == 0 || size > kMostBytes || at == 0) return b;
  std::vector<char> texts(size);
  if (!file.read(at, texts.data(), texts.size())) return b;
  for (const Elf64_Dyn& e : dynamic.entries)
    if (e.d_tag == DT_NEEDED && b.sanitizer.empty()) b.sanitizer = sanitizer_of_library(text_at(texts, e.d_un.d_val));
  // The dynamic symbols lie in front of their texts; a run time inside the program shows its own to the libraries.
  const uint64_t symbols = place(dynamic.value(DT_SYMTAB));
  if (!b.sanitizer.empty() || symbols == 0 || at <= symbols || at - symbols > kMostBytes) return b;
  std::vector<Elf64_Sym> table((at - symbols) / sizeof(Elf64_Sym));
  if (!file.read(symbols, table.data(), table.size())) return b;
  for (const Elf64_Sym& s : table)
    if (s.st_shndx != SHN_UNDEF && b.sanitizer.empty()) b.sanitizer = sanitizer_of_symbol(text_at(texts, s.st_name));
  return b;
}

}  // namespace

Binary read_binary(const std::string& path) {
  const std::string interpreter = interpreter_of(path);
  return read_elf(interpreter.empty() ? path : interpreter);
}

std::string preloaded_sanitizer(const std::string& preload, const std::string& library_path) {
  for (const std::string& word : parts_of(preload, " :")) {
    std::string found = sanitizer_of_library(word.substr(word.rfind('/') + 1));
    if (!found.empty()) return found;
    std::vector<std::string> places;
    if (word.find('/') != word.npos) {
      places = {word};
    } else {
      for (const std::string& folder : parts_of(library_path, ":;")) places.push_back(folder + "/" + word);
      for (const char* folder : kFolders) places.push_back(std::string(folder) + "/" + word);
    }
    for (const std::string& place : places)
      if (std::ifstream(place).good()) {
        found = read_elf(place).sanitizer;
        break;
      }
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace millpond::watch
