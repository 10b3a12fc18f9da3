// millpond completion SHELL: the script that completes commands, options, built-in models and run files.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/format.h"
#include "cli/builtin.h"
#include "cli/command.h"
#include "millpond/optimizers.h"
#include "nn/loss.h"

namespace millpond::cli {
namespace {

struct Words {
  std::string commands, models, optimizers, losses;
  std::vector<std::string> of_models;                        // commands whose first word is a MODEL
  std::vector<std::pair<std::string, std::string>> options;  // of each command
};

Words words_of(const CLI::App& app) {
  Words w;
  for (const CLI::App* sub : app.get_subcommands({})) {
    if (sub->get_group().empty()) continue;  // not for people
    w.commands += sub->get_name() + " ";
    if (sub->get_option_no_throw("MODEL")) w.of_models.push_back(sub->get_name());
    std::string options;
    for (const CLI::Option* o : sub->get_options())
      if (!o->get_group().empty())  // not an older name, and not one that only our own code says
        for (const std::string& name : o->get_lnames()) options += "--" + name + " ";
    w.options.emplace_back(sub->get_name(), options);
  }
  for (const Builtin& b : builtins()) w.models += std::string(b.name) + " ";
  for (const std::string& name : Optimizer::known()) w.optimizers += (w.optimizers.empty() ? "" : " ") + name;
  for (const nn::LossClass& c : nn::loss_classes()) w.losses += (w.losses.empty() ? "" : " ") + c.names[0];
  return w;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : between) + word;
  return all;
}

std::string bash(const Words& w) {
  std::string cases;
  for (const auto& [command, options] : w.options) cases += format("    {}) options=\"{}\" ;;\n", command, options);
  return format(R"(# bash: source <(millpond completion bash)
_millpond() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} options=
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then COMPREPLY=($(compgen -W "{}--help --version" -- "$word")); return; fi
  case ${{COMP_WORDS[1]}} in
{}  esac
  case $before in
    --optimizer) COMPREPLY=($(compgen -W "{}" -- "$word")) ;;
    --loss) COMPREPLY=($(compgen -W "{}" -- "$word")) ;;
    --data|--weights|--save|--run|--json|--out|--collapsed|--speedscope|--pprof|--suppress|--baseline|--junit|--sarif) COMPREPLY=($(compgen -f -- "$word")) ;;
    *) case $word in
         -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
         *) if [ "$COMP_CWORD" = 2 ] && [ "${{COMP_WORDS[1]}}" = completion ]; then COMPREPLY=($(compgen -W "bash zsh fish" -- "$word"))
            elif [ "${{COMP_WORDS[1]}}" = report ]; then COMPREPLY=($(compgen -f -X '!*.pond' -- "$word"))
            elif [ "${{COMP_WORDS[1]}}" = fix ]; then COMPREPLY=($(compgen -f -- "$word"))
            elif [[ " watch check bisect " == *" ${{COMP_WORDS[1]}} "* ]]; then COMPREPLY=($(compgen -c -f -- "$word"))
            elif [ "$COMP_CWORD" = 2 ] && [[ " {} " == *" ${{COMP_WORDS[1]}} "* ]]; then COMPREPLY=($(compgen -W "{}" -- "$word") $(compgen -f -X '!*.json' -- "$word"))
            else COMPREPLY=($(compgen -f -- "$word")); fi ;;
       esac ;;
  esac
}}
complete -o filenames -F _millpond millpond
)",
                w.commands, cases, w.optimizers, w.losses, joined(w.of_models, " "), w.models);
}

std::string zsh(const Words& w) {
  std::string cases;
  for (const auto& [command, options] : w.options) cases += format("    {}) options=({}) ;;\n", command, options);
  return format(R"(#compdef millpond
# zsh: millpond completion zsh > a folder of $fpath, named _millpond
_millpond() {{
  local -a options
  if (( CURRENT == 2 )); then compadd -- {}--help --version; return; fi
  case $words[2] in
{}  esac
  case $words[CURRENT-1] in
    --optimizer) compadd -- {}; return ;;
    --loss) compadd -- {}; return ;;
    --data|--weights|--save|--run|--json|--out|--collapsed|--speedscope|--pprof|--suppress|--baseline|--junit|--sarif) _files; return ;;
  esac
  if [[ $words[CURRENT] == -* ]]; then compadd -- $options
  elif (( CURRENT == 3 )) && [[ $words[2] == completion ]]; then compadd -- bash zsh fish
  elif [[ $words[2] == report ]]; then _files -g '*.pond'
  elif [[ $words[2] == fix ]]; then _files
  elif [[ $words[2] == (watch|check|bisect) ]]; then _command_names -e; _files
  elif (( CURRENT == 3 )) && [[ $words[2] == ({}) ]]; then compadd -- {}; _files -g '*.json'
  else _files; fi
}}
_millpond "$@"
)",
                w.commands, cases, w.optimizers, w.losses, joined(w.of_models, "|"), w.models);
}

std::string fish(const Words& w) {
  std::string text = "# fish: millpond completion fish > ~/.config/fish/completions/millpond.fish\n";
  text += format("complete -c millpond -f -n __fish_use_subcommand -a '{}'\n", w.commands);
  for (const auto& [command, options] : w.options) {
    const std::string seen = format("__fish_seen_subcommand_from {}", command);
    if (command == "completion") {
      text += format("complete -c millpond -f -n '{}' -a 'bash zsh fish'\n", seen);
      continue;
    }
    // The others take files and programs, which fish offers by itself.
    if (std::ranges::find(w.of_models, command) != w.of_models.end())
      text += format("complete -c millpond -n '{}' -a '{}'\n", seen, w.models);
    for (size_t at = 0; at < options.size();) {
      const size_t end = options.find(' ', at);
      text += format("complete -c millpond -n '{}' -l {}\n", seen, options.substr(at + 2, end - at - 2));
      at = end + 1;
    }
  }
  return text;
}

}  // namespace

static void add_completion(CLI::App& app, Invocation& chosen) {
  CLI::App* sub = app.add_subcommand("completion", "Print the completion script of a shell");
  auto shell = std::make_shared<std::string>();
  sub->add_option("SHELL", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  sub->footer(
      "\nExamples:\n  source <(millpond completion bash)\n  millpond completion fish > "
      "~/.config/fish/completions/millpond.fish");
  sub->callback([&app, &chosen, shell] {
    chosen.run = [&app, shell] {
      const Words w = words_of(app);
      const std::string text = *shell == "bash" ? bash(w) : *shell == "zsh" ? zsh(w) : fish(w);
      std::fputs(text.c_str(), stdout);
      return int(kOk);
    };
  });
}
constinit const Command commands::completion{120, add_completion};

}  // namespace millpond::cli
