// Runs that were recorded on real machines (tests/gpu/record.py), judged again: each file holds the tables of a run
// file and what is true of the program.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/temporary_folder.h"
#include "runfile/schema.h"
#include "runfile/sqlite.h"
#include "verdict/children.h"
#include "verdict/read.h"
#include "verdict/verdict.h"

namespace millpond::verdict {
namespace {

using nlohmann::json;

std::string literal(const json& value) {
  if (value.is_null()) return "NULL";
  if (!value.is_string()) return value.dump();
  std::string text = "'";
  for (const char c : value.get<std::string>()) text += c == '\'' ? std::string("''") : std::string(1, c);
  return text + "'";
}

std::string rebuilt(const json& tables, const std::string& path) {
  runfile::Database db(path, runfile::Database::Mode::kCreate);
  db.run(format("PRAGMA application_id = {}; PRAGMA user_version = {}; BEGIN", runfile::kApplicationId,
                runfile::kSchemaVersion));
  db.run(runfile::kSchema);
  for (const auto& [name, table] : tables.items()) {
    std::string columns;
    for (const json& column : table["columns"])
      columns += format("{}\"{}\"", columns.empty() ? "" : ", ", column.get<std::string>());
    for (const json& row : table["rows"]) {
      std::string values;
      for (const json& value : row) values += (values.empty() ? "" : ", ") + literal(value);
      db.run(format("INSERT OR REPLACE INTO {} ({}) VALUES ({})", name, columns, values));
    }
  }
  db.run("COMMIT");
  return path;
}

Verdict judged(const runfile::Reader& file) {
  const Evidence main = read_evidence(file);
  Verdict v = judge(main);
  std::vector<Evidence> children;
  for (const SeenProcess& p : main.processes)
    if (p.row != 0 && p.row != main.process && p.seen == "inside")
      children.push_back(read_evidence(file, runfile::RowId{p.row}));
  add_children(main, children, v);
  return v;
}

bool holds(const json& list, const json& value) { return std::ranges::find(list, value) != list.end(); }

}  // namespace

TEST_CASE("recorded: every run is judged as what it is, with its memory, line, holder and rate") {
  int runs = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/verdict/recorded")) {
    if (entry.path().extension() != ".json") continue;
    ++runs;
    CAPTURE(entry.path().filename().string());
    CHECK(entry.file_size() <= 200'001);
    const json recorded = json::parse(std::ifstream(entry.path()));
    const json& truth = recorded["truth"];
    const TemporaryFolder folder("recorded");
    const Verdict v = judged(runfile::Reader(rebuilt(recorded["tables"], folder.path() + "/run.pond")));
    CAPTURE(v.sentence);
    CHECK(holds(truth["verdict"], std::string(to_string(v.kind))));
    const auto first = std::ranges::find_if(v.findings, [](const Finding& f) { return f.sets_verdict; });
    if (truth.contains("space")) {
      REQUIRE(first != v.findings.end());
      CHECK(first->space == truth["space"].get<std::string>());
    }
    if (truth.contains("blame")) {
      REQUIRE(first->blame);
      CHECK(holds(truth["lines"]["blame"], first->blame->line) !=
            holds(truth["lines"].value("or", json::array()), first->blame->line));
    }
    if (truth.contains("holder")) {
      std::string held = first->holder;
      for (const std::string& step : first->chain) held += " " + step;
      CHECK(held.find(truth["holder"].get<std::string>()) != held.npos);
    }
    if (truth.contains("bytes_per_round"))
      CHECK(first->bytes_per_unit == doctest::Approx(truth["bytes_per_round"].get<double>()).epsilon(0.15));
  }
  CHECK(runs > 0);
}

TEST_CASE("recorded: the kernel's high-water mark is of the process that was started, not of its children") {
  const json recorded = json::parse(std::ifstream("tests/verdict/recorded/gpu_two_processes.json"));
  const TemporaryFolder folder("recorded");
  const runfile::Reader file(rebuilt(recorded["tables"], folder.path() + "/run.pond"));
  const Evidence main = read_evidence(file);
  for (const SeenProcess& p : main.processes) {
    if (p.row == 0 || p.row == main.process) continue;
    const Evidence child = read_evidence(file, runfile::RowId{p.row});
    CHECK(child.peak_rss == child.sampled_peak);
  }
}

}  // namespace millpond::verdict
