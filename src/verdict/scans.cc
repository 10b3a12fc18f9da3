#include "verdict/scans.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "verdict/note_values.h"

namespace millpond::verdict {
namespace {

constexpr size_t kMostGroups = 64, kMostNames = 16;

}  // namespace

void NativeScan::Group::add(const Group& more) {
  bytes += more.bytes, lost += more.lost, by_static += more.by_static, by_stack += more.by_stack,
      by_block += more.by_block, by_other += more.by_other;
  for (const Variable& v : more.variables) {
    const auto same = std::ranges::find_if(
        variables, [&](const Variable& own) { return own.name == v.name && own.module == v.module; });
    if (same == variables.end())
      variables.push_back(v);
    else
      same->bytes += v.bytes;
  }
  for (const Way& w : more.ways) {
    const auto same = std::ranges::find(ways, w.site, &Way::site);
    if (same == ways.end())
      ways.push_back(w);
    else
      same->bytes += w.bytes;
  }
  std::ranges::stable_sort(variables, std::ranges::greater{}, &Variable::bytes);
  std::ranges::stable_sort(ways, std::ranges::greater{}, &Way::bytes);
}

NativeScan::Group NativeScan::of(const std::vector<int64_t>& sites) const {
  Group all;
  for (const Group& g : groups)
    if (std::ranges::find(sites, g.site) != sites.end()) all.add(g);
  return all;
}

NativeScan scan_of(const nlohmann::json& note) {
  NativeScan scan;
  for (const nlohmann::json& j : list_of(note, "groups")) {
    if (!j.is_object() || scan.groups.size() == kMostGroups) continue;
    NativeScan::Group g;
    g.site = int64_t(number_of(j, "site"));
    g.bytes = number_of(j, "bytes"), g.lost = number_of(j, "lost"), g.by_static = number_of(j, "static"),
    g.by_stack = number_of(j, "stack");
    g.by_block = number_of(j, "block"), g.by_other = number_of(j, "other");
    for (const nlohmann::json& v : list_of(j, "variables"))
      if (v.is_object() && g.variables.size() < kMostNames)
        g.variables.push_back({text_of(v, "name"), text_of(v, "module"), number_of(v, "bytes")});
    for (const nlohmann::json& b : list_of(j, "blocks"))
      if (b.is_object() && g.ways.size() < kMostNames)
        g.ways.push_back({int64_t(number_of(b, "site")), number_of(b, "bytes")});
    scan.groups.push_back(std::move(g));
  }
  return scan;
}

}  // namespace millpond::verdict
