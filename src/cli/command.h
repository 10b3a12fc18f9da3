// A command of the program: it adds its options to the parser and leaves behind what to do if it is the one that was
// asked for.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace millpond::cli {

struct Invocation {
  std::function<int()> run;          // of the command that was named; returns the exit code
  bool done_with_parser = false;     // while it runs it does not look at the parser, whose memory may go before
  char** argv = nullptr;             // the program's own, for the command that starts itself again
  std::vector<std::string> program;  // what came after "--": the words of a program to run, none of them ours
};

/// The whole program: parses, runs what was asked for and returns the exit code.
int run(int argc, char** argv);

/// What a file of commands/ defines, as `commands::<file name>`. The list of them is made from the names of the files.
struct Command {
  int place;                                       // in the list of --help: the least comes first
  void (*add)(CLI::App& app, Invocation& chosen);  // to the parser
};

/// All of them, in the order of their places.
std::vector<const Command*> all_commands();

namespace commands {
#define MP_COMMAND(name) extern const Command name;
#include "cli/commands/list.inc"
#undef MP_COMMAND
}  // namespace commands

enum Exit { kOk = 0, kFailed = 1, kUsageError = 2, kProgramFailed = 3, kUnsure = 4, kInterruptedByUser = 130 };

}  // namespace millpond::cli
