#include "watch/notes.h"

#include <nlohmann/json.hpp>

namespace millpond::watch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 32;
constexpr size_t kMostLines = 200, kLongestLabel = 80;

void look_into(Json& j, const NoteRules& rules, std::vector<ToldLine>& lines) {
  if (j.is_object()) {
    const auto text = [&](const char* key) {
      const auto at = j.find(key);
      return at != j.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    const auto line = j.find("line");
    if (std::string file = text("file"); !file.empty() && line != j.end() && line->is_number_integer() && lines.size() < kMostLines)
      if (const int64_t n = line->get<int64_t>(); n > 0 && n < 1'000'000'000) lines.push_back({std::move(file), text("function"), int(n)});
    if (!rules.source) j.erase("text");
  }
  if (j.is_structured())
    for (auto& value : j) look_into(value, rules, lines);
}

}  // namespace

std::optional<ReadNote> read_note(const std::string& text, const NoteRules& rules) {
  bool too_deep = false;
  Json j = Json::parse(
      text,
      [&](int depth, Json::parse_event_t, Json&) {
        too_deep = too_deep || depth > kDeepest;
        return !too_deep;
      },
      false);
  if (too_deep || !j.is_object()) return {};
  const auto kind = j.find("note");
  const std::string name = kind != j.end() && kind->is_string() ? kind->get<std::string>() : std::string();
  ReadNote note;
  if (name == "source") {
    const auto file = j.find("file"), function = j.find("function"), first = j.find("first"), source = j.find("text");
    if (file == j.end() || !file->is_string() || source == j.end() || !source->is_string() || first == j.end() || !first->is_number_integer()) return {};
    note.source = runfile::SourceRow{*file, function != j.end() && function->is_string() ? function->get<std::string>() : "", *first, *source};
    return note;
  }
  if (const auto how = j.find("how"); (name == "process" || name == "start") && how != j.end() && how->is_string()) {
    const auto label = j.find("name");
    note.process = ToldProcess{*how == "fork" ? runfile::How::kFork : *how == "spawn" ? runfile::How::kSpawn : runfile::How::kUnknown,
                               label != j.end() && label->is_string() ? label->get<std::string>().substr(0, kLongestLabel) : std::string()};
  }
  if (!rules.arguments) j.erase("argv");
  // The type of an exception, never its text: that may hold anything the program knows, a password in an address included.
  if (const auto exception = j.find("exception"); exception != j.end() && exception->is_string()) {
    const std::string said = *exception;
    *exception = said.substr(0, said.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."));
  }
  look_into(j, rules, note.lines);
  note.text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  return note;
}

}  // namespace millpond::watch
