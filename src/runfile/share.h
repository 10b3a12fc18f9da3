// share: a run file to give to others: a copy without paths, user names and host names.
//
// Every text of every table is written anew: paths become relative to the project or to site-packages, other absolute
// paths keep their last part, folders of the system (/usr, /lib, ...) stay, and names are replaced. The copy has the
// tables and columns that readers know and nothing else, not even what SQLite keeps in free pages. Amounts and times
// are the same.
#pragma once
#include <string>
#include <vector>

#include "runfile/reader.h"

namespace millpond::runfile {

struct Private {
  std::string project;             // the folder that the program ran in
  std::vector<std::string> homes;  // home folders
  std::vector<std::string> users, hosts;
};

/// What is known of the person at this machine: $HOME, the login name, the name of the host.
Private private_here();

/// One text without what is private; also finds the names of users in paths such as /home/NAME, of `p` or not.
std::string without_private(const std::string& text, const Private& p);

/// Throws Error(kFile) when `to` exists or cannot be written.
void share(const Reader& file, const std::string& to, Private p);

}  // namespace millpond::runfile
