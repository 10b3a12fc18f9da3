#include "runfile/share.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/format.h"
#include "base/temporary_folder.h"
#include "runfile/schema.h"
#include "runfile/sqlite.h"
#include "runfile/tables.h"

namespace millpond::runfile {
namespace {

constexpr std::string_view kHomes[] = {"/home/", "/Users/"};
// Names that thousands of machines have say nothing of whose this one is, and stand in every source.
constexpr std::string_view kOrdinary[] = {"root",   "user",      "admin",  "home",   "host",   "ubuntu",  "debian",
                                          "fedora", "localhost", "jovyan", "runner", "python", "millpond"};
constexpr size_t kShortest = 3;  // of a name: shorter ones stand in every word
constexpr size_t kMostNames = 64;

bool of_path(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_.+-@%~/", c) ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  if (from.empty()) return text;
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

/// "/a/b/lib/python3.11/site-packages/x/y.py" is "site-packages/x/y.py".
std::string short_path(std::string_view path) {
  for (const std::string_view part : {"/site-packages/", "/dist-packages/"})
    if (const size_t at = path.rfind(part); at != path.npos) return std::string(path.substr(at + 1));
  if (const size_t at = path.rfind("/lib/python"); at != path.npos) return std::string(path.substr(at));
  for (const std::string_view system : {"/usr/", "/lib/", "/lib64/", "/bin/", "/sbin/", "/proc/", "/sys/", "/dev/"})
    if (path.starts_with(system)) return std::string(path);
  while (path.ends_with('/')) path.remove_suffix(1);
  return std::string(path.substr(path.rfind('/') + 1));
}

/// Where a path that begins at `at` ends. Quotes around it tell. Otherwise a space is one of a folder's name where, a
/// few words on and before another path or an option begins, a slash follows inside a word: "/mnt/Acme Corp/x.csv is
/// gone" is a path and two words. A word too many goes rather than half a name stays.
size_t end_of_path(std::string_view text, size_t at) {
  constexpr size_t kMostWords = 5;  // in the name of a folder
  if (at > 0 && std::strchr("'\"`", text[at - 1])) {
    const size_t close = text.find(text[at - 1], at), line = text.find('\n', at);
    if (close != text.npos && close < line) return close;
  }
  const auto word_end = [&](size_t from) {
    while (from < text.size() && of_path(text[from])) ++from;
    return from;
  };
  size_t end = word_end(at);
  for (size_t next = end, words = 0;
       words < kMostWords && next + 1 < text.size() && text[next] == ' ' && of_path(text[next + 1]); ++words) {
    const size_t from = next + 1;
    if (text[from] == '/' || text[from] == '-') break;
    next = word_end(from);
    if (text.substr(from, next - from).find('/') != text.npos) end = next, words = 0;
  }
  return end;
}

/// Every absolute path in a text: one that begins after what ends no word, and has at least two parts.
std::string without_paths(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool begins =
        text[at] == '/' &&
        (at == 0 || !(of_path(text[at - 1]) || text[at - 1] == ')' || text[at - 1] == ']' || text[at - 1] == '<'));
    const size_t end = begins ? end_of_path(text, at) : at;
    const std::string_view path = std::string_view(text).substr(at, end - at);
    if (begins && path.size() > 2 && path[1] != '/' && path[1] != ' ' && path.find('/', 1) != path.npos) {
      out += short_path(path);
      at = end;
    } else {
      out += text[at++];
    }
  }
  return out;
}

void add_name(std::vector<std::string>& names, const std::string& name) {
  if (name.size() < kShortest || names.size() >= kMostNames ||
      std::ranges::find(kOrdinary, name) != std::end(kOrdinary))
    return;
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
}

/// Names of users in paths such as /home/NAME/x.
void find_users(const std::string& text, std::vector<std::string>& users) {
  for (const std::string_view home : kHomes)
    for (size_t at = text.find(home); at != text.npos; at = text.find(home, at + 1)) {
      const size_t from = at + home.size();
      size_t end = from;
      while (end < text.size() && of_path(text[end]) && text[end] != '/') ++end;
      add_name(users, text.substr(from, end - from));
    }
}

/// SQL: plain(text). Numbers and nothing pass.
void plain(sqlite3_context* context, int, sqlite3_value** values) {
  if (sqlite3_value_type(values[0]) != SQLITE_TEXT) return sqlite3_result_value(context, values[0]);
  const std::string text(reinterpret_cast<const char*>(sqlite3_value_text(values[0])),
                         size_t(sqlite3_value_bytes(values[0])));
  const std::string out = without_private(text, *static_cast<const Private*>(sqlite3_user_data(context)));
  sqlite3_result_text(context, out.data(), int(out.size()), SQLITE_TRANSIENT);
}

std::string uri(const std::string& path) {
  std::string out = "file:";
  for (const char c : path)
    out += std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-", c)
               ? std::string(1, c)
               : format("%{:02x}", unsigned(static_cast<unsigned char>(c)));
  return out + "?mode=ro";
}

}  // namespace

Private private_here() {
  Private p;
  const auto home = [&](const char* path) {
    if (path && std::strlen(path) > 1) p.homes.emplace_back(path);
  };
  home(std::getenv("HOME"));
  for (const char* key : {"USER", "LOGNAME"})
    if (const char* name = std::getenv(key)) add_name(p.users, name);
  if (const passwd* user = getpwuid(getuid())) home(user->pw_dir), add_name(p.users, user->pw_name);
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0) {
    add_name(p.hosts, name);
    add_name(p.hosts, std::string(name).substr(0, std::string_view(name).find('.')));
  }
  return p;
}

std::string without_private(const std::string& text, const Private& p) {
  std::string out = text;
  if (p.project.size() > 1) out = replaced(replaced(out, p.project + "/", ""), p.project, ".");
  out = without_paths(out);
  for (const std::string& home : p.homes) out = replaced(out, home, "~");
  for (const std::string& user : p.users) out = replaced(out, user, "user");
  for (const std::string& host : p.hosts) out = replaced(out, host, "host");
  return out;
}

void share(const Reader& file, const std::string& to, Private p) {
  const Meta meta = file.meta();
  for (const auto& [key, value] : meta) find_users(value, p.users);
  for (const FrameRow& f : file.frames()) find_users(f.file, p.users);
  for (const NoteRow& n : file.notes()) find_users(n.text, p.users);
  for (const SourceRow& s : file.sources()) find_users(s.text, p.users), find_users(s.file, p.users);
  for (const Process& s : file.processes()) find_users(s.command, p.users);
  const auto longest_first = [](std::vector<std::string>& names) {
    std::ranges::sort(names, std::ranges::greater{}, &std::string::size);
  };
  for (std::vector<std::string>* names : {&p.homes, &p.users, &p.hosts}) longest_first(*names);

  if (access(to.c_str(), F_OK) == 0)
    throw Error(Code::kFile, format("run file {} exists already", to)).hint("give another path");
  const TemporaryFolder folder("report --share", TemporaryFolder::In::kFiles);
  const std::string draft = folder.path() + "/share.pond";
  {
    Database db(draft, Database::Mode::kCreate);
    sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
    sqlite3_db_config(db.handle(), SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
    if (const int code = sqlite3_create_function_v2(db.handle(), "plain", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, &p,
                                                    plain, nullptr, nullptr, nullptr);
        code != SQLITE_OK)
      throw db.error("cannot be shared", code);
    db.run(format("PRAGMA application_id = {}; PRAGMA user_version = {}; PRAGMA synchronous = OFF", kApplicationId,
                  kSchemaVersion));
    db.run("ATTACH '" + replaced(uri(file.path()), "'", "''") + "' AS old; BEGIN");
    db.run(kSchema);
    const bool before = file.version() == 1;
    const int minor = meta.contains("schema_minor") ? std::atoi(meta.at("schema_minor").c_str()) : 0;
    if (before && minor >= 2) db.run("INSERT INTO spaces (name) SELECT 'gpu:' || device FROM old.gpus");
    for (const Table& t : kTables) {
      const char* const columns = before ? t.before : t.columns;
      if (!columns || (before ? t.since : t.since_second) > minor) continue;
      std::string wanted;
      std::string_view rest = columns;
      while (!rest.empty()) {
        const size_t end = std::min(rest.find(", "), rest.size());
        const std::string_view column = rest.substr(0, end);
        wanted += format("{}plain({})", wanted.empty() ? "" : ", ", column);
        rest.remove_prefix(std::min(rest.size(), end + 2));
      }
      // Before version 2 a series of a GPU had its device alone.
      if (before && std::string_view(t.name) == "gpu_series")
        wanted = "t, device, used, by_tree, NULL, (SELECT id FROM spaces WHERE name = 'gpu:' || device)";
      db.run(format("INSERT OR IGNORE INTO main.{0} ({1}) SELECT {2} FROM old.{0}", t.name, t.columns, wanted));
      // A name may have become like another.
      if (std::string_view(t.name) == "accounts")
        db.run("INSERT OR IGNORE INTO main.accounts SELECT id, plain(name) || ' (' || id || ')' FROM old.accounts");
    }
    db.run(format("INSERT OR REPLACE INTO meta VALUES ('schema_minor', '{}'), ('shared', '1'); COMMIT; DETACH old",
                  kMinorVersion));
  }
  // To its own place in one step, and only if there is nothing yet.
  const std::string beside = format("{}.{}.new", to, getpid());
  std::remove(beside.c_str());
  Database(draft, Database::Mode::kWrite).run("VACUUM INTO '" + replaced(beside, "'", "''") + "'");
  chmod(beside.c_str(), 0600);
  if (renameat2(AT_FDCWD, beside.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    const int why = errno;
    std::remove(beside.c_str());
    throw Error(Code::kFile, format("run file {} cannot be made: {}", to, std::strerror(why)))
        .hint("give another path");
  }
}

}  // namespace millpond::runfile
