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
  bool verbose = false;  // evidence, rates, other findings, advice, what was measured and how
  int height = 24;  // lines of the screen: without `verbose` the answer fits on it, with an empty line above it and the
                    // file's name below
};

/// The answer, its line, the fix and the forecast, on one screen; with `verbose` also the evidence and what was
/// measured and how.
std::string doctor_text(const verdict::Evidence& evidence, const verdict::Verdict& verdict, const runfile::Meta& meta,
                        const TextStyle& style);

/// The object of `watch --json`, `check --json` and `report --json` (docs/doctor.md lists its fields).
nlohmann::ordered_json doctor_json(const verdict::Evidence& evidence, const verdict::Verdict& verdict,
                                   const runfile::Meta& meta);

/// ▁▂▃▅▇ of a series, at most `width` characters.
std::string sparkline(const std::vector<double>& values, int width);

/// Of the resident memory at the last snapshot: what allocators say is in use, what they hold free, file pages; nothing
/// by subtraction. The sampled blocks, whose lines are known, are a part of what is in use; where allocators say
/// nothing they stand for it.
struct Explained {
  Bytes resident, in_use, with_line, free, files;
  double with_line_error = 0;  // 95 %: it is sampled
  Bytes named() const {
    return in_use + free + files;
  }  // may be more than is resident: mapped and not touched, given back, or counted twice
  double share() const;  // of what is resident; above 1 where more has a name
};
std::optional<Explained> explained(const verdict::Evidence& evidence, const runfile::Meta& meta);

}  // namespace millpond::report
