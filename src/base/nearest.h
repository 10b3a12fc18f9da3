// nearest: what somebody meant who mistyped a word.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millpond {

/// The word that is reached by the fewest letters inserted, left out, exchanged or swapped with their neighbour;
/// nothing when that is more than a third of them.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& known);

}  // namespace millpond
