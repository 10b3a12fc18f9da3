// Alone in its file: tests/new_command makes it anew with one command more.
#include <algorithm>

#include "cli/command.h"

namespace millpond::cli {

std::vector<const Command*> all_commands() {
  std::vector<const Command*> all = {
#define MP_COMMAND(name) &commands::name,
#include "cli/commands/list.inc"
#undef MP_COMMAND
  };
  std::ranges::stable_sort(all, {}, &Command::place);
  return all;
}

}  // namespace millpond::cli
