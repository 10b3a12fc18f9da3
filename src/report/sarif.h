// sarif: what a check found, as SARIF 2.1.0, which code scanning and editors read. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace millpond::report {

struct SarifResult {
  std::string rule, text, level;  // level: "error", "warning"
  std::string file;               // relative to the root of the sources where it lies below; empty: of no file
  std::string function, snippet, help;
  int line = 0;
};

nlohmann::ordered_json sarif(const std::vector<SarifResult>& results, bool ran, std::optional<int> exit_code);

}  // namespace millpond::report
