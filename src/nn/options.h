// options: what is done with the description of any class (describe.h).
#pragma once
#include <span>

#include "millpond/error.h"
#include "nn/field.h"

namespace millpond::nn {

/// Sets the options that the JSON gives and leaves the others. Throws Error(kFormat) for another type than an option
/// has, Error(kUsage) for a number out of range, Error(kUnsupported) for an option or a value that is not here; each
/// begins with `who`, says what was given and what is allowed, and names the nearest option.
void read_options(Described& object, const Json& config, const std::string& who);

Written write_options(const Described& object);

/// Throws Error(kUsage) when a number is out of range.
void check_options(const Described& object, const std::string& who);

/// One option for people.
struct OptionFact {
  std::string name, allowed;
  std::string otherwise;  // the default as JSON, or "as" the option that gives it; empty: it must be given
};
/// Of a new object. Options that can have one value only are left out.
std::vector<OptionFact> list_options(const Described& fresh);

/// "did you mean relu?", or all that are known: the hint behind an unknown name. With `all` those in both cases.
std::string meant(std::string_view given, const std::vector<std::string>& known, bool all = false);

/// {"module": ..., "class_name": ..., "config": ..., "registered_name": null}
Written as_object(std::string_view module, std::string_view type, Written config);

/// How Keras writes that a layer computes in float32.
Written policy_to_json(const DTypePolicy& policy);

/// Text of a JSON that we made. Throws Error(kUsage) where a name is not UTF-8, which JSON cannot hold.
std::string to_text(const Written& json, int indent = -1);
/// Throws Error(kFormat) unless it is the JSON of an object, nested no deeper than Keras's are.
Json from_text(std::string_view text, std::string_view what);

}  // namespace millpond::nn
