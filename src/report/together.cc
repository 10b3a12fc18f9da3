#include "report/together.h"

#include <algorithm>
#include <map>

#include "base/format.h"
#include "report/text.h"
#include "runfile/rows.h"

namespace millpond::report {

bool beside_main(const verdict::Evidence& e, const verdict::SeenProcess& p) {
  if (p.row != 0 && p.row == e.process) return true;
  const auto main = std::ranges::find(e.processes, e.process, &verdict::SeenProcess::row);
  if (e.process == 0 || main == e.processes.end()) return true;
  const auto host = p.spaces.find(runfile::kHost);
  return host != p.spaces.end() && !host->second.empty() ? host->second.back().t >= main->start
                                                         : p.start >= main->start;
}

int64_t processes_seen(const verdict::Evidence& e) {
  return std::max<int64_t>(
      1, std::ranges::count_if(e.processes, [&](const verdict::SeenProcess& p) { return beside_main(e, p); }));
}

std::string Peak::name() const {
  return processes > 1 ? format("the peak of its {} processes together", processes) : "the peak";
}

Peak whole_peak(const verdict::Evidence& e) {
  const int64_t processes = processes_seen(e);
  return {processes > 1 ? std::max(e.peak_rss, e.tree_peak.value_or(Bytes{})) : e.peak_rss, processes};
}

std::vector<ProcessLine> process_lines(const verdict::Evidence& e) {
  std::vector<ProcessLine> list;
  if (processes_seen(e) < 2) return list;
  std::vector<const verdict::SeenProcess*> order;
  for (const verdict::SeenProcess& p : e.processes)
    if (beside_main(e, p)) order.push_back(&p);
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](const auto* p) { return p->row != 0 && p->row == e.process; });
  for (const verdict::SeenProcess* p : order) {
    std::map<double, Bytes> at;  // resident memory as the system tells it is host and shared together
    for (const char* space : {"host", "shared"})
      if (const auto found = p->spaces.find(space); found != p->spaces.end())
        for (const verdict::SeenProcess::Point& point : found->second)
          if (point.resident) at[point.t] += *point.resident;
    if (at.empty()) continue;
    list.push_back(
        {format("{} {}", shown(p->name.empty() ? "process" : p->name, 80), p->pid), p->pid, {at.begin(), at.end()}});
  }
  return list;
}

}  // namespace millpond::report
