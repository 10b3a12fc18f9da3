#include "watch/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/format.h"
#include "probe/shared.h"

namespace millpond::watch {
namespace {

constexpr int kMostSharedFiles = 4096;  // of a folder

std::string content(const std::string& path, size_t most) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return {};
  std::string text(most, '\0');
  text.resize(std::fread(text.data(), 1, most, file));
  std::fclose(file);
  return text;
}

}  // namespace

// From /proc/<pid>/stat: the name may hold anything, so the fields are counted from its last ')'.
std::optional<TreeProcess> process_facts(Pid pid) {
  const std::string line = content(format("/proc/{}/stat", pid.value), 1023);
  const size_t open = line.find('('), close = line.rfind(')');
  if (open == line.npos || close == line.npos || close < open || line.size() < close + 5) return {};
  const char state = line[close + 2];
  TreeProcess p{pid,
                {std::atoi(line.c_str() + close + 4)},
                0,
                state == 'Z' || state == 'X',
                line.substr(open + 1, close - open - 1)};
  constexpr int kBorn = 22, kState = 3;  // numbers of fields, as proc(5) counts them
  size_t at = close + 2;
  for (int field = kState; field < kBorn && at != line.npos; ++field) at = line.find(' ', at + 1);
  if (at != line.npos) p.born = std::strtoull(line.c_str() + at, nullptr, 10);
  return p;
}

bool has_ended(Pid pid) {
  const std::optional<TreeProcess> p = process_facts(pid);
  return !p || p->zombie;
}

std::string thread_name(Pid pid, uint32_t tid) {
  std::string name = content(format("/proc/{}/task/{}/comm", pid.value, tid), 64);
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name;
}

std::string process_name(Pid pid) {
  const std::optional<TreeProcess> p = process_facts(pid);
  return p ? p->name : std::string();
}

std::string command_line(Pid pid) {
  std::string text = content(format("/proc/{}/cmdline", pid.value), 400);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  for (char& c : text)
    if (c == '\0' || c == '\n') c = ' ';
  return text;
}

namespace {

/// Every process of the machine, by its parent.
std::multimap<int, TreeProcess> all_processes() {
  std::multimap<int, TreeProcess> children;
  if (DIR* folder = opendir("/proc")) {
    while (const dirent* entry = readdir(folder)) {
      const int pid = std::atoi(entry->d_name);
      if (pid <= 0) continue;
      if (std::optional<TreeProcess> p = process_facts({pid})) children.emplace(p->parent.value, std::move(*p));
    }
    closedir(folder);
  }
  return children;
}

}  // namespace

std::vector<TreeProcess> process_tree_facts(Pid root) {
  const std::multimap<int, TreeProcess> children = all_processes();
  std::vector<TreeProcess> tree{process_facts(root).value_or(TreeProcess{root, {}, 0, false, {}})};
  for (size_t i = 0; i < tree.size(); ++i)
    for (auto [at, end] = children.equal_range(tree[i].pid.value); at != end; ++at)
      if (at->second.name != kWalkProcess) tree.push_back(at->second);
  return tree;
}

std::set<Pid> walked(const std::vector<Pid>& tree) {
  std::set<Pid> found;
  const std::multimap<int, TreeProcess> children = all_processes();
  for (const Pid pid : tree)
    for (auto [at, end] = children.equal_range(pid.value); at != end; ++at)
      if (at->second.name == kWalkProcess) found.insert(pid);
  return found;
}

std::vector<Pid> process_tree(Pid root) {
  std::vector<Pid> tree;
  for (const TreeProcess& p : process_tree_facts(root)) tree.push_back(p.pid);
  return tree;
}

TreeMemory memory_of(const std::vector<Pid>& tree, bool detailed) {
  TreeMemory sum;
  Bytes dirty, pss;
  bool whole = detailed;
  for (const Pid pid : tree) {
    if (detailed) {
      const std::optional<MemoryTotals> t = totals(pid);
      if (!t || t->resident.value == 0) continue;  // a zombie has nothing any more
      ++sum.processes;
      sum.rss = sum.rss + t->resident;
      if (t->private_dirty) dirty = dirty + *t->private_dirty;
      if (t->pss) pss = pss + *t->pss;
      whole = whole && t->private_dirty && t->pss;
      sum.each.push_back({pid, t->resident, t->shared, t->private_dirty, t->pss, t->anonymous});
    } else {
      // The short file alone: smaps_rollup would walk the page tables.
      const MemoryTotals t = parse_totals(content(format("/proc/{}/status", pid.value), 4096), "");
      if (t.resident.value == 0) continue;
      ++sum.processes;
      sum.rss = sum.rss + t.resident;
      sum.each.push_back({pid, t.resident, t.shared, {}, {}, t.anonymous});
    }
  }
  if (whole && sum.processes) sum.private_dirty = dirty, sum.pss = pss;
  return sum;
}

namespace {

const char* mapping_kind(const Mapping& m, const std::set<std::string>& with_code) {
  const bool shared = m.permissions.size() > 3 && m.permissions[3] == 's';
  switch (m.kind) {
    case MappingKind::kStack:
    case MappingKind::kThreadStack:
      return "stack";
    case MappingKind::kKernel:
      return nullptr;
    case MappingKind::kFile:
      break;
    default:
      return "anonymous";
  }
  if (m.name.starts_with("/dev/zero")) return shared ? "shared_anonymous" : "anonymous";
  for (const char* place : {"/dev/shm/", "/run/shm/", "/memfd:", "/SYSV"})
    if (m.name.starts_with(place)) return "shared_memory";
  if (m.name.starts_with("/dev/") || m.name.starts_with("anon_inode:")) return "device";
  return with_code.contains(m.name) ? "library" : "file";
}

}  // namespace

std::vector<runfile::MappingRow> mappings_by_kind(const std::vector<Mapping>& mappings, const std::string& own,
                                                  std::set<std::string>& shared_files) {
  std::set<std::string> with_code;
  for (const Mapping& m : mappings)
    if (m.kind == MappingKind::kFile && m.permissions.size() > 2 && m.permissions[2] == 'x') with_code.insert(m.name);
  std::vector<runfile::MappingRow> rows;
  for (const Mapping& m : mappings) {
    const char* const kind = m.name.starts_with(own) ? nullptr : mapping_kind(m, with_code);
    if (!kind) continue;
    if (std::string_view(kind) == "shared_memory") shared_files.insert(m.name);
    auto row = std::find_if(rows.begin(), rows.end(), [&](const runfile::MappingRow& r) { return r.kind == kind; });
    if (row == rows.end())
      row = rows.insert(
          rows.end(),
          runfile::MappingRow{
              .t = 0, .process = {}, .kind = kind, .mapped = {}, .resident = {}, .private_ = {}, .pss = {}});
    row->mapped += Bytes{int64_t(m.end - m.begin)}, row->resident += m.resident, row->private_ += m.private_dirty,
        row->pss += m.pss;
  }
  return rows;
}

std::vector<runfile::MappingRow> mappings_by_kind(Pid pid, const std::string& own,
                                                  std::set<std::string>& shared_files) {
  return mappings_by_kind(mappings(pid), own, shared_files);
}

namespace {

/// Calls `take` with each open file of a process: what /proc says it is, and where it can be asked.
template <class Take>
void each_open(Pid pid, const Take& take) {
  constexpr int kMostOpen = 4096;
  const std::string folder = format("/proc/{}/fd/", pid.value);
  DIR* entries = opendir(folder.c_str());
  if (!entries) return;
  for (int count = 0; const dirent* entry = count++ < kMostOpen ? readdir(entries) : nullptr;) {
    char link[512];
    const std::string path = folder + entry->d_name;
    const ssize_t size = readlink(path.c_str(), link, sizeof link);
    if (size > 0) take(std::string_view(link, size_t(size)), path);
  }
  closedir(entries);
}

}  // namespace

void open_files(Pid pid, const std::string& below, std::set<std::string>& found) {
  each_open(pid, [&](std::string_view link, const std::string&) {
    if (link.starts_with(below) && found.size() < kMostSharedFiles) found.emplace(link);
  });
}

void nameless_files(Pid pid, const std::string& below, NamelessFiles& found) {
  each_open(pid, [&](std::string_view link, const std::string& path) {
    struct stat facts{};
    if ((!link.starts_with(below) && !link.starts_with("/memfd:")) || !link.ends_with(" (deleted)") ||
        found.size() >= kMostSharedFiles || stat(path.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
        facts.st_nlink != 0)
      return;
    found[{facts.st_dev, facts.st_ino}] = {std::string(link), Bytes{facts.st_size},
                                           Bytes{int64_t(facts.st_blocks) * 512}};
  });
}

runfile::MappingRow shared_files_since(const std::string& place, time_t since, const std::string& own,
                                       const std::set<std::string>& mapped, std::map<std::string, Bytes>* loose) {
  runfile::MappingRow row{
      .t = 0, .process = {}, .kind = "tmpfs", .mapped = {}, .resident = {}, .private_ = {}, .pss = {}};
  const auto look_into = [&](const std::string& folder, int depth, const auto& again) -> void {
    DIR* entries = opendir(folder.c_str());
    if (!entries) return;
    for (int count = 0; const dirent* entry = count++ < kMostSharedFiles ? readdir(entries) : nullptr;) {
      const std::string path = folder + "/" + entry->d_name;
      struct statx facts{};
      if (entry->d_name[0] == '.' || path == own ||
          statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &facts) != 0)
        continue;
      if (facts.stx_uid != geteuid()) continue;
      if (S_ISDIR(facts.stx_mode) && std::string_view(entry->d_name).starts_with("millpond-"))
        continue;  // of another watcher, beside this one
      if (S_ISDIR(facts.stx_mode) && depth > 0) again(path, depth - 1, again);
      const int64_t made = facts.stx_mask & STATX_BTIME ? facts.stx_btime.tv_sec : facts.stx_ctime.tv_sec;
      if (!S_ISREG(facts.stx_mode) || made < int64_t(since)) continue;
      const Bytes held{int64_t(std::min<uint64_t>(facts.stx_blocks, uint64_t{1} << 40)) * 512};
      row.mapped += Bytes{int64_t(std::min<uint64_t>(facts.stx_size, uint64_t{1} << 49))}, row.resident += held;
      if (mapped.contains(path)) continue;
      row.private_ += held;
      if (loose && loose->size() < kMostSharedFiles) (*loose)[path] = held;
    }
    closedir(entries);
  };
  look_into(place, 1, look_into);
  return row;
}

}  // namespace millpond::watch
