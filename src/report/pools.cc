#include "report/pools.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "report/doctor.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using verdict::Pool;

Bytes peak_of(const Pool& pool) {
  Bytes peak;
  for (const Pool::Point& p : pool.points) peak = std::max({peak, p.in_use, p.peak.value_or(Bytes{})});
  return peak;
}

}  // namespace

std::vector<PoolLine> pool_lines(const verdict::Evidence& e) {
  std::vector<PoolLine> lines;
  for (const Pool& pool : e.pools) {
    if (pool.points.empty()) continue;
    const Pool::Point &first = pool.points.front(), &last = pool.points.back();
    std::vector<double> in_use;
    for (const Pool::Point& p : pool.points) in_use.push_back(double(p.in_use.value));
    lines.push_back(
        {pool.space, format("{}: {} in use, then {}, {} at most{}{}  {}", shown(pool.name, 20), first.in_use,
                            last.in_use, peak_of(pool), last.reserved ? format("; {} reserved", *last.reserved) : "",
                            last.retries > 0 ? format("; {} retries", last.retries) : "", sparkline(in_use, 12))});
  }
  return lines;
}

nlohmann::ordered_json pools_json(const verdict::Evidence& e) {
  using Json = nlohmann::ordered_json;
  const auto bytes = [](const std::optional<Bytes>& b) { return b ? Json(b->value) : Json(); };
  Json list = Json::array();
  for (const Pool& pool : e.pools) {
    if (pool.points.empty()) continue;
    const Pool::Point &first = pool.points.front(), &last = pool.points.back();
    list.push_back({{"space", pool.space},
                    {"pool", pool.name},
                    {"in_use_first", first.in_use.value},
                    {"in_use_last", last.in_use.value},
                    {"in_use_peak", peak_of(pool).value},
                    {"reserved_first", bytes(first.reserved)},
                    {"reserved_last", bytes(last.reserved)},
                    {"inactive_split", bytes(last.inactive_split)},
                    {"largest_free", bytes(last.largest_free)},
                    {"retries", last.retries},
                    {"ooms", last.ooms},
                    {"limit", bytes(last.limit)}});
  }
  return list;
}

}  // namespace millpond::report
