#include "watch/tree.h"

#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/format.h"

namespace millpond::watch {
namespace {

// From /proc/<pid>/stat: the name may hold anything, so the fields are counted from its last ')'.
std::optional<int> parent_of(int pid, std::string* name = nullptr, char* state = nullptr) {
  FILE* file = std::fopen(format("/proc/{}/stat", pid).c_str(), "re");
  if (!file) return {};
  char line[1024];
  const size_t got = std::fread(line, 1, sizeof line - 1, file);
  std::fclose(file);
  line[got] = 0;
  const char *open = std::strchr(line, '('), *close = std::strrchr(line, ')');
  if (!open || !close || close < open || std::strlen(close) < 5) return {};
  if (name) name->assign(open + 1, close);
  if (state) *state = close[2];
  return std::atoi(close + 4);
}

}  // namespace

bool has_ended(Pid pid) {
  char state = 0;
  return !parent_of(pid.value, nullptr, &state) || state == 'Z' || state == 'X';
}

std::string process_name(Pid pid) {
  std::string name;
  parent_of(pid.value, &name);
  return name;
}

std::vector<Pid> process_tree(Pid root) {
  std::multimap<int, int> children;
  if (DIR* folder = opendir("/proc")) {
    while (const dirent* entry = readdir(folder)) {
      const int pid = std::atoi(entry->d_name);
      if (pid <= 0) continue;
      if (const std::optional<int> parent = parent_of(pid)) children.emplace(*parent, pid);
    }
    closedir(folder);
  }
  std::vector<Pid> tree{root};
  for (size_t i = 0; i < tree.size(); ++i)
    for (auto [at, end] = children.equal_range(tree[i].value); at != end; ++at) tree.push_back({at->second});
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
    } else if (const std::optional<Bytes> r = resident(pid); r && r->value > 0) {
      ++sum.processes;
      sum.rss = sum.rss + *r;
    }
  }
  if (whole && sum.processes) sum.private_dirty = dirty, sum.pss = pss;
  return sum;
}

}  // namespace millpond::watch
