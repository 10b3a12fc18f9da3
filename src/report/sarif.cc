#include "report/sarif.h"

#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kLongest = 2000;

struct Rule {
  std::string_view id, name, what;
};
constexpr Rule kRules[] = {{"leak", "MemoryLeak", "Memory grows with every round and nothing gives it back"},
                           {"growth", "MemoryGrowth", "Memory grows faster than is allowed"},
                           {"peak", "MemoryPeak", "The peak of resident memory is above what is allowed"},
                           {"baseline", "MemoryBaseline", "The peak of resident memory is above that of the baseline"},
                           {"unsure", "MemoryUnsure", "It cannot be told whether memory leaks"}};

/// A path as a URI reference: every byte that has a meaning there, or none, is escaped.
std::string uri(const std::string& path) {
  std::string out = path.starts_with('/') ? "file://" : "";
  for (const char c : path) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) || std::string_view("/-._~").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Json rule_of(const SarifResult& r) {
  const auto known = std::ranges::find(kRules, r.rule, &Rule::id);
  const bool own = known == std::end(kRules);  // a cause: its words are those of what was found
  Json rule = {{"id", r.rule},
               {"name", own ? "MemoryLeak" + r.rule : std::string(known->name)},
               {"shortDescription", {{"text", own ? std::string(kRules[0].what) : std::string(known->what)}}},
               {"defaultConfiguration", {{"level", r.level}}}};
  if (!r.help.empty()) rule["help"] = {{"text", shown_lines(r.help)}};
  return rule;
}

}  // namespace

Json sarif(const std::vector<SarifResult>& results, bool ran, std::optional<int> exit_code) {
  Json rules = Json::array(), list = Json::array();
  std::vector<std::string> ids;
  for (const SarifResult& r : results) {
    auto id = std::ranges::find(ids, r.rule);
    if (id == ids.end()) {
      rules.push_back(rule_of(r));
      ids.push_back(r.rule);
      id = ids.end() - 1;
    }
    Json result = {{"ruleId", r.rule},
                   {"ruleIndex", id - ids.begin()},
                   {"level", r.level},
                   {"message", {{"text", shown(r.text, kLongest)}}}};
    if (!r.file.empty()) {
      Json artifact = {{"uri", uri(r.file)}};
      if (!r.file.starts_with('/')) artifact["uriBaseId"] = "%SRCROOT%";
      Json region = {{"startLine", std::max(1, r.line)}};
      if (!r.snippet.empty()) region["snippet"] = {{"text", shown(r.snippet, kLongest)}};
      Json location = {
          {"physicalLocation", {{"artifactLocation", std::move(artifact)}, {"region", std::move(region)}}}};
      if (!r.function.empty())
        location["logicalLocations"] =
            Json::array({{{"fullyQualifiedName", shown(r.function, 200)}, {"kind", "function"}}});
      result["locations"] = Json::array({std::move(location)});
    }
    list.push_back(std::move(result));
  }
  Json invocation = {{"executionSuccessful", ran}};
  if (exit_code) invocation["exitCode"] = *exit_code;
  return {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs",
       Json::array(
           {{{"tool", {{"driver", {{"name", "millpond"}, {"version", MILLPOND_VERSION}, {"rules", std::move(rules)}}}}},
             {"invocations", Json::array({std::move(invocation)})},
             {"columnKind", "utf16CodeUnits"},
             {"results", std::move(list)}}})}};
}

}  // namespace millpond::report
