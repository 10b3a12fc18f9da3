// RunTables: a run file made through SQL, by a program that need not be Millpond: SQLite finds it well formed, whatever
// its cells hold. Costs one file of some 60 KiB in /dev/shm while it lives.
#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format.h"
#include "fuzz/input_file.h"
#include "runfile/rows.h"
#include "runfile/schema.h"

namespace millpond::fuzz {

struct Cell {
  enum class Kind { kNull, kInteger, kReal, kText, kBlob } kind = Kind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string text{};
};
inline Cell whole(int64_t value) { return {.kind = Cell::Kind::kInteger, .integer = value}; }
inline Cell real(double value) { return {.kind = Cell::Kind::kReal, .real = value}; }
inline Cell text(std::string value) { return {.kind = Cell::Kind::kText, .text = std::move(value)}; }

struct TableLayout {
  const char *name, *columns;  // one letter for each: i an integer, r a real number, t a text
};
constexpr TableLayout kLayout[] = {{"meta", "tt"},
                                   {"accounts", "it"},
                                   {"phases", "ittiirr"},
                                   {"series", "riiiiti"},
                                   {"os_series", "riiiiiiiiiii"},
                                   {"programs", "itiiirt"},
                                   {"plan_buffers", "ititiiii"},
                                   {"plan_calls", "iittti"},
                                   {"processes", "iiittrrt"},
                                   {"frames", "ittiii"},
                                   {"sites", "iitiri"},
                                   {"marks", "iirttiiiiiiiiiit"},
                                   {"site_states", "iiirt"},
                                   {"tree_series", "riiiiii"},
                                   {"notes", "rit"},
                                   {"spaces", "it"},
                                   {"process_series", "riiiii"},
                                   {"sources", "ittit"},
                                   {"gpus", "itiii"},
                                   {"gpu_series", "riiiii"},
                                   {"threads", "iiit"},
                                   {"site_details", "iii"},
                                   {"sizes", "iiriii"}};
constexpr int kMinor = 1;  // of the schema: with all tables above
constexpr int kTableCount = int(std::size(kLayout));

class RunTables {
 public:
  /// `strict`: with the types and constraints that Millpond's own files have; otherwise any cell may hold anything.
  explicit RunTables(bool strict) : file_(of_layout(strict)) {
    open(file_.path());
    run("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
    for (const TableLayout& t : kLayout) {
      std::string sql = format("INSERT OR IGNORE INTO {} VALUES (?", t.name);
      for (size_t i = 1; i < std::strlen(t.columns); ++i) sql += ", ?";
      sqlite3_stmt* s = nullptr;
      if (sqlite3_prepare_v2(db_, (sql + ")").c_str(), -1, &s, nullptr) != SQLITE_OK) std::abort();
      inserts_.push_back(s);
    }
  }
  ~RunTables() { close(); }
  RunTables(const RunTables&) = delete;
  RunTables& operator=(const RunTables&) = delete;

  /// A row that the constraints refuse is left out.
  void add(size_t table, std::span<const Cell> cells) {
    sqlite3_stmt* s = inserts_[table];
    for (size_t i = 0; i < cells.size(); ++i) {
      const Cell& c = cells[i];
      const int place = int(i) + 1, size = int(c.text.size());
      switch (c.kind) {
        case Cell::Kind::kNull:
          sqlite3_bind_null(s, place);
          break;
        case Cell::Kind::kInteger:
          sqlite3_bind_int64(s, place, c.integer);
          break;
        case Cell::Kind::kReal:
          sqlite3_bind_double(s, place, c.real);
          break;
        case Cell::Kind::kText:
          sqlite3_bind_text(s, place, c.text.data(), size, SQLITE_TRANSIENT);
          break;
        case Cell::Kind::kBlob:
          sqlite3_bind_blob(s, place, c.text.data(), size, SQLITE_TRANSIENT);
          break;
      }
    }
    sqlite3_step(s);
    sqlite3_reset(s);
  }

  /// Nothing can be added after this.
  const std::string& save() {
    run("COMMIT");
    close();
    return file_.path();
  }

 private:
  void open(const std::string& path) {
    if (sqlite3_open(path.c_str(), &db_) != SQLITE_OK) std::abort();
  }
  void run(const std::string& sql) {
    if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) std::abort();
  }
  void close() {
    for (sqlite3_stmt* s : inserts_) sqlite3_finalize(s);
    inserts_.clear();
    sqlite3_close(db_);
    db_ = nullptr;
  }

  // Made once: setting up all the tables takes longer than everything else.
  InputFile of_layout(bool strict) {
    static std::string made[2];
    std::string& bytes = made[strict];
    if (bytes.empty()) {
      open(":memory:");
      run(format("PRAGMA page_size = 1024; PRAGMA application_id = {}; PRAGMA user_version = {}",
                 runfile::kApplicationId, runfile::kSchemaVersion));
      run(strict ? runfile::kSchema : loose());
      sqlite3_int64 size = 0;
      unsigned char* data = sqlite3_serialize(db_, "main", &size, 0);
      bytes.assign(reinterpret_cast<char*>(data), size_t(size));
      sqlite3_free(data);
      close();
    }
    return InputFile(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }

  /// The tables of the schema with the names of their columns and nothing else.
  std::string loose() {
    sqlite3* pattern = nullptr;
    std::string sql;
    if (sqlite3_open(":memory:", &pattern) != SQLITE_OK ||
        sqlite3_exec(pattern, runfile::kSchema, nullptr, nullptr, nullptr) != SQLITE_OK)
      std::abort();
    const auto add = [](void* to, int, char** values, char**) {
      *static_cast<std::string*>(to) += format("CREATE TABLE {} ({});", values[0], values[1]);
      return 0;
    };
    sqlite3_exec(pattern,
                 "SELECT s.name, group_concat('\"' || c.name || '\"') FROM sqlite_schema s, pragma_table_info(s.name) "
                 "c WHERE s.type = 'table' GROUP BY s.name ORDER BY c.cid",
                 add, &sql, nullptr);
    sqlite3_close(pattern);
    return sql;
  }

  sqlite3* db_ = nullptr;
  std::vector<sqlite3_stmt*> inserts_;
  InputFile file_;  // last: making it uses the others
};

}  // namespace millpond::fuzz
