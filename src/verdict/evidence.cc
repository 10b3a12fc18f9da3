#include "verdict/evidence.h"

#include <algorithm>

namespace millpond::verdict {

std::string_view to_string(Unit unit) {
  constexpr std::array<std::string_view, 13> kNames = {"batch", "epoch",  "model", "call",  "shape", "compile", "line",
                                                       "fit",   "second", "run",   "round", "task",  "request"};
  return kNames.at(size_t(unit));
}

int64_t looks(const Evidence& e) {
  const auto seen = [](const auto& moment) { return moment.rss && moment.rss->value > 0; };
  return std::ranges::count_if(e.os, seen) + std::ranges::count_if(e.marks, seen);
}

}  // namespace millpond::verdict
