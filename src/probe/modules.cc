#include "probe/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "probe/cfi.h"
#include "probe/file.h"
#include "probe/loader.h"
#include "probe/lock.h"
#include "probe/mappings.h"
#include "probe/native_frames.h"
#include "probe/python_layout.h"
#include "probe/ring.h"
#include "probe/system.h"

namespace millpond::probe::modules {
namespace {

constexpr size_t kSeen = 2048, kGathered = 256 << 10;

Lock looking;
uint64_t seen[kSeen];  // hashes of what was written
uint32_t seen_count = 0;
struct Changes {
  uint64_t loaded = 0, unloaded = 0;
};
Changes then;

// The loader holds its lock while it shows its list, so modules are only gathered there and written afterwards.
struct Gathered {
  char* at;
  size_t used;
};
struct Found {
  ModuleRecord record;  // path follows
};

uint64_t mixed(uint64_t h, uint64_t x) {
  h = (h ^ x) * 0x9e3779b97f4a7c15u;
  return h ^ h >> 31;
}

void read_build_id(const dl_phdr_info& info, const ElfW(Phdr) & notes, uint8_t (&id)[20]) {
  const char* at = reinterpret_cast<const char*>(info.dlpi_addr + notes.p_vaddr);
  const char* end = at + notes.p_memsz;
  while (at + sizeof(ElfW(Nhdr)) <= end) {
    ElfW(Nhdr) note;
    memcpy(&note, at, sizeof note);
    const char* name = at + sizeof note;
    const char* body = name + (note.n_namesz + 3) / 4 * 4;
    if (body + note.n_descsz > end) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(name, "GNU", 4) == 0) {
      memcpy(id, body, note.n_descsz < sizeof id ? note.n_descsz : sizeof id);
      return;
    }
    at = body + (note.n_descsz + 3) / 4 * 4;
  }
}

int gather(dl_phdr_info* info, size_t, void* gathered_) {
  auto& gathered = *static_cast<Gathered*>(gathered_);
  ModuleRecord record{};
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_NOTE) read_build_id(*info, info->dlpi_phdr[i], record.build_id);
  char self[512];
  const char* path = info->dlpi_name;
  size_t length = strlen(path);
  if (length == 0) {  // the program itself comes without a name
    const long n = syscall(SYS_readlink, "/proc/self/exe", self, sizeof self);
    path = self;
    length = n > 0 ? size_t(n) : 0;
  }
  record.path_size = uint32_t(length);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
    record.begin = info->dlpi_addr + part.p_vaddr;
    record.end = record.begin + part.p_memsz;
    record.offset = part.p_offset;
    const size_t need = (sizeof record + length + 7) & ~size_t{7};
    if (gathered.used + need > kGathered) return 1;
    memcpy(gathered.at + gathered.used, &record, sizeof record);
    memcpy(gathered.at + gathered.used + sizeof record, path, length);
    gathered.used += need;
  }
  return 0;
}

int read_changes(dl_phdr_info* info, size_t, void* changes) {
  *static_cast<Changes*>(changes) = {info->dlpi_adds, info->dlpi_subs};
  return 1;
}

bool has_part(const char* path, size_t size, const char* part) {
  return memmem(path, size, part, strlen(part)) != nullptr;
}

bool was_seen(uint64_t hash) {
  for (uint32_t i = 0; i < seen_count; ++i)
    if (seen[i] == hash) return true;
  return false;
}

}  // namespace

void write_new() {
  Changes now;
  loader::each_module(read_changes, &now);
  if (__atomic_exchange_n(&then.unloaded, now.unloaded, __ATOMIC_RELAXED) != now.unloaded) cfi::forget();
  if (__atomic_load_n(&then.loaded, __ATOMIC_ACQUIRE) == now.loaded) return;
  python::find_interpreter();
  Gathered gathered{static_cast<char*>(sys::map_private(kGathered)), 0};
  if (!gathered.at) return;
  loader::each_module(gather, &gathered);
  {
    Locked locked(looking);
    for (size_t at = 0; at < gathered.used;) {
      ModuleRecord record;
      memcpy(&record, gathered.at + at, sizeof record);
      const char* path = gathered.at + at + sizeof record;
      uint64_t hash = mixed(mixed(record.begin, record.end), record.offset);
      for (uint32_t i = 0; i < record.path_size; ++i) hash = mixed(hash, uint8_t(path[i]));
      if (!was_seen(hash) && seen_count < kSeen &&
          ring::write(kRecordModule, sys::now_ns(), {gathered.at + at, sizeof record}, {path, record.path_size}))
        seen[seen_count++] = hash;
      const auto python = uintptr_t(reinterpret_cast<void*>(python::layout.this_thread));
      if (python >= record.begin && python < record.end)
        mappings::set_python_code(record.begin, record.end, python::layout.free_threaded);
      if (has_part(path, record.path_size, "/libstdc++.so")) native::set_cxx_library(record.begin, record.end);
      at += (sizeof record + record.path_size + 7) & ~size_t{7};
    }
  }
  __atomic_store_n(&then.loaded, now.loaded, __ATOMIC_RELEASE);
  sys::unmap(gathered.at, kGathered);
}

void forget() {
  looking = {};
  seen_count = 0;
  then = {};
}

}  // namespace millpond::probe::modules
