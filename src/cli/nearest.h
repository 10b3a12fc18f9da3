// What somebody meant who mistyped a word.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "millpond/error.h"

namespace CLI {
class App;
}

namespace millpond::cli {

/// The word that is reached by the fewest letters inserted, left out, exchanged or swapped with their neighbour; nothing when that is more than a third of them.
std::optional<std::string> nearest(const std::string& typed, const std::vector<std::string>& known);

/// "there is no option --epcohs; did you mean --epochs?"
Error unknown_option(const CLI::App& command, const std::string& typed);
/// "there is no command wacth; did you mean watch?"; for words that look like a program, how to watch it.
Error unknown_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace millpond::cli
