#include "verdict/forecast.h"

#include <algorithm>

namespace millpond::verdict {

std::optional<Forecast> forecast(const Case& c, Unit unit) {
  const Growth& g = c.growth;
  const Slope slope = g.ahead();
  if (!c.leaking() || slope.value <= 0 || slope.range.low <= 0 || c.evidence.limits.empty()) return {};
  const Series& now = g.by_tree ? c.periods.tree : c.periods.rss;
  if (now.empty() || c.periods.seconds <= 0) return {};
  const Limit* nearest = nullptr;
  for (const Limit& limit : c.evidence.limits)
    if (limit.bytes.value > 0 && (!nearest || limit.bytes < nearest->bytes)) nearest = &limit;
  if (!nearest) return {};
  const double room = std::max(0.0, double(nearest->bytes.value) - now.y.back());
  Forecast f;
  f.limit = nearest->name;
  f.bytes = nearest->bytes;
  const double left = room / slope.value;
  f.seconds = left * c.periods.seconds;
  f.seconds_range = {room / std::max(slope.range.high, slope.value) * c.periods.seconds,
                     room / slope.range.low * c.periods.seconds};
  f.unit = unit;
  if (c.periods.unit == Unit::kSecond || c.periods.unit == Unit::kRun) return f;
  if (unit == c.periods.unit) {
    // Marks may count from anywhere and start again with each fit: go on from the highest only where it runs with the
    // periods.
    const int64_t last = c.periods.marks.back()->index, first = c.periods.marks.front()->index;
    const bool counts = last - first == int64_t(c.periods.size()) - 1;
    f.units_left = left;
    f.unit_index = (counts ? double(last) : double(c.periods.size())) + left;
  } else if (const double rate = c.periods.rate(unit); rate > 0) {
    f.units_left = left * rate;
    f.unit_index = c.periods.counted(unit).y.back() + f.units_left;
  }
  return f;
}

}  // namespace millpond::verdict
