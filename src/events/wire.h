// Message: a protocol buffer written by hand, field by field: the few messages that other tools want of us need no
// compiler for them.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace millpond::events {

class Message {
 public:
  /// An integer, a bool or an enum. The default, 0, is written too: some readers ask whether a field is there.
  Message& number(int field, uint64_t value) {
    varint(uint64_t(field) << 3);
    varint(value);
    return *this;
  }
  Message& real(int field, double value) {
    varint(uint64_t(field) << 3 | 1);
    fixed(value);
    return *this;
  }
  Message& real32(int field, float value) {
    varint(uint64_t(field) << 3 | 5);
    fixed(value);
    return *this;
  }
  Message& bytes(int field, std::string_view value) {
    varint(uint64_t(field) << 3 | 2);
    varint(value.size());
    data_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.data_); }
  const std::string& data() const { return data_; }

 private:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) data_ += char(v | 0x80);
    data_ += char(v);
  }
  template <class T>
  void fixed(T value) {  // little-endian, as every machine we build for
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    data_.append(raw, sizeof value);
  }
  std::string data_;
};

}  // namespace millpond::events
