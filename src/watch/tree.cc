#include "watch/tree.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/format.h"
#include "probe/shared.h"

namespace millpond::watch {
namespace {

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
  TreeProcess p{pid, {std::atoi(line.c_str() + close + 4)}, 0, state == 'Z' || state == 'X', line.substr(open + 1, close - open - 1)};
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

bool is_walked(const std::vector<Pid>& tree) {
  const std::multimap<int, TreeProcess> children = all_processes();
  for (const Pid pid : tree)
    for (auto [at, end] = children.equal_range(pid.value); at != end; ++at)
      if (at->second.name == kWalkProcess) return true;
  return false;
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
      sum.each.push_back({pid, t->resident, t->shared, t->private_dirty});
    } else {
      // The short file alone: smaps_rollup would walk the page tables.
      const MemoryTotals t = parse_totals(content(format("/proc/{}/status", pid.value), 4096), "");
      if (t.resident.value == 0) continue;
      ++sum.processes;
      sum.rss = sum.rss + t.resident;
      sum.each.push_back({pid, t.resident, t.shared, {}});
    }
  }
  if (whole && sum.processes) sum.private_dirty = dirty, sum.pss = pss;
  return sum;
}

}  // namespace millpond::watch
