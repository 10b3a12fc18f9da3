#include "runfile/reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/format.h"
#include "base/temporary_folder.h"
#include "runfile/sqlite.h"
#include "runfile/tables.h"

namespace millpond::runfile {
namespace {

enum Doctor {
  kProcesses = 8,
  kFrames,
  kSites,
  kMarks,
  kSiteStates,
  kTreeSeries,
  kNotes,
  kGpus,
  kGpuSeries,
  kSpaces,
  kProcessSeries,
  kSources,
  kThreads,
  kSiteDetails,
  kSizes,
  kProcessDetails,
  kProcessMemory,
  kMappingSeries,
  kPoolSeries
};
constexpr Seen kAllSeen[] = {Seen::kInside, Seen::kOutside, Seen::kNot};
constexpr How kAllHow[] = {How::kUnknown, How::kFork, How::kSpawn, How::kExec};
constexpr size_t kLongestSpace = 64;

Error refusal(const std::string& path, std::string what, std::string hint) {
  return Error(Code::kFormat, format("run file {} {}", path, what)).hint(std::move(hint));
}

// The first 100 bytes, before SQLite sees the file: magic, page size at 16, pages at 28, user_version at 60,
// application_id at 68, all big-endian.
struct Header {
  int64_t size = 0;  // how long the header says the file is
  int version = 0;
};
Header check_header(const std::string& path, const ReaderLimits& limits) {
  struct stat facts{};
  if (stat(path.c_str(), &facts) != 0)
    throw Error(Code::kFile, format("run file {} cannot be opened: {}", path, std::strerror(errno)))
        .hint("check the path");
  if (!S_ISREG(facts.st_mode))
    throw Error(Code::kFile, format("run file {} is not a regular file", path)).hint("check the path");
  if (facts.st_size > limits.file.value)
    throw refusal(path, format("has {}, and at most {} are read", Bytes{facts.st_size}, limits.file),
                  "check that it is the file you mean");
  unsigned char head[100] = {};
  FILE* file = std::fopen(path.c_str(), "rbe");
  if (!file)
    throw Error(Code::kFile, format("run file {} cannot be opened: {}", path, std::strerror(errno)))
        .hint("check that you may read it");
  const size_t got = std::fread(head, 1, sizeof head, file);
  std::fclose(file);
  const auto number = [&](int at) {
    return int32_t(uint32_t(head[at]) << 24 | uint32_t(head[at + 1]) << 16 | uint32_t(head[at + 2]) << 8 |
                   head[at + 3]);
  };
  if (got < sizeof head || std::memcmp(head, "SQLite format 3", 16) != 0)
    throw refusal(path, format("is no run file: its {} do not begin as one", Bytes{facts.st_size}),
                  "check the path, or record the run again");
  if (number(68) != kApplicationId)
    throw refusal(path, "is an SQLite file, but no run file of Millpond", "check the path");
  if (number(60) > kSchemaVersion || number(60) < 1)
    throw refusal(path, format("has schema version {}, and this Millpond reads up to {}", number(60), kSchemaVersion),
                  "open it with a newer Millpond");
  if (head[18] != 1 || head[19] != 1)
    throw refusal(path, "is written in another way (a write-ahead log) than Millpond's",
                  "check where the file comes from");
  const int64_t page = head[16] << 8 | head[17];
  return {(page == 1 ? 65536 : page) * int64_t{number(28)}, number(60)};
}

// What lies beside a run file takes part when SQLite opens it, and may be a stranger's too. Returns the size of the
// journal that a killed program left.
int64_t check_beside(const std::string& path, const ReaderLimits& limits) {
  struct stat facts{};
  if (lstat((path + "-wal").c_str(), &facts) == 0)
    throw refusal(path, "has a write-ahead log beside it, which Millpond's never have",
                  format("check where {}-wal comes from", path));
  const std::string journal = path + "-journal";
  if (lstat(journal.c_str(), &facts) != 0 || facts.st_size == 0) return 0;
  if (!S_ISREG(facts.st_mode) || facts.st_size > limits.file.value)
    throw refusal(path, "has a journal beside it that is none", format("check where {} comes from", journal));
  // A journal may end in the name of a further file, which SQLite would look into and remove. Millpond's name none.
  constexpr unsigned char kNames[] = {0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7};
  unsigned char last[sizeof kNames] = {};
  if (FILE* file = std::fopen(journal.c_str(), "rbe")) {
    const bool got =
        std::fseek(file, -long(sizeof last), SEEK_END) == 0 && std::fread(last, 1, sizeof last, file) == sizeof last;
    std::fclose(file);
    if (got && std::memcmp(last, kNames, sizeof last) == 0)
      throw refusal(path, "has a journal beside it that names another file",
                    format("check where {} comes from", journal));
  }
  return facts.st_size;
}

std::optional<Bytes> bytes_or_none(const Statement& s, int column) {
  return s.null(column) ? std::nullopt : std::optional(s.bytes(column));
}
RowId id_or_none(const Statement& s, int column) { return s.null(column) ? RowId{} : RowId{s.integer(column)}; }

}  // namespace

/// A run file that can be read as it is; of one whose program was killed in the middle of a commit, a copy in which
/// that commit was taken back.
struct Opened {
  std::optional<TemporaryFolder> folder;
  std::unique_ptr<Database> db;

  Opened(const std::string& path, const ReaderLimits& limits) {
    const bool journal = check_beside(path, limits) > 0;
    if (!journal || !Database::needs_rollback(path)) {
      db = std::make_unique<Database>(path, Database::Mode::kRead);
      return;
    }
    folder.emplace("report", TemporaryFolder::In::kFiles);
    const std::string copy = folder->path() + "/run.pond";
    std::error_code error;
    std::filesystem::copy_file(path, copy, error);
    if (!error) std::filesystem::copy_file(path + "-journal", copy + "-journal", error);
    if (error)
      throw Error(Code::kFile,
                  format("run file {}: its program was killed, and a copy to put it right could not be made: {}", path,
                         error.message()))
          .hint("make room in TMPDIR");
    // SQLite takes the commit back when it is first read by somebody who may write.
    chmod(copy.c_str(), 0600);
    Database(copy, Database::Mode::kWrite).run("SELECT count(*) FROM sqlite_schema");
    db = std::make_unique<Database>(copy, Database::Mode::kRead);
  }
};

struct Reader::State {
  ReaderLimits limits;
  std::string path;
  Opened opened;
  Database& db = *opened.db;
  int version, minor = 0;
  std::map<int64_t, std::string> spaces;

  State(const std::string& p, const ReaderLimits& l, int v) : limits(l), path(p), opened(p, l), version(v) {
    sqlite3* h = db.handle();
    sqlite3_db_config(h, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(h, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    sqlite3_db_config(h, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_limit(h, SQLITE_LIMIT_LENGTH, int(limits.text));
    db.run("PRAGMA cell_size_check = 1");
    check_computing();
    check_layout();
    read_spaces();
  }

  // SQLite's own check evaluates constraints and indexes on expressions row by row, which a stranger can make as slow
  // as he likes.
  void check_computing() {
    Statement found(
        db,
        "SELECT (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%CHECK%') + "
        "(SELECT count(*) FROM sqlite_schema s, pragma_index_xinfo(s.name) c WHERE s.type = 'index' AND c.cid = -2) + "
        "(SELECT count(*) FROM sqlite_schema s, pragma_index_list(s.name) i WHERE s.type = 'table' AND i.partial) + "
        "(SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table', 'index'))");
    if (!found.step() || found.integer(0) != 0)
      throw refusal(path,
                    "computes with its rows (a constraint, an index, a view or a trigger), which Millpond's do not",
                    "check where the file comes from");
  }

  void check_layout() {
    Statement check(db, "PRAGMA quick_check(1)");
    if (!check.step() || check.text(0) != "ok")
      throw refusal(path, "is damaged: " + check.text(0), "record the run again");
    minor = 0;
    for (const Table& t : kTables) {
      if (!has(t)) continue;
      const char* const table = t.name;
      // A table that computes its rows (virtual, or with generated columns) is not one of ours.
      Statement kind(db,
                     "SELECT (SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql NOT LIKE "
                     "'%VIRTUAL%'), "
                     "(SELECT count(*) FROM pragma_table_xinfo(?1) WHERE hidden != 0)");
      kind.bind(table);
      if (!kind.step() || kind.integer(0) != 1 || kind.integer(1) != 0)
        throw refusal(path, format("has no table {} as Millpond makes it", table), "record the run again");
      Statement select(db, format("SELECT {} FROM {} LIMIT 1", columns(t), table));
      Statement count(db, format("SELECT count(*) FROM {}", table));
      const int64_t most = std::min(limits.rows, t.most);
      if (count.step(); count.integer(0) > most)
        throw refusal(path, format("has {} rows in {}, and at most {} are read", count.integer(0), table, most),
                      "check where the file comes from");
      if (std::string_view(table) == "meta") {
        Statement said(db, "SELECT value FROM meta WHERE key = 'schema_minor'");
        if (said.step()) minor = std::atoi(said.text(0).c_str());
      }
    }
  }

  Statement select(int table, const char* more) const {
    return Statement(db, format("SELECT {} FROM {} {}", columns(kTables[table]), kTables[table].name, more));
  }
  const char* columns(const Table& t) const { return version == 1 ? t.before : t.columns; }
  bool has(const Table& t) const { return version > 1 ? t.since_second <= minor : t.before && t.since <= minor; }
  bool has(Doctor table) const { return has(kTables[table]); }

  void read_spaces() {
    spaces[1] = kHost;
    if (!has(kSpaces)) return;
    for (Statement s = select(kSpaces, ""); s.step();) {
      const std::string name = s.text(1);
      if (name.empty() || name.size() > kLongestSpace)
        throw refusal(path, format("has a memory space \"{}\", which is none", name.substr(0, 40)),
                      "record the run again");
      spaces[s.integer(0)] = name;
    }
  }
  const std::string& space(const Statement& s, int column) const {
    const auto at = spaces.find(s.integer(column));
    if (at == spaces.end())
      throw refusal(path, format("speaks of memory space {}, which it does not have", s.integer(column)),
                    "record the run again");
    return at->second;
  }

  /// "1 2 30", at most 256 numbers, none negative.
  std::vector<int64_t> numbers(const std::string& text) const {
    std::vector<int64_t> list;
    for (const char* p = text.c_str(); *p;) {
      char* end = nullptr;
      errno = 0;
      const long long n = std::strtoll(p, &end, 10);
      if (end == p || errno || n < 0 || list.size() == 256 || (*end && *end != ' '))
        throw refusal(path, format("has \"{}\" where numbers are expected", text.substr(0, 40)),
                      "record the run again");
      list.push_back(n);
      p = *end ? end + 1 : end;
    }
    return list;
  }

  std::map<int64_t, std::string> account_names() const {
    std::map<int64_t, std::string> names;
    for (Statement s = select(1, ""); s.step();) names[s.integer(0)] = s.text(1);
    return names;
  }
  /// `carried`: what the rows before have of long names. Each row gets one of its own: few bytes of a file would become
  /// many.
  std::string name_of(const std::map<int64_t, std::string>& names, int64_t id, Bytes& carried) const {
    constexpr int64_t kUsual = 200;
    const auto at = names.find(id);
    if (at == names.end())
      throw refusal(path, format("speaks of account {}, which it does not have", id), "record the run again");
    carried += Bytes{std::max<int64_t>(0, int64_t(at->second.size()) - kUsual)};
    if (carried > limits.names)
      throw refusal(path, format("speaks of accounts with long names more often than {} hold", limits.names),
                    "check where the file comes from");
    return at->second;
  }
};

Reader::Reader(const std::string& path, const ReaderLimits& limits) {
  const auto [promised, version] = check_header(path, limits);
  try {
    state_ = std::make_unique<State>(path, limits, version);
  } catch (const Error& e) {
    // SQLite says "malformed" for a file that was cut off, too. Asked only now: while a commit is under way the header
    // may be ahead of the file, and SQLite knows what to do then.
    struct stat facts{};
    if (e.code() != Code::kFormat || stat(path.c_str(), &facts) != 0 || facts.st_size >= promised) throw;
    throw refusal(path, format("is cut off: it has {} of {} bytes", facts.st_size, promised),
                  "copy or record it again");
  }
}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;

std::string gpu_space(int64_t device) { return format("gpu:{}", device); }

const char* to_string(Seen seen) {
  return seen == Seen::kInside ? "inside" : seen == Seen::kOutside ? "outside" : "not";
}

const char* to_string(How how) {
  return how == How::kFork ? "fork" : how == How::kSpawn ? "spawn" : how == How::kExec ? "exec" : "";
}

std::optional<double> number(const Meta& meta, const char* key) {
  const auto at = meta.find(key);
  if (at == meta.end()) return {};
  const double value = std::strtod(at->second.c_str(), nullptr);
  return std::fabs(value) <= double(int64_t{1} << 59) ? std::optional(value) : std::nullopt;
}

Meta Reader::meta() const {
  Meta meta;
  for (Statement s = state_->select(0, ""); s.step();) meta[s.text(0)] = s.text(1);
  return meta;
}

std::vector<std::string> Reader::accounts() const {
  std::vector<std::string> names;
  for (Statement s = state_->select(1, "ORDER BY id"); s.step();) names.push_back(s.text(1));
  return names;
}

std::vector<Phase> Reader::phases() const {
  std::vector<Phase> list;
  for (Statement s = state_->select(2, "ORDER BY id"); s.step();)
    list.push_back({.id = {s.integer(0)},
                    .parent = id_or_none(s, 4),
                    .kind = s.text(1),
                    .name = s.text(2),
                    .index = s.integer(3),
                    .start = s.seconds(5),
                    .end = s.null(6) ? std::nullopt : std::optional(s.seconds(6))});
  return list;
}

std::vector<SeriesRow> Reader::series() const {
  const std::map<int64_t, std::string> names = state_->account_names();
  std::vector<SeriesRow> list;
  Bytes carried;
  for (Statement s = state_->select(3, "ORDER BY rowid"); s.step();) {
    const std::string kind = s.text(3);
    if (kind != "current" && kind != "peak")
      throw refusal(state_->path, format("has a series of the kind \"{}\"", kind.substr(0, 40)),
                    "only current and peak are known");
    list.push_back({s.seconds(0), id_or_none(s, 1), state_->name_of(names, s.integer(2), carried),
                    kind == "peak" ? SeriesKind::kPeak : SeriesKind::kCurrent, s.bytes(4), id_or_none(s, 5),
                    state_->space(s, 6)});
  }
  return list;
}

std::vector<OsRow> Reader::os_series() const {
  std::vector<OsRow> list;
  for (Statement s = state_->select(4, "ORDER BY rowid"); s.step();)
    list.push_back({.t = s.seconds(0),
                    .phase = id_or_none(s, 1),
                    .rss = bytes_or_none(s, 2),
                    .peak_rss = bytes_or_none(s, 3),
                    .pss = bytes_or_none(s, 4),
                    .private_dirty = bytes_or_none(s, 5),
                    .swap = bytes_or_none(s, 6),
                    .heap_in_use = bytes_or_none(s, 7),
                    .heap_free = bytes_or_none(s, 8),
                    .explained = bytes_or_none(s, 9),
                    .process = id_or_none(s, 10),
                    .space = state_->space(s, 11)});
  return list;
}

std::vector<Program> Reader::programs() const {
  std::vector<Program> list;
  for (Statement s = state_->select(5, "ORDER BY id"); s.step();) {
    // Each is asked for its buffers and calls, and every time all of them are looked at.
    if (int64_t(list.size()) == state_->limits.programs)
      throw refusal(state_->path, format("has more than {} programs", state_->limits.programs),
                    "check where the file comes from");
    list.push_back({{s.integer(0)}, s.text(1), s.integer(2), s.bytes(3), s.bytes(4), s.seconds(5), s.text(6)});
  }
  return list;
}

std::vector<PlanBuffer> Reader::plan_buffers(RowId program) const {
  const std::map<int64_t, std::string> names = state_->account_names();
  std::vector<PlanBuffer> list;
  Bytes carried;
  Statement s = state_->select(6, "WHERE program = ? ORDER BY rowid");
  for (s.bind(program.value); s.step();)
    list.push_back({s.text(1), state_->name_of(names, s.integer(2), carried), s.text(3), s.bytes(4), s.bytes(5),
                    s.integer(6), s.integer(7)});
  return list;
}

std::vector<PlanCall> Reader::plan_calls(RowId program) const {
  std::vector<PlanCall> list;
  Statement s = state_->select(7, "WHERE program = ? ORDER BY \"index\"");
  for (s.bind(program.value); s.step();) list.push_back({s.text(2), s.text(3), s.text(4), s.bytes(5)});
  return list;
}

std::vector<Process> Reader::processes() const {
  std::vector<Process> list;
  if (!state_->has(kProcesses)) return list;
  for (Statement s = state_->select(kProcesses, "ORDER BY id"); s.step();) {
    const std::string seen = s.text(7);
    const auto known = std::ranges::find_if(kAllSeen, [&](Seen k) { return seen == to_string(k); });
    if (known == std::end(kAllSeen))
      throw refusal(state_->path, format("has a process that was seen \"{}\"", seen.substr(0, 40)),
                    "only inside, outside and not are known");
    list.push_back({{s.integer(0)},
                    s.integer(1),
                    s.integer(2),
                    s.text(3),
                    s.seconds(4),
                    s.null(5) ? std::nullopt : std::optional(s.seconds(5)),
                    s.null(6) ? std::string() : s.text(6),
                    *known});
  }
  return list;
}

std::vector<ProcessPointRow> Reader::process_series() const {
  std::vector<ProcessPointRow> list;
  if (!state_->has(kProcessSeries)) return list;
  for (Statement s = state_->select(kProcessSeries, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0), id_or_none(s, 1), state_->space(s, 2), bytes_or_none(s, 3), bytes_or_none(s, 4),
                    bytes_or_none(s, 5)});
  return list;
}

std::vector<ProcessDetailRow> Reader::process_details() const {
  std::vector<ProcessDetailRow> list;
  if (!state_->has(kProcessDetails)) return list;
  for (Statement s = state_->select(kProcessDetails, "ORDER BY process"); s.step();) {
    const std::string how = s.null(1) ? std::string() : s.text(1);
    const auto known = std::ranges::find_if(kAllHow, [&](How k) { return how == to_string(k); });
    if (known == std::end(kAllHow))
      throw refusal(state_->path, format("has a process that began by \"{}\"", how.substr(0, 40)),
                    "only fork, spawn and exec are known");
    list.push_back({{s.integer(0)}, *known, s.null(2) ? std::string() : s.text(2), bytes_or_none(s, 3)});
  }
  return list;
}

std::vector<ProcessMemoryRow> Reader::process_memory() const {
  std::vector<ProcessMemoryRow> list;
  if (!state_->has(kProcessMemory)) return list;
  for (Statement s = state_->select(kProcessMemory, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0),
                    {s.integer(1)},
                    s.bytes(2),
                    bytes_or_none(s, 3),
                    bytes_or_none(s, 4),
                    s.bytes(5),
                    bytes_or_none(s, 6)});
  return list;
}

std::vector<MappingRow> Reader::mapping_series() const {
  std::vector<MappingRow> list;
  if (!state_->has(kMappingSeries)) return list;
  for (Statement s = state_->select(kMappingSeries, "ORDER BY rowid"); s.step();) {
    const std::string kind = s.text(2);
    if (std::ranges::none_of(kMappingKinds, [&](const char* k) { return kind == k; }))
      throw refusal(state_->path, format("has mappings of the kind \"{}\"", kind.substr(0, 40)),
                    "record the run again");
    list.push_back({s.seconds(0), id_or_none(s, 1), kind, s.bytes(3), s.bytes(4), s.bytes(5), s.bytes(6)});
  }
  return list;
}

std::vector<SourceRow> Reader::sources() const {
  std::vector<SourceRow> list;
  if (!state_->has(kSources)) return list;
  int64_t sum = 0;
  for (Statement s = state_->select(kSources, "ORDER BY id"); s.step();) {
    list.push_back({s.text(1), s.text(2), s.integer(3), s.text(4)});
    sum += int64_t(list.back().text.size());
    if (sum > kMostSource || list.back().first < 1)
      throw refusal(state_->path,
                    format("has sources that Millpond does not write (more than {}, or a line before the first)",
                           Bytes{kMostSource}),
                    "check where the file comes from");
  }
  return list;
}

int Reader::version() const { return state_->version; }
const std::string& Reader::path() const { return state_->db.path(); }

std::vector<FrameRow> Reader::frames() const {
  std::vector<FrameRow> list;
  if (!state_->has(kFrames)) return list;
  for (Statement s = state_->select(kFrames, "ORDER BY id"); s.step();) {
    if (s.integer(0) != int64_t(list.size()) + 1)
      throw refusal(state_->path, format("lacks frame {}", list.size() + 1), "record the run again");
    list.push_back({s.text(1), s.text(2), s.integer(3), s.integer(4) != 0, s.integer(5) != 0});
  }
  return list;
}

std::vector<SiteRow> Reader::sites() const {
  std::vector<SiteRow> list;
  if (!state_->has(kSites)) return list;
  for (Statement s = state_->select(kSites, "ORDER BY id"); s.step();) {
    SiteRow row{{s.integer(0)}, {s.integer(1)}, {}, s.bytes(3), s.real(4), s.bytes(5)};
    for (int64_t id : state_->numbers(s.text(2))) row.frames.push_back({id});
    list.push_back(std::move(row));
  }
  return list;
}

std::vector<MarkRow> Reader::marks() const {
  std::vector<MarkRow> list;
  if (!state_->has(kMarks)) return list;
  for (Statement s = state_->select(kMarks, "ORDER BY id"); s.step();)
    list.push_back({.id = {s.integer(0)},
                    .process = {s.integer(1)},
                    .t = s.seconds(2),
                    .kind = s.text(3),
                    .name = s.text(4),
                    .index = s.integer(5),
                    .period = s.integer(6) != 0,
                    .rss = bytes_or_none(s, 7),
                    .heap_in_use = bytes_or_none(s, 8),
                    .heap_free = bytes_or_none(s, 9),
                    .heap_mapped = bytes_or_none(s, 10),
                    .python_arenas = bytes_or_none(s, 11),
                    .private_dirty = bytes_or_none(s, 12),
                    .pss = bytes_or_none(s, 13),
                    .processes = s.integer(14),
                    .units = state_->numbers(s.text(15))});
  return list;
}

std::vector<SiteStateRow> Reader::site_states() const {
  std::vector<SiteStateRow> list;
  if (!state_->has(kSiteStates)) return list;
  for (Statement s = state_->select(kSiteStates, "ORDER BY mark, rowid"); s.step();) {
    SiteStateRow row{{s.integer(0)}, {s.integer(1)}, s.bytes(2), s.real(3), {}};
    for (int64_t kib : state_->numbers(s.text(4))) {
      row.ages.push_back(Bytes{std::min<int64_t>(kib, int64_t{1} << 50) * 1024});
      s.count(4, row.ages.back());
    }
    list.push_back(std::move(row));
  }
  return list;
}

std::vector<ThreadRow> Reader::threads() const {
  std::vector<ThreadRow> list;
  if (!state_->has(kThreads)) return list;
  for (Statement s = state_->select(kThreads, "ORDER BY id"); s.step();)
    list.push_back({{s.integer(0)}, {s.integer(1)}, s.integer(2), s.text(3)});
  return list;
}

std::vector<SiteDetailRow> Reader::site_details() const {
  std::vector<SiteDetailRow> list;
  if (!state_->has(kSiteDetails)) return list;
  for (Statement s = state_->select(kSiteDetails, "ORDER BY site"); s.step();)
    list.push_back({{s.integer(0)}, id_or_none(s, 1), s.bytes(2)});
  return list;
}

std::vector<SizeRow> Reader::sizes() const {
  std::vector<SizeRow> list;
  if (!state_->has(kSizes)) return list;
  for (Statement s = state_->select(kSizes, "ORDER BY rowid"); s.step();)
    list.push_back({{s.integer(0)}, s.bytes(1), s.real(2), s.bytes(3), s.bytes(4), s.bytes(5)});
  return list;
}

std::vector<TreeRow> Reader::tree_series() const {
  std::vector<TreeRow> list;
  if (!state_->has(kTreeSeries)) return list;
  for (Statement s = state_->select(kTreeSeries, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0), s.integer(1), bytes_or_none(s, 2), bytes_or_none(s, 3), bytes_or_none(s, 4),
                    id_or_none(s, 5), state_->space(s, 6)});
  return list;
}

std::vector<NoteRow> Reader::notes() const {
  std::vector<NoteRow> list;
  if (!state_->has(kNotes)) return list;
  for (Statement s = state_->select(kNotes, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0), id_or_none(s, 1), s.text(2)});
  return list;
}

std::vector<GpuRow> Reader::gpus() const {
  std::vector<GpuRow> list;
  if (!state_->has(kGpus)) return list;
  for (Statement s = state_->select(kGpus, "ORDER BY device"); s.step();)
    list.push_back({s.integer(0), s.text(1), s.bytes(2), s.bytes(3), bytes_or_none(s, 4)});
  return list;
}

std::vector<GpuPointRow> Reader::gpu_series() const {
  std::vector<GpuPointRow> list;
  if (!state_->has(kGpuSeries)) return list;
  for (Statement s = state_->select(kGpuSeries, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0), s.integer(1), s.bytes(2), bytes_or_none(s, 3), id_or_none(s, 4),
                    s.null(5) ? gpu_space(s.integer(1)) : state_->space(s, 5)});
  return list;
}

std::vector<PoolRow> Reader::pool_series() const {
  std::vector<PoolRow> list;
  if (!state_->has(kPoolSeries)) return list;
  for (Statement s = state_->select(kPoolSeries, "ORDER BY rowid"); s.step();)
    list.push_back({s.seconds(0), id_or_none(s, 1), state_->space(s, 2), s.text(3).substr(0, kLongestPool), s.bytes(4),
                    bytes_or_none(s, 5), bytes_or_none(s, 6), bytes_or_none(s, 7), bytes_or_none(s, 8), s.integer(9),
                    s.integer(10), bytes_or_none(s, 11)});
  return list;
}

}  // namespace millpond::runfile
