#include "watch/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace millpond::watch {
namespace {

constexpr size_t kMostModules = 8192;  // far more than any program loads; every address is looked for among them

// The parts of a file that are loaded.
std::vector<Elf64_Phdr> loaded_parts(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head{};
  std::vector<Elf64_Phdr> parts;
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_phentsize != sizeof(Elf64_Phdr))
    return parts;
  for (int i = 0; i < head.e_phnum && i < 256; ++i) {
    Elf64_Phdr s{};
    file.seekg(std::streamoff(head.e_phoff) + i * std::streamoff(sizeof s));
    if (!file.read(reinterpret_cast<char*>(&s), sizeof s)) break;
    if (s.p_type == PT_LOAD) parts.push_back(s);
  }
  return parts;
}

// Where a place in the file lies for its own linker: through the program headers.
std::optional<uint64_t> virtual_address(const std::string& path, uint64_t offset) {
  for (const Elf64_Phdr& s : loaded_parts(path))
    if (offset >= s.p_offset && offset - s.p_offset < s.p_filesz) return offset - s.p_offset + s.p_vaddr;
  return {};
}

std::string demangled(const char* name) {
  int status = 0;
  char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  std::string text = status == 0 && plain ? plain : name;
  std::free(plain);
  return text;
}

}  // namespace

#define MP_DW(f)                                                                                           \
  f(dwfl_begin) f(dwfl_end) f(dwfl_report_begin) f(dwfl_report_elf) f(dwfl_report_end) f(dwfl_addrmodule)  \
      f(dwfl_module_getsymtab) f(dwfl_module_getsym_info) f(dwfl_module_getsrc) f(dwfl_lineinfo)           \
          f(dwfl_standard_find_debuginfo) f(dwfl_module_addrdie) f(dwarf_getscopes) f(dwarf_getscopes_die) \
              f(dwarf_tag) f(dwarf_attr) f(dwarf_formudata) f(dwarf_getsrcfiles) f(dwarf_filesrc)

#ifdef MILLPOND_CARRIES_LIBDW
#define MP_FIND(name) name = &::name;
static void* open_libdw() { return dlopen(nullptr, RTLD_NOW); }  // ourselves: it is in the program
#else
#define MP_FIND(name) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
static void* open_libdw() { return dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL); }
#endif

// A symbol that names memory. libdw's own search goes through all symbols of a file for each address: hundreds of
// thousands in a large library.
struct Symbol {
  uint64_t begin, end;
  const char* name;
};

struct Symbols::Dw {
  void* library = open_libdw();
#define MP_DECLARE(name) decltype(&::name) name = nullptr;
  MP_DW(MP_DECLARE)
#undef MP_DECLARE
  Dwfl_Callbacks callbacks{};
  std::map<std::string, Dwfl*> open;
  std::map<Dwfl_Module*, std::vector<Symbol>> symbols;  // by address

  Dw() {
    if (!library) return;
    MP_DW(MP_FIND)
#undef MP_FIND
    callbacks.find_debuginfo = dwfl_standard_find_debuginfo;
    // by build id, beside the program and in the usual folder: nothing is fetched from anywhere
    static char path[] = ":.debug:/usr/lib/debug";
    static char* folders = path;
    callbacks.debuginfo_path = &folders;
    callbacks.section_address = nullptr;
  }
  ~Dw() {
    for (auto& [path, dwfl] : open)
      if (dwfl) dwfl_end(dwfl);
    if (library) dlclose(library);
  }
  Dwfl* of(const std::string& path) {
    const auto [at, fresh] = open.try_emplace(path, nullptr);
    if (!fresh || !library || !dwfl_begin || !dwfl_report_elf) return at->second;
    Dwfl* dwfl = dwfl_begin(&callbacks);
    if (!dwfl) return nullptr;
    dwfl_report_begin(dwfl);
    const Dwfl_Module* module = dwfl_report_elf(dwfl, path.c_str(), path.c_str(), -1, 0, true);
    dwfl_report_end(dwfl, nullptr, nullptr);
    if (!module) {
      dwfl_end(dwfl);
      return nullptr;
    }
    return at->second = dwfl;
  }

  const std::vector<Symbol>& symbols_of(Dwfl_Module* module) {
    const auto [at, fresh] = symbols.try_emplace(module);
    const int count = fresh ? dwfl_module_getsymtab(module) : 0;
    for (int i = 1; i < count; ++i) {  // the first is empty
      GElf_Sym symbol{};
      GElf_Addr address = 0;
      GElf_Word section = SHN_UNDEF;
      const char* name = dwfl_module_getsym_info(module, i, &symbol, &address, &section, nullptr, nullptr);
      const int type = GELF_ST_TYPE(symbol.st_info);
      const bool names_memory = type == STT_NOTYPE || type == STT_OBJECT || type == STT_FUNC || type == STT_GNU_IFUNC;
      if (name && *name && names_memory && section != SHN_UNDEF && section != SHN_ABS)
        at->second.push_back({address, address + symbol.st_size, name});
    }
    // Of several names for one place the one of the largest is the function's or the variable's.
    if (fresh) std::ranges::stable_sort(at->second, {}, [](const Symbol& s) { return std::pair(s.begin, s.end); });
    return at->second;
  }

  // The name of what lies at an address; of what has no size in the table, the nearest before it. Null: none is known.
  const char* name_of(Dwfl_Module* module, uint64_t address) {
    if (!module || !dwfl_module_getsymtab || !dwfl_module_getsym_info) return nullptr;
    constexpr int kNested = 64;  // names that lie one in another; more are not looked at
    const std::vector<Symbol>& all = symbols_of(module);
    auto at = std::ranges::upper_bound(all, address, {}, &Symbol::begin);
    const char* nearest = nullptr;
    for (int i = 0; i < kNested && at != all.begin(); ++i) {
      --at;
      if (address < at->end) return at->name;
      if (i == 0 && at->begin == at->end) nearest = at->name;
    }
    return nearest;
  }
};

bool of_the_system(const std::string& source) {
  return source.starts_with("/usr/include/") || source.starts_with("/usr/lib/") ||
         source.find("/include/c++/") != source.npos;
}

bool of_the_library(const std::string& function) {
  // "void std::vector<int>::_M_realloc_insert<int>(...)": a template's function begins with its type, and what is in
  // brackets is not its name.
  size_t begin = 0;
  int depth = 0;
  for (size_t i = 0; i < function.size(); ++i) {
    const char c = function[i];
    if (c == '(' && depth == 0 && !std::string_view(function).substr(begin).starts_with("(anonymous")) break;
    if (c == '<' || c == '(' || c == '{')
      ++depth;
    else if (c == '>' || c == ')' || c == '}')
      --depth;
    else if (c == ' ' && depth == 0 && !std::string_view(function).substr(0, i).ends_with("operator"))
      begin = i + 1;
  }
  const std::string_view name = std::string_view(function).substr(begin);
  for (const char* first : {"std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete",
                            "millpond::"})  // ours: whoever trains with the library did not write that
    if (name.starts_with(first)) return true;
  for (const char* whole :
       {"malloc", "calloc", "realloc", "free", "memalign", "posix_memalign", "aligned_alloc", "strdup", "strndup"})
    if (name == whole) return true;
  return false;
}

// A line of a library's header was inlined here: the line of the program's own that called it, through as many headers
// as there are.
void Symbols::to_caller(void* module, uint64_t at, NativeName& n) {
  Dwarf_Addr bias = 0;
  Dwarf_Die* unit = dw_->dwfl_module_addrdie(static_cast<Dwfl_Module*>(module), at, &bias);
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  if (!unit || dw_->dwarf_getsrcfiles(unit, &files, &count) != 0) return;
  // The scopes of an address go on, from an inlined function, to where that is declared; those of the innermost one as
  // a part of the code go on to where it was inlined.
  Dwarf_Die *innermost = nullptr, *scopes = nullptr;
  if (dw_->dwarf_getscopes(unit, at - bias, &innermost) < 1) return;
  const int found = dw_->dwarf_getscopes_die(&innermost[0], &scopes);
  std::free(innermost);
  for (int i = 0; i < found; ++i) {
    if (dw_->dwarf_tag(&scopes[i]) != DW_TAG_inlined_subroutine) continue;
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, line = 0;
    if (dw_->dwarf_formudata(dw_->dwarf_attr(&scopes[i], DW_AT_call_file, &attribute), &file) != 0 ||
        dw_->dwarf_formudata(dw_->dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line) != 0 || file >= count)
      continue;
    const char* source = dw_->dwarf_filesrc(files, file, nullptr, nullptr);
    if (!source || of_the_system(source)) continue;
    n.source = source, n.line = int(line);
    break;
  }
  std::free(scopes);
}

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

void Symbols::add(const RawModule& module) {
  std::erase_if(modules_, [&](const RawModule& m) { return m.begin < module.end && module.begin < m.end; });
  if (modules_.size() < kMostModules && module.begin < module.end) modules_.push_back(module);
}

NativeName Symbols::place(uint64_t address) const {
  for (const RawModule& m : modules_)
    if (address >= m.begin && address < m.end) return {m.path, address - m.begin + m.offset, {}, {}, 0};
  return {{}, address, {}, {}, 0};
}

NativeName Symbols::name(uint64_t address) {
  const NativeName p = place(address);
  return p.module.empty() ? p : name(p.module, p.offset);
}

NativeName Symbols::variable(uint64_t address) {
  std::error_code error;
  for (const RawModule& m : modules_) {
    // Variables lie behind the code, and not far.
    constexpr uint64_t kLargest = uint64_t{4} << 30;
    if (address < m.begin || address - m.begin > kLargest || !std::filesystem::is_regular_file(m.path, error)) continue;
    const std::vector<Elf64_Phdr> parts = loaded_parts(m.path);
    const auto code =
        std::ranges::find_if(parts, [&](const Elf64_Phdr& s) { return s.p_flags & PF_X && s.p_offset == m.offset; });
    if (code == parts.end()) continue;
    const uint64_t at = address - m.begin + code->p_vaddr;
    if (std::ranges::none_of(parts, [&](const Elf64_Phdr& s) {
          return s.p_flags & PF_W && at >= s.p_vaddr && at - s.p_vaddr < s.p_memsz;
        }))
      continue;
    NativeName n{m.path, at, {}, {}, 0};
    if (!dw_) dw_ = std::make_unique<Dw>();
    Dwfl* dwfl = dw_->of(m.path);
    if (const char* symbol = dw_->name_of(dwfl ? dw_->dwfl_addrmodule(dwfl, at) : nullptr, at))
      n.function = demangled(symbol);
    return n;
  }
  return {};
}

NativeName Symbols::name(const std::string& module, uint64_t offset) {
  NativeName n{module, offset, {}, {}, 0};
  std::error_code error;
  if (!std::filesystem::is_regular_file(module, error)) return n;  // a pipe could hold us up for ever
  if (!dw_) dw_ = std::make_unique<Dw>();
  Dwfl* dwfl = dw_->of(module);
  const std::optional<uint64_t> at = virtual_address(module, offset ? offset - 1 : 0);
  if (!dwfl || !at) return n;
  Dwfl_Module* m = dw_->dwfl_addrmodule(dwfl, *at);
  if (!m) return n;
  if (const char* symbol = dw_->name_of(m, *at)) n.function = demangled(symbol);
  if (Dwfl_Line* line = dw_->dwfl_module_getsrc(m, *at)) {
    int number = 0;
    if (const char* source = dw_->dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr))
      n.source = source, n.line = number;
    if (of_the_system(n.source)) to_caller(m, *at, n);
  }
  return n;
}

}  // namespace millpond::watch
