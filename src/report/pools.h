// What frameworks' pools had of GPUs, for the screen and the JSON.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verdict/evidence.h"

namespace millpond::report {

struct PoolLine {
  std::string space, text;  // "gpu:0", "PyTorch has 1.2 GiB in use of 2.0 GiB reserved, ..."
};
std::vector<PoolLine> pool_lines(const verdict::Evidence& evidence);

/// Of `pools`: an object for each pool, with what was read first and last.
nlohmann::ordered_json pools_json(const verdict::Evidence& evidence);

}  // namespace millpond::report
