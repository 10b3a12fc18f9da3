// Who holds the memory at a moment: as a table of places and as a tree of calls. Pure.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "report/doctor.h"
#include "report/moment.h"

namespace millpond::report {

/// The places that hold most, at most `limit` of them, and what the others hold together.
std::string table_text(const verdict::Evidence& evidence, const Moment& moment, const TextStyle& style, int limit);
nlohmann::ordered_json table_json(const verdict::Evidence& evidence, const Moment& moment, int limit);

/// Calls from the outermost inwards with all that is held below each. Of frames of libraries only the first of a row of
/// them is shown, and the one that allocates: a stack of Keras has fifty. At most `limit` lines; what is small is left
/// out first.
std::string tree_text(const verdict::Evidence& evidence, const Moment& moment, const TextStyle& style, int limit);
nlohmann::ordered_json tree_json(const verdict::Evidence& evidence, const Moment& moment, int limit);

}  // namespace millpond::report
