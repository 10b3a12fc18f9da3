// doctor: what was found out about a watched run, as text for a terminal and as JSON. Pure: values in, text out.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "runfile/rows.h"
#include "verdict/evidence.h"
#include "verdict/verdict.h"

namespace millpond::report {

struct TextStyle {
  bool color = false;
  int width = 100;
};

/// One screen: the answer, the evidence, the fix, the forecast, what was measured and how.
std::string doctor_text(const verdict::Evidence& evidence, const verdict::Verdict& verdict, const runfile::Meta& meta, const TextStyle& style);

/// The object of `watch --json`, `check --json` and `report --json` (docs/doctor.md lists its fields).
nlohmann::ordered_json doctor_json(const verdict::Evidence& evidence, const verdict::Verdict& verdict, const runfile::Meta& meta);

/// ▁▂▃▅▇ of a series, at most `width` characters.
std::string sparkline(const std::vector<double>& values, int width);

/// Of the resident memory at the last snapshot: sampled blocks, what allocators hold free, file pages; nothing by subtraction.
struct Explained {
  Bytes resident, blocks, free, files;
  double share() const;
};
std::optional<Explained> explained(const verdict::Evidence& evidence, const runfile::Meta& meta);

}  // namespace millpond::report
