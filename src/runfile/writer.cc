#include "runfile/writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <tuple>

#include "base/format.h"
#include "runfile/schema.h"
#include "runfile/sqlite.h"

namespace millpond::runfile {
namespace {

void sync(const std::string& path, int flags) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}
void sync_with_folder(const std::string& path) {
  const size_t slash = path.rfind('/');
  sync(path, 0);
  sync(slash == path.npos ? "." : slash == 0 ? "/" : path.substr(0, slash), O_DIRECTORY);
}

[[noreturn]] void refuse_existing(const std::string& path) {
  throw Error(Code::kFile, format("run file {} exists already", path))
      .hint("give another path, or force to replace it");
}

// Schema and meta go to a file of another name first, which then takes the wanted name in one step: no one ever sees
// half a run file, and two programs that want the same name cannot both get it.
void create(const std::string& path, const Meta& meta, const WriterOptions& options) {
  if (!options.force && access(path.c_str(), F_OK) == 0) refuse_existing(path);
  const std::string draft = format("{}.{}.new", path, getpid());
  std::remove(draft.c_str());
  try {
    Database db(draft, Database::Mode::kCreate);
    db.run(options.sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = OFF");
    db.run(format("PRAGMA application_id = {}; PRAGMA user_version = {}", kApplicationId, kSchemaVersion));
    db.run("BEGIN");
    db.run(kSchema);
    Statement insert(db, "INSERT INTO meta VALUES (?, ?)");
    for (const auto& [key, value] : meta) insert.bind(key, value).execute();
    insert.bind("schema_minor", std::to_string(kMinorVersion)).execute();
    db.run("COMMIT");
  } catch (...) {
    std::remove(draft.c_str());
    std::remove((draft + "-journal").c_str());
    throw;
  }
  // A journal that a killed program left under this name would be rolled back into the new file.
  std::remove((path + "-journal").c_str());
  int failed = renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), options.force ? 0 : RENAME_NOREPLACE);
  if (failed && (errno == EINVAL || errno == ENOSYS))
    failed = std::rename(draft.c_str(), path.c_str());  // old file systems
  const int why = errno;
  if (failed) std::remove(draft.c_str());
  if (failed && why == EEXIST) refuse_existing(path);
  if (failed)
    throw Error(Code::kFile, format("run file {} cannot be made: {}", path, std::strerror(why)))
        .hint("give another path");
  if (options.sync) sync_with_folder(path);
}

}  // namespace

struct Writer::State {
  struct Last {
    Bytes current{-1}, peak{-1};
  };
  Database db;
  Statement begin{db, "BEGIN IMMEDIATE"}, commit{db, "COMMIT"};
  Statement meta{db, "INSERT OR REPLACE INTO meta VALUES (?, ?)"};
  Statement account{db, "INSERT INTO accounts (name) VALUES (?)"};
  Statement phase{db, "INSERT INTO phases (kind, name, \"index\", parent, t_start) VALUES (?, ?, ?, ?, ?)"};
  Statement phase_end{db, "UPDATE phases SET t_end = ? WHERE id = ?"};
  Statement series{db, "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?, ?)"};
  Statement os{db, "INSERT INTO os_series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement space{db, "INSERT INTO spaces (name) VALUES (?)"};
  Statement process{
      db, "INSERT INTO processes (pid, parent, name, command, t_start, t_end, seen) VALUES (?, ?, ?, ?, ?, ?, ?)"};
  Statement process_known{
      db,
      "UPDATE processes SET pid = ?, parent = ?, name = ?, command = ?, t_start = ?, t_end = ?, seen = ? WHERE id = ?"};
  Statement process_point{db, "INSERT INTO process_series VALUES (?, ?, ?, ?, ?, ?)"};
  Statement process_details{db, "INSERT OR REPLACE INTO process_details VALUES (?, ?, ?, ?)"};
  Statement process_memory{db, "INSERT INTO process_memory VALUES (?, ?, ?, ?, ?, ?, ?)"},
      mapping{db, "INSERT INTO mapping_series VALUES (?, ?, ?, ?, ?, ?, ?)"};
  Statement source{db, "INSERT INTO sources (file, function, first, text) VALUES (?, ?, ?, ?)"};
  Statement frame{db, "INSERT INTO frames (file, function, line, native, user) VALUES (?, ?, ?, ?, ?)"};
  Statement site{
      db, "INSERT INTO sites (process, frames, total_bytes, total_blocks, freed_bytes) VALUES (?, ?, 0, 0.0, 0)"};
  Statement totals{db, "UPDATE sites SET total_bytes = ?, total_blocks = ?, freed_bytes = ? WHERE id = ?"};
  Statement thread{db, "INSERT INTO threads (process, tid, name) VALUES (?, ?, ?)"};
  Statement details{db, "INSERT INTO site_details VALUES (?, ?, ?)"};
  Statement sizes{db, "INSERT INTO sizes VALUES (?, ?, ?, ?, ?, ?)"};
  Statement mark{db,
                 "INSERT INTO marks (process, t, kind, name, \"index\", period, rss, heap_in_use, heap_free, "
                 "heap_mapped, python_arenas, "
                 "private_dirty, pss, processes, units) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  Statement state{db, "INSERT INTO site_states VALUES (?, ?, ?, ?, ?)"};
  Statement forget_states{db, "DELETE FROM site_states WHERE mark = ?"},
      forget_mark{db, "DELETE FROM marks WHERE id = ?"};
  Statement tree{db, "INSERT INTO tree_series VALUES (?, ?, ?, ?, ?, ?, ?)"};
  Statement note{db, "INSERT INTO notes VALUES (?, ?, ?)"};
  Statement gpu{db, "INSERT OR REPLACE INTO gpus VALUES (?, ?, ?, ?, ?)"},
      gpu_point{db, "INSERT INTO gpu_series VALUES (?, ?, ?, ?, ?, ?)"};
  Statement pool_point{db, "INSERT INTO pool_series VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"};
  std::map<std::string, RowId, std::less<>> accounts, spaces{{kHost, RowId{1}}};
  std::map<std::tuple<RowId, RowId, RowId>, Last> last;  // by process, space and account
  int64_t source_bytes = 0;
  std::map<FrameRow, RowId> frames;
  bool pending = false;

  explicit State(const std::string& path) : db(path, Database::Mode::kWrite) {}

  void write() {
    if (pending) return;
    begin.execute();
    pending = true;
  }
  void flush() {
    if (!pending) return;
    commit.execute();
    pending = false;
  }
  RowId account_of(const std::string& name) { return named(accounts, account, name); }
  RowId space_of(const std::string& name) { return named(spaces, space, name); }
  RowId named(std::map<std::string, RowId, std::less<>>& known, Statement& insert, const std::string& name) {
    RowId& id = known[name];
    if (id == RowId{}) {
      insert.bind(name).execute();
      id = {db.last_id()};
    }
    return id;
  }
};

namespace {
std::optional<int64_t> or_null(RowId id) { return id.value ? std::optional(id.value) : std::nullopt; }
std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}
}  // namespace

Writer::Writer(const std::string& path, const Meta& meta, const WriterOptions& options) {
  create(path, meta, options);
  state_ = std::make_unique<State>(path);
  // TRUNCATE: the journal stays as an empty file between commits, which saves two changes of the folder each.
  state_->db.run("PRAGMA journal_mode = TRUNCATE");
  state_->db.run(options.sync ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = OFF");
}

Writer::~Writer() {
  if (!state_) return;
  const std::string path = state_->db.path();
  try {
    state_->flush();
  } catch (const Error&) {  // a destructor has no one to tell
  }
  state_.reset();
  const std::string journal = path + "-journal";
  struct stat facts{};
  if (stat(journal.c_str(), &facts) == 0 && facts.st_size == 0)
    std::remove(journal.c_str());  // one with content is still needed
}
Writer::Writer(Writer&&) noexcept = default;

RowId Writer::begin_phase(const std::string& kind, const std::string& name, int64_t index, RowId parent, double t) {
  state_->write();
  state_->phase.bind(kind, name, index, or_null(parent), t).execute();
  return {state_->db.last_id()};
}

void Writer::end_phase(RowId phase, double t) {
  state_->write();
  state_->phase_end.bind(t, phase.value).execute();
}

void Writer::add(double t, RowId phase, std::span<const AccountBytes> accounts) {
  state_->write();
  for (const AccountBytes& a : accounts) {
    const RowId account = state_->account_of(a.account), space = state_->space_of(a.space);
    State::Last& last = state_->last[{a.process, space, account}];
    const auto write = [&](const char* kind, Bytes bytes) {
      state_->series.bind(t, or_null(phase), or_null(a.process), space.value, account.value, kind, bytes).execute();
    };
    if (a.current != last.current) write("current", a.current);
    if (a.peak != last.peak) write("peak", a.peak);
    last.current = a.current, last.peak = a.peak;
  }
}

void Writer::add(const OsRow& r) {
  state_->write();
  state_->os
      .bind(r.t, or_null(r.phase), or_null(r.process), state_->space_of(r.space).value, r.rss, r.peak_rss, r.pss,
            r.private_dirty, r.swap, r.heap_in_use, r.heap_free, r.explained)
      .execute();
}

RowId Writer::add(const Program& p, std::span<const PlanBuffer> buffers, std::span<const PlanCall> calls) {
  state_->write();
  const Database& db = state_->db;
  Statement(db,
            "INSERT INTO programs (name, calls, planned_bytes, lower_bound_bytes, plan_seconds, method) VALUES (?, ?, "
            "?, ?, ?, ?)")
      .bind(p.name, p.calls, p.planned, p.lower_bound, p.plan_seconds, p.method)
      .execute();
  const int64_t id = db.last_id();
  Statement buffer(db, "INSERT INTO plan_buffers VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (const PlanBuffer& b : buffers)
    buffer.bind(id, b.name, state_->account_of(b.account).value, b.layer, b.offset, b.size, b.first, b.last).execute();
  Statement call(db, "INSERT INTO plan_calls VALUES (?, ?, ?, ?, ?, ?)");
  for (size_t i = 0; i < calls.size(); ++i)
    call.bind(id, int64_t(i), calls[i].op, calls[i].layer, calls[i].name, calls[i].workspace).execute();
  return {id};
}

RowId Writer::add(const Process& p) {
  state_->write();
  state_->process.bind(p.pid, p.parent, p.name, text_or_null(p.command), p.start, p.end, to_string(p.seen)).execute();
  return {state_->db.last_id()};
}

void Writer::put(const Process& p) {
  state_->write();
  state_->process_known
      .bind(p.pid, p.parent, p.name, text_or_null(p.command), p.start, p.end, to_string(p.seen), p.id.value)
      .execute();
}

void Writer::add(const ProcessPointRow& r) {
  state_->write();
  state_->process_point.bind(r.t, or_null(r.process), state_->space_of(r.space).value, r.resident, r.private_, r.in_use)
      .execute();
}

void Writer::put(const ProcessDetailRow& d) {
  state_->write();
  state_->process_details.bind(d.process.value, text_or_null(to_string(d.how)), text_or_null(d.label), d.inherited)
      .execute();
}

void Writer::add(const ProcessMemoryRow& r) {
  state_->write();
  state_->process_memory.bind(r.t, r.process.value, r.resident, r.private_, r.pss, r.anonymous, r.alive).execute();
}

void Writer::add(const MappingRow& r) {
  state_->write();
  state_->mapping.bind(r.t, or_null(r.process), r.kind, r.mapped, r.resident, r.private_, r.pss).execute();
}

bool Writer::add(const SourceRow& s) {
  const int64_t size = int64_t(s.text.size());
  if (size > kMostText || size > kMostSource - state_->source_bytes) return false;
  state_->write();
  state_->source_bytes += size;
  state_->source.bind(s.file, s.function, s.first, Whole{s.text}).execute();
  return true;
}

RowId Writer::add(RowId process, std::span<const FrameRow> frames) {
  state_->write();
  std::string ids;
  for (const FrameRow& f : frames) {
    RowId& id = state_->frames[f];
    if (id == RowId{}) {
      state_->frame.bind(f.file, f.function, f.line, int64_t{f.native}, int64_t{f.user}).execute();
      id = {state_->db.last_id()};
    }
    ids += format("{}{}", ids.empty() ? "" : " ", id.value);
  }
  state_->site.bind(process.value, ids).execute();
  return {state_->db.last_id()};
}

void Writer::rename(const FrameRow& from, const FrameRow& to) {
  const auto at = state_->frames.find(from);
  if (at == state_->frames.end()) return;
  state_->write();
  Statement(state_->db, "UPDATE frames SET file = ?, function = ?, line = ?, native = ?, user = ? WHERE id = ?")
      .bind(to.file, to.function, to.line, int64_t{to.native}, int64_t{to.user}, at->second.value)
      .execute();
}

void Writer::set_totals(RowId site, Bytes total, double blocks, Bytes freed) {
  state_->write();
  state_->totals.bind(total, blocks, freed, site.value).execute();
}

RowId Writer::add(const ThreadRow& t) {
  state_->write();
  state_->thread.bind(t.process.value, t.tid, t.name).execute();
  return {state_->db.last_id()};
}

void Writer::add(const SiteDetailRow& d) {
  state_->write();
  state_->details.bind(d.site.value, or_null(d.thread), d.temporary).execute();
}

void Writer::add(const SizeRow& s) {
  state_->write();
  state_->sizes.bind(s.process.value, s.from, s.blocks, s.bytes, s.freed, s.temporary).execute();
}

RowId Writer::add(const MarkRow& m, std::span<const SiteStateRow> states) {
  state_->write();
  std::string units;
  for (int64_t u : m.units) units += format("{}{}", units.empty() ? "" : " ", u);
  state_->mark
      .bind(m.process.value, m.t, m.kind, m.name, m.index, int64_t{m.period}, m.rss, m.heap_in_use, m.heap_free,
            m.heap_mapped, m.python_arenas, m.private_dirty, m.pss, m.processes, units)
      .execute();
  const RowId id{state_->db.last_id()};
  for (const SiteStateRow& s : states) {
    std::string ages;  // KiB
    for (Bytes b : s.ages) ages += format("{}{}", ages.empty() ? "" : " ", b.value / 1024);
    state_->state.bind(id.value, s.site.value, s.bytes, s.blocks, ages).execute();
  }
  return id;
}

void Writer::remove_mark(RowId mark) {
  state_->write();
  state_->forget_states.bind(mark.value).execute();
  state_->forget_mark.bind(mark.value).execute();
}

void Writer::add(const TreeRow& r) {
  state_->write();
  state_->tree
      .bind(r.t, or_null(r.process), state_->space_of(r.space).value, r.processes, r.rss, r.private_dirty, r.pss)
      .execute();
}

void Writer::put(const GpuRow& g) {
  state_->write();
  state_->gpu.bind(g.device, g.name, g.total, g.used_peak, g.by_tree_peak).execute();
}

void Writer::add(const GpuPointRow& r) {
  state_->write();
  state_->gpu_point
      .bind(r.t, or_null(r.process), state_->space_of(gpu_space(r.device)).value, r.device, r.used, r.by_tree)
      .execute();
}

void Writer::add(const PoolRow& r) {
  state_->write();
  state_->pool_point
      .bind(r.t, or_null(r.process), state_->space_of(r.space).value, r.pool, r.in_use, r.reserved, r.peak,
            r.inactive_split, r.largest_free, r.retries, r.ooms, r.limit)
      .execute();
}

int64_t Writer::thin(const char* table, const char* within) {
  state_->write();
  const Database& db = state_->db;
  // rowids are given in order, but after a thinning they have gaps: every second by its place
  Statement(db, format("DELETE FROM {0} WHERE rowid IN (SELECT id FROM (SELECT rowid AS id, row_number() OVER ({1} "
                       "ORDER BY rowid) AS place FROM {0}) "
                       "WHERE place % 2 = 0)",
                       table, within))
      .execute();
  Statement count(db, format("SELECT count(*) FROM {}", table));
  count.step();
  return count.integer(0);
}
int64_t Writer::thin_os_series() { return thin("os_series"); }
int64_t Writer::thin_tree_series() { return thin("tree_series"); }
int64_t Writer::thin_gpu_series() { return thin("gpu_series", "PARTITION BY device"); }
int64_t Writer::thin_process_series() { return thin("process_series", "PARTITION BY process, space"); }
int64_t Writer::thin_process_memory() { return thin("process_memory", "PARTITION BY process"); }
int64_t Writer::thin_mapping_series() { return thin("mapping_series", "PARTITION BY process, kind"); }
int64_t Writer::thin_pool_series() { return thin("pool_series", "PARTITION BY process, space, pool"); }

bool Writer::add(const NoteRow& n) {
  if (int64_t(n.text.size()) > kMostText) return false;
  state_->write();
  state_->note.bind(n.t, or_null(n.process), Whole{n.text}).execute();
  return true;
}

void Writer::set_meta(const std::string& key, const std::string& value) {
  state_->write();
  state_->meta.bind(key, value).execute();
}

void Writer::commit() { state_->flush(); }

void Writer::finish(double t, const std::string& status) {
  set_meta("seconds", format("{:.3f}", t));
  set_meta("status", status);
  commit();
  sync_with_folder(path());
}

Bytes Writer::memory() const { return state_->db.memory(); }
const std::string& Writer::path() const { return state_->db.path(); }

}  // namespace millpond::runfile
