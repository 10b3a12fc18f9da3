// profile.proto by hand: the few fields that are needed, in the wire format of protocol buffers (varints and
// length-delimited fields only).
#include <cmath>
#include <map>

#include "report/exports.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using verdict::Frame;

class Message {
 public:
  void number(int field, uint64_t value) {
    if (value == 0) return;  // the default
    varint(uint64_t(field) << 3);
    varint(value);
  }
  void bytes(int field, std::string_view value) {
    varint(uint64_t(field) << 3 | 2);
    varint(value.size());
    data_ += value;
  }
  void packed(int field, const std::vector<uint64_t>& values) {
    Message inner;
    for (const uint64_t v : values) inner.varint(v);
    bytes(field, inner.data_);
  }
  const std::string& data() const { return data_; }

 private:
  void varint(uint64_t v) {
    for (; v >= 0x80; v >>= 7) data_ += char(v | 0x80);
    data_ += char(v);
  }
  std::string data_;
};

class Strings {
 public:
  uint64_t operator()(const std::string& text) {
    const auto [at, fresh] = ids_.try_emplace(text, list_.size());
    if (fresh) list_.push_back(text);
    return at->second;
  }
  const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, uint64_t> ids_{{"", 0}};
  std::vector<std::string> list_{""};  // the first must be empty
};

}  // namespace

std::string pprof(const Weighed& w, bool growth, double seconds) {
  enum Profile {
    kSampleType = 1,
    kSample = 2,
    kLocation = 4,
    kFunction = 5,
    kStrings = 6,
    kDuration = 10,
    kPeriodType = 11,
    kPeriod = 12,
    kComment = 13,
    kDefaultType = 14
  };
  Strings strings;
  Message out;
  const std::string space = growth ? "growth_space" : "inuse_space",
                    objects = growth ? "growth_objects" : "inuse_objects";
  const auto value_type = [&](const std::string& type, const char* unit) {
    Message m;
    m.number(1, strings(type));
    m.number(2, strings(unit));
    return m;
  };
  // In the order of Go's heap profiles, which people know.
  out.bytes(kSampleType, value_type("alloc_objects", "count").data());
  out.bytes(kSampleType, value_type("alloc_space", "bytes").data());
  out.bytes(kSampleType, value_type(objects, "count").data());
  out.bytes(kSampleType, value_type(space, "bytes").data());

  std::map<std::pair<std::string, std::string>, uint64_t> functions;
  std::map<std::pair<uint64_t, int>, uint64_t> locations;
  for (const Weighed::Stack& s : w.stacks) {
    std::vector<uint64_t> stack;
    for (const Frame& f : s.site->frames) {
      const std::string name = f.function.empty() ? "?" : shown(f.function, 400), file = shown(f.file, 400);
      const auto [function, new_function] = functions.try_emplace({file, name}, functions.size() + 1);
      if (new_function) {
        Message m;
        m.number(1, function->second);
        m.number(2, strings(name));
        m.number(3, strings(name));
        m.number(4, strings(file));
        out.bytes(kFunction, m.data());
      }
      const auto [location, new_location] = locations.try_emplace({function->second, f.line}, locations.size() + 1);
      if (new_location) {
        Message line, m;
        line.number(1, function->second);
        line.number(2, uint64_t(std::max(0, f.line)));
        m.number(1, location->second);
        m.bytes(4, line.data());
        out.bytes(kLocation, m.data());
      }
      stack.push_back(location->second);
    }
    const auto whole = [](double v) { return uint64_t(std::llround(std::max(0.0, v))); };
    Message sample;
    sample.packed(1, stack);  // innermost first, as frames are
    sample.packed(2,
                  {whole(s.site->total_blocks), whole(double(s.site->total.value)), whole(s.blocks), whole(s.bytes)});
    out.bytes(kSample, sample.data());
  }
  out.number(kDuration, uint64_t(std::llround(std::max(0.0, seconds) * 1e9)));
  out.bytes(kPeriodType, value_type("space", "bytes").data());
  out.number(kPeriod, 1);
  out.number(kComment, strings("millpond: " + shown(w.name)));
  out.number(kDefaultType, strings(space));
  for (const std::string& s : strings.list()) out.bytes(kStrings, s);
  return out.data();
}

}  // namespace millpond::report
