// Field: one option as those see it who read, write, check or list options: its kind, and the way to the member that
// holds it.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>

#include "nn/describe.h"

namespace millpond::nn {

using Json = nlohmann::json;  // what is read: a lookup costs little, however many keys a stranger's object has
using Written = nlohmann::ordered_json;  // what is written keeps the order in which options are told

enum class FieldKind {
  kBoolean,
  kText,
  kWhole,
  kNumber,
  kSeed,
  kChoice,
  kPair,
  kList,
  kSides,
  kShape,
  kObject,
  kFixed,          // one value only
  kWithoutEffect,  // any value
  kOutdated        // any value, and not written
};

struct Field {
  std::string_view name;
  FieldKind kind = FieldKind::kFixed;
  /// Fills the member; false when the JSON is not of this kind. `who` begins the text of an error inside it.
  std::function<bool(const Json& json, const std::string& who)> read = {};
  std::function<Written()> write = {};
  Allowed allowed = {};
  bool nullable = false;  // null is a value of its own, not only "not given"
  bool required = false;
  std::vector<std::string> choices =
      {};                      // kChoice: words; kObject: classes; kFixed: its value in short, where it is long
  std::string_view like = {};  // the option whose value it takes when it is not given

  /// "a whole number of at least 1", "one of valid, same"
  std::string wanted() const;
  /// "at least 1"; empty when every number is allowed.
  std::string range() const;
  /// Whether the number, or each number of the list, is allowed.
  bool allows(const Written& value) const;
};

/// The JSON in at most 60 letters, for messages.
std::string brief(const Json& json);
std::string brief(const Written& json);

}  // namespace millpond::nn
