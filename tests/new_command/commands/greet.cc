// millpond greet NAME: a command that the program does not have.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "cli/command.h"

namespace millpond::cli {

static void add_greet(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("greet", "Say hello");
  auto name = std::make_shared<std::string>();
  sub->add_option("NAME", *name, "Whom to greet")->required();
  sub->callback([&chosen, name] {
    chosen.run = [name] {
      std::printf("hello, %s\n", name->c_str());
      return int(kOk);
    };
  });
}
constinit const Command commands::greet{45, add_greet};

}  // namespace millpond::cli
