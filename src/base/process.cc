#include "base/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>

#include "base/format.h"

namespace millpond {
namespace {

std::string folder_of(Pid pid) { return pid.value ? format("/proc/{}", pid.value) : std::string("/proc/self"); }

std::string text_of(const std::string& path) {
  std::string text;
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return text;
  char part[16384];
  while (const size_t n = std::fread(part, 1, sizeof part, file)) text.append(part, n);
  std::fclose(file);
  return text;
}

std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == text.npos ? text.size() : end + 1);
  return line;
}

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

template <class T>
std::optional<T> number(std::string_view word, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value, base);
  if (error != std::errc{} || end == word.data()) return std::nullopt;
  return value;
}

std::optional<Bytes> number_as_bytes(std::string_view text) {
  const auto value = number<uint64_t>(text.substr(0, text.find_first_of(" \n")));
  return value ? std::optional(Bytes{int64_t(std::min<uint64_t>(*value, INT64_MAX))}) : std::nullopt;
}

// "Rss:      12 kB" -> ("Rss:", 12 KiB)
std::optional<Bytes> kib_behind(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  const auto value = number<int64_t>(next_word(line));
  return value ? std::optional(Bytes{*value * 1024}) : std::nullopt;
}

MappingKind kind_of(const Mapping& m, uint64_t inode) {
  if (m.name == "[heap]") return MappingKind::kHeap;
  if (m.name.starts_with("[stack")) return m.name == "[stack]" ? MappingKind::kStack : MappingKind::kThreadStack;
  if (m.name.starts_with("[v")) return MappingKind::kKernel;
  if (inode != 0 || m.name.starts_with('/')) return MappingKind::kFile;
  return m.permissions.size() > 2 && m.permissions[2] == 'x' ? MappingKind::kCode : MappingKind::kAnonymous;
}

// "5628f14f3000-5628f14f6000 r--p 00000000 fe:00 247741                     /usr/bin/sed"
std::optional<Mapping> parse_header(std::string_view line) {
  std::string_view range = next_word(line);
  const size_t dash = range.find('-');
  if (dash == range.npos) return std::nullopt;
  const auto begin = number<uint64_t>(range.substr(0, dash), 16), end = number<uint64_t>(range.substr(dash + 1), 16);
  if (!begin || !end) return std::nullopt;
  Mapping m;
  m.begin = *begin, m.end = *end;
  m.permissions = next_word(line);
  next_word(line), next_word(line);
  const uint64_t inode = number<uint64_t>(next_word(line)).value_or(0);
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  m.name = line;
  m.kind = kind_of(m, inode);
  return m;
}

// Stack pointers of the threads that wait in the kernel, and of the caller. One that computes at this moment shows
// none.
std::vector<uint64_t> stack_pointers(Pid pid) {
  std::vector<uint64_t> pointers;
  const std::string folder = folder_of(pid) + "/task";
  DIR* tasks = opendir(folder.c_str());
  if (!tasks) return pointers;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string text = text_of(folder + "/" + entry->d_name + "/syscall");
    std::string_view line(text), word, before;
    line = next_line(line);
    for (std::string_view next = next_word(line); !next.empty(); next = next_word(line)) before = word, word = next;
    if (before.starts_with("0x"))
      if (const auto pointer = number<uint64_t>(before.substr(2), 16)) pointers.push_back(*pointer);
  }
  closedir(tasks);
  if (pid.value == 0) pointers.push_back(reinterpret_cast<uint64_t>(__builtin_frame_address(0)));
  return pointers;
}

struct Static {
  uint64_t begin, end;
  std::string name;
};

int add_static(dl_phdr_info* info, size_t, void* list) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || part.p_memsz == part.p_filesz) continue;
    const uint64_t begin = info->dlpi_addr + part.p_vaddr;
    const bool program = !info->dlpi_name || !*info->dlpi_name;
    static_cast<std::vector<Static>*>(list)->push_back(
        {begin, begin + part.p_memsz, program ? "program" : info->dlpi_name});
  }
  return 0;
}

// Memory that the kernel shows without a name, but the loader or a stack pointer tells what it is.
void name_the_unnamed(std::vector<Mapping>& list, Pid pid) {
  constexpr uint64_t kLargestStack = 64 << 20;  // beyond, the kernel has merged the stack with something else
  const std::vector<uint64_t> stacks = stack_pointers(pid);
  std::vector<Static> statics;
  if (pid.value == 0) dl_iterate_phdr(add_static, &statics);
  for (Mapping& m : list) {
    if (m.kind != MappingKind::kAnonymous || !m.permissions.starts_with("rw")) continue;
    if (m.end - m.begin <= kLargestStack &&
        std::ranges::any_of(stacks, [&](uint64_t p) { return m.begin <= p && p < m.end; }))
      m.kind = MappingKind::kThreadStack;
    for (const Static& s : statics)
      if (s.begin <= m.begin && m.end < s.end + 4096) m.kind = MappingKind::kStatic, m.name = s.name;
  }
}

}  // namespace

std::string_view to_string(MappingKind kind) {
  static constexpr std::string_view kNames[] = {"file",         "static data", "heap",   "stack",
                                                "thread stack", "jit code",    "kernel", "anonymous"};
  return kNames[int(kind)];
}

std::optional<Bytes> resident(Pid pid) {
  // The progress line asks once an epoch, and an epoch allocates nothing: so nothing is read through strings or streams
  // here.
  char path[32] = "/proc/self/statm", text[256];
  if (pid.value) std::snprintf(path, sizeof path, "/proc/%lld/statm", static_cast<long long>(pid.value));
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return std::nullopt;
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  if (n <= 0) return std::nullopt;
  std::string_view line(text, size_t(n));
  next_word(line);
  const auto pages = number<int64_t>(next_word(line));
  return pages ? std::optional(Bytes{*pages * sysconf(_SC_PAGESIZE)}) : std::nullopt;
}

MemoryTotals parse_totals(std::string_view status, std::string_view rollup) {
  MemoryTotals t;
  while (!status.empty()) {
    std::string_view line = next_line(status);
    const auto take = [&](std::string_view key, Bytes& into) {
      if (const auto value = kib_behind(line, key)) into = *value;
    };
    take("VmHWM:", t.peak), take("VmRSS:", t.resident), take("VmSwap:", t.swap);
    take("RssAnon:", t.anonymous), take("RssFile:", t.file), take("RssShmem:", t.shared);
    if (line.starts_with("Threads:")) next_word(line), t.threads = number<int>(next_word(line)).value_or(0);
  }
  while (!rollup.empty()) {
    const std::string_view line = next_line(rollup);
    if (const auto value = kib_behind(line, "Pss:")) t.pss = value;
    if (const auto value = kib_behind(line, "Private_Dirty:")) t.private_dirty = value;
  }
  return t;
}

std::optional<MemoryTotals> totals(Pid pid) {
  const std::string folder = folder_of(pid), status = text_of(folder + "/status");
  if (status.empty()) return std::nullopt;
  return parse_totals(status, text_of(folder + "/smaps_rollup"));
}

std::vector<Mapping> parse_mappings(std::string_view smaps) {
  std::vector<Mapping> list;
  while (!smaps.empty()) {
    const std::string_view line = next_line(smaps);
    if (line.empty()) continue;
    if (line[0] < 'A' || line[0] > 'Z') {  // addresses are lower-case hexadecimal, keys begin with a capital letter
      if (auto m = parse_header(line)) list.push_back(std::move(*m));
      continue;
    }
    if (list.empty()) continue;
    const auto take = [&](std::string_view key, Bytes& into) {
      if (const auto value = kib_behind(line, key)) into = *value;
    };
    Mapping& m = list.back();
    take("Rss:", m.resident), take("Pss:", m.pss), take("Private_Dirty:", m.private_dirty), take("Swap:", m.swap);
  }
  return list;
}

std::vector<Mapping> mappings(Pid pid) {
  std::vector<Mapping> list = parse_mappings(text_of(folder_of(pid) + "/smaps"));
  name_the_unnamed(list, pid);
  return list;
}

std::vector<MappingGroup> grouped(const std::vector<Mapping>& mappings) {
  std::map<std::string, MappingGroup> groups;
  for (const Mapping& m : mappings) {
    const bool named = m.kind == MappingKind::kFile || m.kind == MappingKind::kStatic;
    const std::string name = named ? m.name : std::string(to_string(m.kind));
    MappingGroup& g = groups.try_emplace(name, MappingGroup{name, m.kind, {}, {}, 0}).first->second;
    g.resident += m.resident;
    g.private_dirty += m.private_dirty;
    ++g.mappings;
  }
  std::vector<MappingGroup> list;
  for (auto& [name, group] : groups) list.push_back(std::move(group));
  std::ranges::stable_sort(list, std::ranges::greater{}, &MappingGroup::resident);
  return list;
}

HeapState heap_state() {
  const struct mallinfo2 info = mallinfo2();
  HeapState h;
  h.taken = Bytes{int64_t(info.arena + info.hblkhd)};
  h.in_use = Bytes{int64_t(info.uordblks + info.hblkhd)};
  h.free = Bytes{int64_t(info.fordblks)};
  // The block at the end of the main arena may never have been touched; it is the one free block whose place is known.
  const auto end = static_cast<const char*>(sbrk(0));
  const Bytes last{int64_t(info.keepcost)};
  h.free_resident = h.free - last + resident_in(end - last.value, last);
  return h;
}

Bytes resident_in(const void* begin, Bytes size) {
  const auto page = uint64_t(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uint64_t>(begin), last = first + uint64_t(std::max<int64_t>(size.value, 0));
  unsigned char in[4096];
  Bytes total;
  for (uint64_t at = first / page * page; at < last; at += sizeof in * page) {
    const uint64_t end = std::min(at + sizeof in * page, (last + page - 1) / page * page);
    if (mincore(reinterpret_cast<void*>(at), end - at, in) != 0) continue;  // a hole: nothing is mapped there
    for (uint64_t p = at; p < end; p += page)
      if (in[(p - at) / page] & 1) total += Bytes{int64_t(std::min(p + page, last) - std::max(p, first))};
  }
  return total;
}

namespace {

std::optional<Bytes> bytes_in(const std::string& path) { return number_as_bytes(text_of(path)); }  // "max" is none

// The value of `key` in a file of lines "key value".
Bytes stat_of(const std::string& path, std::string_view key) {
  const std::string text = text_of(path);
  std::string_view rest(text);
  while (!rest.empty()) {
    std::string_view line = next_line(rest);
    if (next_word(line) == key) return number_as_bytes(next_word(line)).value_or(Bytes{});
  }
  return {};
}

struct ControlFiles {
  std::string_view mount, limit, usage, droppable;
};
constexpr ControlFiles kVersion2 = {"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"};
constexpr ControlFiles kVersion1 = {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                    "total_inactive_file"};
constexpr Bytes kNoLimit{int64_t{1} << 62};  // version 1 writes about 2^63 for "none"

// A group may use no more than any of its parents. In a container the path may be the host's: then only the mount
// counts.
void limit_by_group(const std::string& root, const ControlFiles& files, std::string path, FreeMemory& free) {
  for (;;) {
    if (path == "/") path.clear();
    const std::string folder = format("{}{}{}/", root, files.mount, path);
    const auto limit = bytes_in(folder + std::string(files.limit)), usage = bytes_in(folder + std::string(files.usage));
    if (limit && usage && *limit < kNoLimit) {
      const Bytes left =
          std::max(Bytes{}, *limit - *usage + std::min(*usage, stat_of(folder + "memory.stat", files.droppable)));
      if (!free.cgroup || left < *free.cgroup) {
        free.cgroup = left;
        if (left < free.bytes) free.bytes = left, free.limited_by = format("cgroup {}", path.empty() ? "/" : path);
      }
    }
    if (path.empty()) return;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

FreeMemory memory_free_now(const std::string& root) {
  FreeMemory free;
  free.bytes = Bytes{INT64_MAX};
  const std::string meminfo = text_of(root + "/proc/meminfo");
  for (std::string_view rest(meminfo); !rest.empty();)
    if (const auto available = kib_behind(next_line(rest), "MemAvailable:")) free.machine = available;
  if (free.machine) free.bytes = *free.machine, free.limited_by = "machine";

  const std::string groups = text_of(root + "/proc/self/cgroup");  // "0::/a/b" or "4:memory:/a/b"
  for (std::string_view rest(groups); !rest.empty();) {
    const std::string_view line = next_line(rest);
    const size_t a = line.find(':'), b = line.find(':', a == line.npos ? a : a + 1);
    if (b == line.npos || b + 1 >= line.size() || line[b + 1] != '/') continue;
    const std::string controllers = format(",{},", line.substr(a + 1, b - a - 1));
    if (controllers == ",,") limit_by_group(root, kVersion2, std::string(line.substr(b + 1)), free);
    if (controllers.find(",memory,") != controllers.npos)
      limit_by_group(root, kVersion1, std::string(line.substr(b + 1)), free);
  }

  rlimit limit{};
  const std::string statm = text_of(root + "/proc/self/statm");
  std::string_view mapped(statm);
  if (const auto pages = number<int64_t>(next_word(mapped));
      pages && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur < uint64_t(kNoLimit.value)) {
    free.address_space = std::max(Bytes{}, Bytes{int64_t(limit.rlim_cur) - *pages * sysconf(_SC_PAGESIZE)});
    if (*free.address_space < free.bytes) free.bytes = *free.address_space, free.limited_by = "ulimit -v";
  }
  if (free.limited_by.empty()) free.bytes = Bytes{};
  return free;
}

}  // namespace millpond
