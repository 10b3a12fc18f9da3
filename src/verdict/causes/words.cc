#include "verdict/causes/words.h"

#include <algorithm>
#include <array>

#include "base/format.h"
#include "verdict/numbers.h"

namespace millpond::verdict {

std::string file_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string at(const Place& place) {
  if (place.file.empty()) return place.function;
  // Python's own names for programs that have no file.
  for (const auto& [file, words] : {std::pair{"<string>", "the program given with -c"},
                                    std::pair{"<stdin>", "the program read from standard input"}})
    if (place.file == file) return place.line > 0 ? format("{}, line {}", words, place.line) : words;
  return place.line > 0 ? format("{}:{}", file_name(place.file), place.line) : file_name(place.file);
}

std::string tell(const Place& place) {
  if (place.function.empty() || place.function == "<module>") return at(place);
  return format("`{}` ({})", place.function, at(place));
}

std::string tell(const Container& c) {
  const std::string kind = c.type.empty() ? "container" : c.type;
  const std::string name = c.holder.empty() ? (c.chain.size() > 1 ? c.chain[1] : "") : c.holder;
  return name.empty() ? kind : format("{} {}", kind, name);
}

std::string code(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n')
      line += ' ';
    else if (c != ' ' || line.empty() || line.back() != ' ')
      line += c;
  }
  // As in Markdown: a fence longer than any run of backticks inside.
  size_t longest = 0, run = 0;
  for (const char c : line) longest = std::max(longest, run = c == '`' ? run + 1 : 0);
  const std::string fence(longest + 1, '`');
  const bool touches = longest > 0 && (line.front() == '`' || line.back() == '`');
  return touches ? format("{0} {1} {0}", fence, line) : fence + line + fence;
}

std::string named(const Container& c) {
  std::string name = c.holder.empty() ? (c.chain.size() > 1 ? c.chain[1] : "") : c.holder;
  std::ranges::replace(name, '`', '\'');  // a name ends where the next one stands
  const std::string kind = c.type.empty() ? "container" : c.type;
  return name.empty() ? format("a {}", kind) : format("the {} `{}`", kind, name);
}

std::string every(const Case& c) { return each(c.periods.unit); }

std::string often(double times) { return times < 1.5 ? "once" : format("{:.0f} times", times); }

bool is_model(const std::string& type) {
  return type == "Sequential" || type == "Functional" || type == "Model";  // Keras's own
}

bool is_tensor(const std::string& type) {
  const size_t of = type.rfind(" of ");  // "tuple of Tensor", as the agent says
  const std::string item = of == type.npos ? type : type.substr(of + 4);
  return item == "Tensor" || item == "Parameter" || item == "EagerTensor" || item == "Tensor with grad_fn";
}

bool keeps_graph(const Container& c) {
  return c.type == "chain of tensors" || c.item_type.ends_with("Tensor with grad_fn");
}

bool is_figure(const std::string& type) { return type == "Figure"; }

bool is_container(const std::string& type) {
  constexpr std::array<std::string_view, 7> kinds = {"list",  "dict",        "set",        "deque",
                                                     "tuple", "OrderedDict", "defaultdict"};
  return std::ranges::find(kinds, type.starts_with("collections.") ? type.substr(type.find('.') + 1) : type) !=
         kinds.end();
}

}  // namespace millpond::verdict
