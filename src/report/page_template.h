// The page that web/ builds, as bytes of the program.
#pragma once
#include <string_view>

namespace millpond::report {

/// Without a document in it the page asks its server for one.
std::string_view page_template();

/// Whether the charts are in it: a build without Node has the text only.
bool page_is_built();

}  // namespace millpond::report
