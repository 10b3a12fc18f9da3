#include "verdict/evidence.h"

#include <algorithm>

namespace millpond::verdict {

std::string_view to_string(Unit unit) {
  switch (unit) {
    case Unit::kBatch:
      return "batch";
    case Unit::kEpoch:
      return "epoch";
    case Unit::kModel:
      return "model";
    case Unit::kCall:
      return "call";
    case Unit::kTrace:
      return "shape";
    case Unit::kCompile:
      return "compile";
    case Unit::kLine:
      return "line";
    case Unit::kFit:
      return "fit";
    case Unit::kSecond:
      return "second";
    case Unit::kRun:
      return "run";
    case Unit::kRound:
      return "round";
    case Unit::kTask:
      return "task";
    case Unit::kRequest:
      return "request";
  }
  return "run";
}

int64_t looks(const Evidence& e) {
  const auto seen = [](const auto& moment) { return moment.rss && moment.rss->value > 0; };
  return std::ranges::count_if(e.os, seen) + std::ranges::count_if(e.marks, seen);
}

}  // namespace millpond::verdict
