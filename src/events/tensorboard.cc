#include "events/tensorboard.h"

#include "base/crc32c.h"
#include "events/wire.h"

namespace millpond::events {
namespace {

enum Event { kWall = 1, kStep = 2, kVersion = 3, kSummary = 5 };
enum Value { kTag = 1, kSimple = 2, kImage = 4, kTensor = 8, kMetadata = 9 };

std::string little_endian(uint64_t v, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += char(v >> 8 * i);
  return out;
}

std::string checksum(std::string_view data) {
  return little_endian(mask_crc(crc32c(std::as_bytes(std::span(data)))), 4);
}

std::string event(int64_t step, double wall, const Message& value) {
  return framed(
      Message().real(kWall, wall).number(kStep, uint64_t(step)).message(kSummary, Message().message(1, value)).data());
}

}  // namespace

std::string framed(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  return length + checksum(length) + std::string(data) + checksum(data);
}

EventFile::EventFile(double wall) {
  data_ = framed(Message().real(kWall, wall).bytes(kVersion, "brain.Event:2").data());
}

void EventFile::scalar(std::string_view tag, int64_t step, double wall, double value) {
  data_ += event(step, wall, Message().bytes(kTag, tag).real32(kSimple, float(value)));
}

void EventFile::text(std::string_view tag, int64_t step, double wall, std::string_view value) {
  constexpr int kString = 7;  // DT_STRING
  const Message tensor = Message().number(1, kString).message(2, Message()).bytes(8, value);
  const Message metadata = Message().message(1, Message().bytes(1, "text"));
  data_ += event(step, wall, Message().bytes(kTag, tag).message(kTensor, tensor).message(kMetadata, metadata));
}

void EventFile::image(std::string_view tag, int64_t step, double wall, std::string_view png, int width, int height) {
  constexpr int kRgb = 3;
  const Message image = Message().number(1, uint64_t(height)).number(2, uint64_t(width)).number(3, kRgb).bytes(4, png);
  data_ += event(step, wall, Message().bytes(kTag, tag).message(kImage, image));
}

}  // namespace millpond::events
