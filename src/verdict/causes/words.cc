#include "verdict/causes/words.h"

#include <array>
#include <regex>

#include "base/format.h"

namespace millpond::verdict {

std::string file_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string at(const Place& place) {
  if (place.file.empty()) return place.function;
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

std::string every(const Case& c) { return format("every {}", to_string(c.periods.unit)); }

std::string often(double times) { return times < 1.5 ? "once" : format("{:.0f} times", times); }

std::optional<Addition> addition(const std::string& text) {
  // The last bracket closes the call: arguments may hold calls themselves.
  static const std::regex call(R"(^(.*?)([A-Za-z_][\w.]*(?:\[[^\]]*\][\w.]*)*)\.(append|add|appendleft|extend)\((.*)\)\s*(#.*)?$)");
  static const std::regex assign(R"(^\s*([\w.]+\[[^\]]+\])\s*=\s*([^=].*)$)");
  std::smatch m;
  if (std::regex_match(text, m, call))
    return Addition{m[1].str() + m[2].str() + "." + m[3].str() + "(", m[2], m[4], ")"};
  if (std::regex_match(text, m, assign)) return Addition{m[1].str() + " = ", m[1], m[2], ""};
  return {};
}

std::string keep_less(const Container& c, bool tensor) {
  const std::optional<Addition> add = addition(c.place.snippet);
  const std::string where = c.place.line ? format(" ({})", at(c.place)) : "";
  if (!add)
    return format(
        "Do not keep every item{}: keep a number of each, write them to disk, or bound the container "
        "(collections.deque(maxlen=...)).",
        where);
  // A bare name can be asked for a number; what a call or a tuple holds is not known from here.
  const bool bare = std::regex_match(add->argument, std::regex(R"([\w.]+)"));
  const bool numbers = contains(lower(c.item_type), "ndarray") || contains(lower(c.item_type), "array");
  const std::string bounded = contains(add->target, "[") ? "a `collections.deque(maxlen=...)` in place of each list"
                                                         : format("`{} = collections.deque(maxlen=...)`", add->target);
  if (tensor && bare)
    return format("Write `{}{}.item(){}` (a number), or `{}.detach().cpu()` if the values are needed, instead of `{}`.",
                  add->before, add->argument, add->after, add->argument, c.place.snippet);
  if (numbers && bare)
    return format("Write `{}float({}.mean()){}` instead of `{}`: keep a number, or write the array to disk.",
                  add->before, add->argument, add->after, c.place.snippet);
  if (c.type == "dict" || contains(add->before, "] = "))
    return format(
        "`{}` keeps every value: delete entries that are no longer needed, or use functools.lru_cache(maxsize=...) or "
        "an OrderedDict with a limit.",
        c.place.snippet);
  return format("Take out `{}`, keep a running number instead of the items, or bound it: {}.", c.place.snippet,
                bounded);
}

bool is_model(const std::string& type) {
  const std::string t = lower(type);
  return contains(t, "sequential") || contains(t, "functional") || t.ends_with("model");
}

bool is_tensor(const std::string& type) { return contains(lower(type), "tensor"); }

bool is_figure(const std::string& type) { return contains(lower(type), "figure"); }

bool is_container(const std::string& type) {
  constexpr std::array<std::string_view, 5> kinds = {"list", "dict", "set", "deque", "tuple"};
  return std::ranges::find(kinds, type) != kinds.end();
}

}  // namespace millpond::verdict
