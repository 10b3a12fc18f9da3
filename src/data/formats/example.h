// tf.train.Example, the usual content of a TFRecord: names, each with a list of int64, float or bytes.
// Parsed from protobuf's wire format without libprotobuf: a length never leaves the message it is in, and no more is
// decoded than the record's bytes can say (a list of n values takes at least n bytes of the record).
// Memory: lists that are used again; at most 48 bytes for each byte of the largest record met (features without name
// and value), 16 for each byte of numbers.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "millpond/error.h"

namespace millpond::data {

enum class FeatureKind : uint8_t { kNone, kBytes, kFloat, kInt64 };
std::string_view to_string(FeatureKind kind);

struct Feature {
  std::string_view name;  // points into the record
  FeatureKind kind = FeatureKind::kNone;
  size_t begin = 0, count = 0;  // among the values of its kind
};

/// One parsed record; its views point into the record's bytes and hold as long as these and until the next parse().
class Example {
 public:
  /// Throws Error(kFormat) with the byte of the record. `file` and `record` are for the error.
  void parse(std::span<const std::byte> bytes, std::string_view file = "the example", int64_t record = 0);

  /// In the order of the record. A name that is there twice is there once, with its last value, as in protobuf.
  std::span<const Feature> features() const { return features_; }
  /// nullptr: not there.
  const Feature* find(std::string_view name) const;
  /// Empty where the feature has another kind.
  std::span<const int64_t> ints(const Feature& f) const;
  std::span<const float> floats(const Feature& f) const;
  std::span<const std::string_view> bytes(const Feature& f) const;

 private:
  class Parser;
  std::vector<Feature> features_;
  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<std::string_view> bytes_;
  std::vector<uint32_t> order_;  // features_ by name
};

/// Builds the bytes of one Example; its memory is used again by the next.
class ExampleWriter {
 public:
  void clear();
  void add(std::string_view name, std::span<const int64_t> values);
  void add(std::string_view name, std::span<const float> values);
  void add(std::string_view name, std::span<const std::string_view> values);
  void add(std::string_view name, std::string_view value) { add(name, std::span<const std::string_view>(&value, 1)); }
  /// Valid until clear() or add().
  std::string_view finish();

 private:
  void add_feature(std::string_view name, int kind);
  std::string packed_, list_, body_, message_;
};

}  // namespace millpond::data
