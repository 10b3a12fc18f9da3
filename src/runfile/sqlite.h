// sqlite: the little of SQLite's C interface that run files need, with owners and with our errors.
// Costs one connection: a page cache of at most 512 KiB, and some KiB for each prepared statement.
#pragma once
#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "millpond/bytes.h"
#include "millpond/error.h"

namespace millpond::runfile {

class Statement;

/// A text that is bound as it is: other texts are names, and very long ones are cut.
struct Whole {
  const std::string& text;
};

class Database {
 public:
  enum class Mode { kCreate, kWrite, kRead };
  /// kCreate: a new file that only its owner may read (mode 0600). Throws Error(kFile) with the path and SQLite's
  /// reason.
  Database(std::string path, Mode mode);

  void run(const std::string& sql);
  /// A program that was killed left a journal, and somebody who may write has to roll it back before the file can be
  /// read.
  static bool needs_rollback(const std::string& path);
  int64_t last_id() const { return sqlite3_last_insert_rowid(handle_.get()); }
  /// Page cache, schema and prepared statements.
  Bytes memory() const;
  sqlite3* handle() const { return handle_.get(); }
  const std::string& path() const { return path_; }
  /// What went wrong last, as an Error: kFormat when the file is damaged, kFile for everything else.
  Error error(std::string_view doing, int code) const;

 private:
  struct Close {
    void operator()(sqlite3* s) const { sqlite3_close_v2(s); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
};

/// A prepared statement. bind() counts its places from 1; step() is true while there is a row.
class Statement {
 public:
  Statement(const Database& database, std::string_view sql);

  template <class... T>
  Statement& bind(const T&... values) {
    int place = 0;
    (bind_one(++place, values), ...);
    return *this;
  }
  bool step();
  /// For a statement without rows: steps once and can be bound again.
  void execute();
  void reset() { sqlite3_reset(handle_.get()); }

  // Of the current row. A value of another type than asked for, or one that no run can have, is an Error(kFormat) that
  // names row and column. So whoever adds, subtracts or rounds them need not ask whether that fits.
  int64_t integer(int column) const;  // within 2^53
  Bytes bytes(int column) const;      // not negative, and all that this statement gave out together within 2^59
  double real(int column) const;      // within 1e18
  double seconds(int column) const;   // within 1e9: thirty years
  /// Counts an amount that was read from a text of this row as bytes() counts its own.
  void count(int column, Bytes amount) const;
  std::string text(int column) const;  // all that this statement gave out together within 64 MiB
  bool null(int column) const { return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
  };
  void bind_one(int place, int64_t value) { check(sqlite3_bind_int64(handle_.get(), place, value)); }
  void bind_one(int place, double value) { check(sqlite3_bind_double(handle_.get(), place, value)); }
  void bind_one(int place, Bytes value) { bind_one(place, value.value); }
  void bind_one(int place, const std::string& value);
  void bind_one(int place, const Whole& value);
  void bind_one(int place, const char* value) { bind_one(place, std::string(value)); }
  template <class T>
  void bind_one(int place, const std::optional<T>& value) {
    if (value)
      bind_one(place, *value);
    else
      check(sqlite3_bind_null(handle_.get(), place));
  }
  void check(int code) const;
  int64_t whole(int column) const;
  [[noreturn]] void refuse(int column, std::string_view wanted) const;

  const Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int64_t row_ = 0;
  mutable int64_t amounts_ = 0, texts_ = 0;  // of all rows so far
};

}  // namespace millpond::runfile
