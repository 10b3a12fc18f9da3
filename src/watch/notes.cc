#include "watch/notes.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace millpond::watch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 32;
constexpr size_t kMostLines = 200, kLongestLabel = 80;
constexpr size_t kMostDevices = 64;

void look_into(Json& j, const NoteRules& rules, std::vector<ToldLine>& lines) {
  if (j.is_object()) {
    const auto text = [&](const char* key) {
      const auto at = j.find(key);
      return at != j.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    const auto line = j.find("line");
    if (std::string file = text("file");
        !file.empty() && line != j.end() && line->is_number_integer() && lines.size() < kMostLines)
      if (const int64_t n = line->get<int64_t>(); n > 0 && n < 1'000'000'000)
        lines.push_back({std::move(file), text("function"), int(n)});
    if (!rules.source) j.erase("text");
  }
  if (j.is_structured())
    for (auto& value : j) look_into(value, rules, lines);
}

/// "gpu:0": anything else would be a memory space that nobody knows.
bool is_gpu_space(const std::string& text) {
  return text.starts_with("gpu:") && text.size() > 4 && text.size() <= 7 &&
         text.find_first_not_of("0123456789", 4) == text.npos;
}

std::vector<runfile::PoolRow> pools_of(const Json& note) {
  std::vector<runfile::PoolRow> rows;
  const auto devices = note.find("devices"), pool = note.find("pool");
  if (devices == note.end() || !devices->is_array() || pool == note.end() || !pool->is_string()) return rows;
  for (const Json& j : *devices) {
    if (!j.is_object() || rows.size() == kMostDevices) continue;
    const auto bytes = [&](const char* key) -> std::optional<Bytes> {
      const auto at = j.find(key);
      if (at == j.end() || !at->is_number_integer()) return {};
      const int64_t n = at->get<int64_t>();
      return n >= 0 && n < int64_t{1} << 59 ? std::optional(Bytes{n}) : std::nullopt;
    };
    const auto space = j.find("space");
    const std::optional<Bytes> in_use = bytes("in_use");
    if (!in_use || space == j.end() || !space->is_string() || !is_gpu_space(*space)) continue;
    rows.push_back({.t = 0,
                    .process = {},
                    .space = *space,
                    .pool = pool->get<std::string>().substr(0, runfile::kLongestPool),
                    .in_use = *in_use,
                    .reserved = bytes("reserved"),
                    .peak = bytes("peak"),
                    .inactive_split = bytes("split"),
                    .largest_free = bytes("largest"),
                    .retries = bytes("retries").value_or(Bytes{}).value,
                    .ooms = bytes("ooms").value_or(Bytes{}).value,
                    .limit = bytes("limit")});
  }
  return rows;
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
    if (file == j.end() || !file->is_string() || source == j.end() || !source->is_string() || first == j.end() ||
        !first->is_number_integer())
      return {};
    note.source = runfile::SourceRow{
        *file, function != j.end() && function->is_string() ? function->get<std::string>() : "", *first, *source};
    return note;
  }
  if (const auto how = j.find("how"); (name == "process" || name == "start") && how != j.end() && how->is_string()) {
    const auto label = j.find("name");
    note.process = ToldProcess{
        *how == "fork"    ? runfile::How::kFork
        : *how == "spawn" ? runfile::How::kSpawn
                          : runfile::How::kUnknown,
        label != j.end() && label->is_string() ? label->get<std::string>().substr(0, kLongestLabel) : std::string()};
  }
  if (name == "gpu" && j.contains("devices")) {
    note.pools = pools_of(j);
    return note;
  }
  if (!rules.arguments) j.erase("argv");
  // The type of an exception, never its text: that may hold anything the program knows, a password in an address
  // included.
  if (const auto exception = j.find("exception"); exception != j.end() && exception->is_string()) {
    const std::string said = *exception;
    *exception =
        said.substr(0, said.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."));
  }
  look_into(j, rules, note.lines);
  note.text = j.dump(-1, ' ', false, Json::error_handler_t::replace);
  return note;
}

std::string scan_note(const RawScan& scan, const std::map<uint32_t, runfile::RowId>& sites,
                      const std::function<NativeName(uint64_t)>& variable) {
  static constexpr uint64_t kMost = uint64_t{1} << 47;  // of a process
  const auto bytes = [](uint64_t n) { return std::min(n, kMost); };
  Json groups = Json::array();
  for (const ScanGroup& g : scan.groups) {
    const auto born = sites.find(g.stack);
    if (born == sites.end()) continue;
    std::map<std::pair<std::string, std::string>, uint64_t> statics;  // by name and module
    for (int i = 0; i < kScanStatics; ++i) {
      if (!g.statics[i]) continue;
      const NativeName n = variable(g.statics[i]);
      if (n.module.empty()) continue;
      statics[{n.function, n.module}] += bytes(g.static_bytes[i]);
    }
    Json variables = Json::array(), blocks = Json::array();
    for (const auto& [name, size] : statics)
      variables.push_back({{"name", name.first}, {"module", name.second}, {"bytes", size}});
    std::stable_sort(variables.begin(), variables.end(),
                     [](const Json& a, const Json& b) { return a["bytes"] > b["bytes"]; });
    for (int i = 0; i < kScanBlocks; ++i)
      if (const auto site = sites.find(g.blocks[i]); site != sites.end())
        blocks.push_back({{"site", site->second.value}, {"bytes", bytes(g.block_bytes[i])}});
    groups.push_back({{"site", born->second.value},
                      {"samples", g.samples},
                      {"bytes", bytes(g.bytes)},
                      {"lost", bytes(g.lost)},
                      {"static", bytes(g.by_static)},
                      {"stack", bytes(g.by_stack)},
                      {"block", bytes(g.by_block)},
                      {"other", bytes(g.by_other)},
                      {"variables", std::move(variables)},
                      {"blocks", std::move(blocks)}});
  }
  const Json note = {{"note", "scan"},
                     {"seconds", double(scan.record.ns) * 1e-9},
                     {"scanned", bytes(scan.record.scanned)},
                     {"alive", bytes(scan.record.alive)},
                     {"groups", std::move(groups)}};
  return note.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace millpond::watch
