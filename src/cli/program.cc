// The program but for `main`: all commands in one parser, and what an error looks like.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>

#include "base/format.h"
#include "cli/command.h"
#include "cli/nearest.h"
#include "cli/report.h"

namespace millpond::cli {
namespace {

constexpr const char* kExamples = R"(
Examples:
  millpond plan cnn_224 --batch 32              every byte of training, before it begins
  millpond train cnn_224 --synthetic            train on made-up data, memory measured beside the plan
  millpond train model.json --data x.npy y.npy --loss mse --epochs 10 --save model.weights.h5
  millpond evaluate model.json --weights model.weights.h5 --data x.npy y.npy --loss mse
  millpond predict model.json --weights model.weights.h5 --data x.npy --out p.npy
  millpond watch -- python train.py             why does the memory of this program grow?
  millpond check --max-growth 1MB/epoch -- python train.py
  millpond bisect -- python train.py            which part of it owns the growth?
  millpond report run.pond                      the same again, from the file that watch wrote
  millpond info                                 what can be seen on this machine, and what is missing

MODEL is a built-in (tiny, mlp_small, mlp_large, mlp_784, cnn_224, resnet50, gpt2) or a file with the JSON of
Keras's model.to_json(). `millpond COMMAND --help` has the options and examples of each command.)";

// The words of the parser, in our form: what is wrong, then what to do.
Error usage_error(const CLI::ParseError& e, const CLI::App& app) {
  std::string command = "millpond";
  for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
  std::string text = e.what();
  // A word that no option takes: the parser has put it among others, so look for what looks like one.
  if (dynamic_cast<const CLI::ExtrasError*>(&e)) {
    const CLI::App* sub = app.get_subcommands().empty() ? &app : app.get_subcommands().back();
    for (const std::string& word : sub->remaining())
      if (word.size() > 1 && word[0] == '-') return unknown_option(*sub, word);
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == '.')) text.pop_back();
  if (const size_t line = text.find('\n'); line != text.npos) text.resize(line);
  return Error(Code::kUsage, text).hint(format("`{} --help` has the options", command));
}

}  // namespace

int run(int argc, char** argv) {
  const JsonTarget json = json_target(argc, argv);
  auto parser = std::make_unique<CLI::App>("Training whose memory is known before the first batch.", "millpond");
  CLI::App& app = *parser;
  app.footer(kExamples);
  app.set_version_flag("--version", "millpond " MILLPOND_VERSION);
  app.set_help_flag("-h,--help", "Show this text and end");
  app.require_subcommand(1);
  Invocation chosen;
  chosen.argv = argv;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--") {
      chosen.program.assign(argv + i + 1, argv + argc);
      argc = i;
    }
  for (const Command* command : all_commands()) command->add(app, chosen);
  try {
    const auto is_named = [&](const CLI::App* sub) { return sub->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::ranges::none_of(app.get_subcommands({}), is_named))
      throw unknown_command(app, {argv + 1, argv + argc});
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& e) {  // --help, --version
      return app.exit(e);
    } catch (const CLI::ParseError& e) {
      return report(usage_error(e, app), json);
    }
    if (chosen.done_with_parser) parser.reset();  // some hundred KiB of options that nobody asks for any more
    return chosen.run();
  } catch (const Error& e) {
    return report(e, json);
  } catch (const std::bad_alloc&) {
    return report(Error(Code::kMemory, "the system has no memory left for this"), json);
  } catch (const std::exception& e) {
    return report(Error(Code::kUnsupported, format("this should not happen: {}", e.what()))
                      .hint("please report it with the command line"),
                  json);
  }
}

}  // namespace millpond::cli
