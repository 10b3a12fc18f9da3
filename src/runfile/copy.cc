#include "runfile/copy.h"

#include <cstdio>
#include <memory>

#include "runfile/sqlite.h"

namespace millpond::runfile {

void copy(const std::string& from, const std::string& to) {
  std::remove(to.c_str());
  const Database source(from, Database::Mode::kRead);
  const Database target(to, Database::Mode::kCreate);
  sqlite3_backup* backup = sqlite3_backup_init(target.handle(), "main", source.handle(), "main");
  if (!backup) throw target.error("copying", sqlite3_errcode(target.handle()));
  const int code = sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) throw target.error("copying", code);
}

}  // namespace millpond::runfile
