#include "watch/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>
#include <elfutils/libdwfl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace millpond::watch {
namespace {

// Where a place in the file lies for its own linker: through the program headers.
std::optional<uint64_t> virtual_address(const std::string& path, uint64_t offset) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr head{};
  if (!file.read(reinterpret_cast<char*>(&head), sizeof head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  for (int i = 0; i < head.e_phnum && i < 256; ++i) {
    Elf64_Phdr s{};
    file.seekg(std::streamoff(head.e_phoff) + i * std::streamoff(sizeof s));
    if (!file.read(reinterpret_cast<char*>(&s), sizeof s)) return {};
    if (s.p_type == PT_LOAD && offset >= s.p_offset && offset - s.p_offset < s.p_filesz) return offset - s.p_offset + s.p_vaddr;
  }
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

#define MP_DW(f) \
  f(dwfl_begin) f(dwfl_end) f(dwfl_report_begin) f(dwfl_report_elf) f(dwfl_report_end) f(dwfl_addrmodule) f(dwfl_module_addrname) \
  f(dwfl_module_getsrc) f(dwfl_lineinfo) f(dwfl_standard_find_debuginfo)

struct Symbols::Dw {
  void* library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
#define MP_DECLARE(name) decltype(&::name) name = nullptr;
  MP_DW(MP_DECLARE)
#undef MP_DECLARE
  Dwfl_Callbacks callbacks{};
  std::map<std::string, Dwfl*> open;

  Dw() {
    if (!library) return;
#define MP_FIND(name) name = reinterpret_cast<decltype(name)>(dlsym(library, #name));
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
};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

void Symbols::add(const RawModule& module) {
  std::erase_if(modules_, [&](const RawModule& m) { return m.begin < module.end && module.begin < m.end; });
  modules_.push_back(module);
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

NativeName Symbols::name(const std::string& module, uint64_t offset) {
  NativeName n{module, offset, {}, {}, 0};
  if (!dw_) dw_ = std::make_unique<Dw>();
  Dwfl* dwfl = dw_->of(module);
  const std::optional<uint64_t> at = virtual_address(module, offset ? offset - 1 : 0);
  if (!dwfl || !at) return n;
  Dwfl_Module* m = dw_->dwfl_addrmodule(dwfl, *at);
  if (!m) return n;
  if (const char* symbol = dw_->dwfl_module_addrname(m, *at)) n.function = demangled(symbol);
  if (Dwfl_Line* line = dw_->dwfl_module_getsrc(m, *at)) {
    int number = 0;
    if (const char* source = dw_->dwfl_lineinfo(line, nullptr, &number, nullptr, nullptr, nullptr)) n.source = source, n.line = number;
  }
  return n;
}

}  // namespace millpond::watch
