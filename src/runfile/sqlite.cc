#include "runfile/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <cmath>

#include "base/format.h"

namespace millpond::runfile {
namespace {
constexpr size_t kLongestText = 4096;  // of a name that is written; longer ones are cut
constexpr int64_t kMostInteger = int64_t{1} << 53, kMostAmounts = int64_t{1} << 59, kMostTexts = int64_t{64} << 20;
constexpr double kMostReal = 1e18, kMostSeconds = 1e9;

std::string_view type_name(int type) {
  switch (type) {
    case SQLITE_INTEGER:
      return "an integer";
    case SQLITE_FLOAT:
      return "a real number";
    case SQLITE_TEXT:
      return "a text";
    case SQLITE_BLOB:
      return "a blob";
    default:
      return "nothing";
  }
}
}  // namespace

Database::Database(std::string path, Mode mode) : path_(std::move(path)) {
  // A run file is its owner's alone, and its journal gets the same mode from SQLite.
  if (mode == Mode::kCreate)
    if (const int fd = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600); fd >= 0) close(fd);
  const int flags = mode == Mode::kRead ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path_.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) throw error("cannot be opened", code);
  sqlite3_busy_timeout(handle, 10'000);
  run("PRAGMA cache_size = -512");
  if (mode == Mode::kRead) run("PRAGMA query_only = 1");
}

void Database::run(const std::string& sql) {
  const int code = sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw error("does not obey \"" + sql.substr(0, 60) + "\"", code);
}

bool Database::needs_rollback(const std::string& path) {
  sqlite3* handle = nullptr;
  int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, Close> owner(handle);
  if (code != SQLITE_OK) return false;
  sqlite3_busy_timeout(handle, 10'000);
  code = sqlite3_exec(handle, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
  return (code & 0xff) == SQLITE_READONLY || (code & 0xff) == SQLITE_CANTOPEN;
}

Bytes Database::memory() const {
  Bytes sum;
  for (int what : {SQLITE_DBSTATUS_CACHE_USED, SQLITE_DBSTATUS_SCHEMA_USED, SQLITE_DBSTATUS_STMT_USED}) {
    int now = 0, most = 0;
    if (sqlite3_db_status(handle_.get(), what, &now, &most, 0) == SQLITE_OK) sum += Bytes{now};
  }
  return sum;
}

Error Database::error(std::string_view doing, int code) const {
  const char* why = handle_ ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  const std::string text = format("run file {} {}: {}", path_, doing, why);
  switch (code & 0xff) {
    case SQLITE_TOOBIG:
      return Error(Code::kFormat, text).hint("a value is longer than any that Millpond writes");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Error(Code::kFormat, format("run file {} is damaged: {}", path_, why)).hint("record the run again");
    case SQLITE_FULL:
      return Error(Code::kFile, text).hint("make room on that disk, or record to another");
    case SQLITE_BUSY:
      return Error(Code::kFile, text).hint("another program holds the file; try again when it is done");
    case SQLITE_READONLY:
      return Error(Code::kFile, text).hint("the program that wrote it was killed; read a copy that you may write to");
    default:
      return Error(Code::kFile, text).hint("check that the path exists and may be read and written");
  }
}

Statement::Statement(const Database& database, std::string_view sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  const int code =
      sqlite3_prepare_v3(database.handle(), sql.data(), int(sql.size()), SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  handle_.reset(handle);
  if (code != SQLITE_OK) throw database.error("is not laid out as expected", code);
}

void Statement::bind_one(int place, const std::string& value) {
  if (value.size() <= kLongestText) {
    check(sqlite3_bind_text(handle_.get(), place, value.data(), int(value.size()), SQLITE_TRANSIENT));
    return;
  }
  size_t end = kLongestText;
  while (end > 0 && (value[end] & 0xc0) == 0x80) --end;  // not within a character
  check(sqlite3_bind_text(handle_.get(), place, value.data(), int(end), SQLITE_TRANSIENT));
}

void Statement::bind_one(int place, const Whole& value) {
  check(sqlite3_bind_text(handle_.get(), place, value.text.data(), int(value.text.size()), SQLITE_TRANSIENT));
}

void Statement::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE)
    throw database_.error("cannot be read or written", code);
}

bool Statement::step() {
  const int code = sqlite3_step(handle_.get());
  if (code == SQLITE_ROW) return ++row_, true;
  if (code != SQLITE_DONE) sqlite3_reset(handle_.get());
  check(code);
  return false;
}

void Statement::execute() {
  step();
  reset();
}

void Statement::refuse(int column, std::string_view wanted) const {
  throw Error(Code::kFormat, format("run file {}: row {} of \"{}\": {} is {}, but must be {}", database_.path(), row_,
                                    sqlite3_sql(handle_.get()), sqlite3_column_name(handle_.get(), column),
                                    type_name(sqlite3_column_type(handle_.get(), column)), wanted))
      .hint("the file was not written by Millpond; record the run again");
}

int64_t Statement::whole(int column) const {
  if (sqlite3_column_type(handle_.get(), column) != SQLITE_INTEGER) refuse(column, "an integer");
  return sqlite3_column_int64(handle_.get(), column);
}
int64_t Statement::integer(int column) const {
  const int64_t value = whole(column);
  if (value < -kMostInteger || value > kMostInteger) refuse(column, "within 2^53");
  return value;
}
void Statement::count(int column, Bytes amount) const {
  if (amount.value > kMostAmounts - amounts_)
    refuse(column, "an amount that together with the others stays below 512 PiB");
  amounts_ += amount.value;
}
Bytes Statement::bytes(int column) const {
  const Bytes value{whole(column)};
  if (value.value < 0) refuse(column, "0 or more");
  count(column, value);
  return value;
}
double Statement::real(int column) const {
  const int type = sqlite3_column_type(handle_.get(), column);
  if (type != SQLITE_FLOAT && type != SQLITE_INTEGER) refuse(column, "a number");
  const double value = sqlite3_column_double(handle_.get(), column);
  if (!(std::fabs(value) <= kMostReal)) refuse(column, "within 1e18");
  return value;
}
double Statement::seconds(int column) const {
  const double value = real(column);
  if (std::fabs(value) > kMostSeconds) refuse(column, "within 1e9 seconds");
  return value;
}
std::string Statement::text(int column) const {
  if (sqlite3_column_type(handle_.get(), column) != SQLITE_TEXT) refuse(column, "a text");
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  const int64_t size = sqlite3_column_bytes(handle_.get(), column);
  if (size > kMostTexts - texts_)
    refuse(column, "a text that together with the others of its table stays below 64 MiB");
  texts_ += size;
  return std::string(data, size_t(size));
}

}  // namespace millpond::runfile
