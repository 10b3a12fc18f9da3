// What somebody meant who mistyped an option or a command.
#pragma once
#include <string>
#include <vector>

#include "millpond/error.h"

namespace CLI {
class App;
}

namespace millpond::cli {

/// "there is no option --epcohs; did you mean --epochs?"
Error unknown_option(const CLI::App& command, const std::string& typed);
/// "there is no command wacth; did you mean watch?"; for words that look like a program, how to watch it.
Error unknown_command(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace millpond::cli
