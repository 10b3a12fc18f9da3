#include "cli/nearest.h"

#include <CLI/CLI.hpp>

#include "base/format.h"
#include "base/nearest.h"
#include "report/text.h"
#include "watch/patient.h"

namespace millpond::cli {
namespace {

bool is_program(const std::string& word) {
  try {
    watch::find_program(word);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

Error unknown_option(const CLI::App& command, const std::string& typed) {
  const std::string name = typed.substr(0, typed.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* o : command.get_options()) {
    if (o->get_group().empty()) continue;  // an older name
    for (const std::string& word : o->get_lnames()) known.push_back("--" + word);
  }
  const std::optional<std::string> meant = nearest(name, known);
  const std::string of = command.get_parent() ? format("millpond {}", command.get_name()) : "millpond";
  return Error(Code::kUsage, format("{}: there is no option {}", of, report::shown(name, 60)))
      .hint(meant ? format("did you mean {}?", *meant) : format("`{} --help` has the options", of));
}

Error unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<std::string> known;
  std::string all;
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!sub->get_group().empty()) known.push_back(sub->get_name()), all += (all.empty() ? "" : ", ") + sub->get_name();
  Error error(Code::kUsage, format("there is no command {}", report::shown(words[0], 60)));
  if (const std::optional<std::string> meant = nearest(words[0], known))
    return error.hint(format("did you mean {}?", *meant));
  if (words[0].ends_with(".py"))
    return error.hint(format("did you mean `millpond watch -- python {}`?", report::shown(words[0], 60)));
  if (is_program(words[0]))
    return error.hint(
        format("did you mean `millpond watch -- {}{}`?", report::shown(words[0], 60), words.size() > 1 ? " ..." : ""));
  return error.hint(format("there are: {}", all));
}

}  // namespace millpond::cli
