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

void add_train(CLI::App& app, Invocation& chosen);
void add_predict(CLI::App& app, Invocation& chosen);
void add_evaluate(CLI::App& app, Invocation& chosen);
void add_plan(CLI::App& app, Invocation& chosen);
void add_watch(CLI::App& app, Invocation& chosen);
void add_check(CLI::App& app, Invocation& chosen);
void add_bisect(CLI::App& app, Invocation& chosen);
void add_report(CLI::App& app, Invocation& chosen);
void add_fix(CLI::App& app, Invocation& chosen);
void add_info(CLI::App& app, Invocation& chosen);
void add_live(CLI::App& app, Invocation& chosen);
void add_completion(CLI::App& app, Invocation& chosen);
void add_manual(CLI::App& app, Invocation& chosen);

enum Exit { kOk = 0, kFailed = 1, kUsageError = 2, kProgramFailed = 3, kUnsure = 4, kInterruptedByUser = 130 };

}  // namespace millpond::cli
