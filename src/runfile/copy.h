// copy: a run file as it stands, while another connection of this or another process writes it. Takes SQLite's own
// locks, so the copy is of one moment and nobody else's locks are lost (closing a file that this process has open
// elsewhere would lose them). The writer waits while pages are copied: some milliseconds for 20 MB.
#pragma once
#include <string>

namespace millpond::runfile {

/// `to` is written over. Throws Error(kFile) or Error(kFormat).
void copy(const std::string& from, const std::string& to);

}  // namespace millpond::runfile
