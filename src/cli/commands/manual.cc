// millpond manual: the man page, made of what the parser knows, so that it says what --help says. Run by the build,
// hidden from people.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "cli/command.h"
#include "cli/report.h"

namespace millpond::cli {
namespace {

// Text that roff must not read as its own: a backslash, a hyphen that is to be copied, a dot or an apostrophe that
// begins a line.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (out.empty() || out.back() == '\n')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
  }
  return out;
}

// Line by line as it is written: examples, and the table of exit codes after them.
std::string as_written(std::string_view text) {
  while (text.starts_with('\n')) text.remove_prefix(1);
  return text.empty() ? "" : format(".PP\n.nf\n{}\n.fi\n", escaped(text));
}

std::string names_of(const CLI::Option& o) {
  if (o.get_positional()) return o.get_name(true);
  std::string names;
  for (const std::string& name : o.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : o.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  return names;
}

std::string options_of(const CLI::App& app) {
  const auto look = std::dynamic_pointer_cast<CLI::Formatter>(app.get_formatter());
  std::string text;
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_group().empty() || (app.get_parent() && o == app.get_help_ptr())) continue;
    const std::string value = look ? look->make_option_opts(o) : "";
    text += format(".TP\n\\fB{}\\fR{}\n{}\n", escaped(names_of(*o)), escaped(value), escaped(o->get_description()));
  }
  return text;
}

std::string manual(const CLI::App& app) {
  std::string description = app.get_description();
  if (description.ends_with('.')) description.pop_back();
  std::string text = format(".TH MILLPOND 1 \"\" \"millpond {}\" \"User Commands\"\n.SH NAME\nmillpond \\- {}\n",
                            MILLPOND_VERSION, escaped(description));
  text += ".SH SYNOPSIS\n.B millpond\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n.SH OPTIONS\n" + options_of(app) +
          ".SH COMMANDS\n";
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_group().empty()) continue;  // not for people
    text += format(".SS millpond {}\n{}.\n{}{}", sub->get_name(), escaped(sub->get_description()), options_of(*sub),
                   as_written(sub->get_footer()));
  }
  std::string footer = app.get_footer();
  if (const size_t head = footer.find("Examples:\n"); head != footer.npos) footer.erase(0, head + 10);
  return text + ".SH EXAMPLES\n" + as_written(footer);
}

}  // namespace

static void add_manual(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("manual", "Print the man page");
  sub->group("");  // for the build
  auto out = std::make_shared<std::string>("-");
  sub->add_option("-o,--out", *out, "To FILE, or - for standard output");
  sub->callback([&app, &chosen, out] {
    chosen.run = [&app, out] {
      write_to(*out, manual(app));
      return int(kOk);
    };
  });
}
constinit const Command commands::manual{130, add_manual};

}  // namespace millpond::cli
