// EventFile: the bytes of a file that TensorBoard reads: records with checksums, each an Event. Grows in memory; take()
// when done.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace millpond::events {

/// One record: length, its checksum, the data, its checksum.
std::string framed(std::string_view data);

class EventFile {
 public:
  /// `wall` is seconds since 1970, as every wall time here.
  explicit EventFile(double wall);
  void scalar(std::string_view tag, int64_t step, double wall, double value);
  /// Markdown.
  void text(std::string_view tag, int64_t step, double wall, std::string_view value);
  void image(std::string_view tag, int64_t step, double wall, std::string_view png, int width, int height);
  std::string take() { return std::move(data_); }

 private:
  std::string data_;
};

}  // namespace millpond::events
