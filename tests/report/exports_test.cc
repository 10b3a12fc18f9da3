#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "report/exports.h"
#include "report/made_up.h"

using namespace millpond;
using namespace millpond::report;

namespace {

/// The wire format of protocol buffers, read by other code than writes it: fields in order, varints and
/// length-delimited ones.
struct Field {
  int number;
  uint64_t value;
  std::string bytes;
};
std::vector<Field> decode(const std::string& data) {
  std::vector<Field> fields;
  size_t at = 0;
  const auto varint = [&] {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
      REQUIRE(at < data.size());
      const auto byte = static_cast<unsigned char>(data[at++]);
      v |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) return v;
    }
  };
  while (at < data.size()) {
    const uint64_t key = varint();
    if ((key & 7) == 0)
      fields.push_back({int(key >> 3), varint(), ""});
    else {
      REQUIRE((key & 7) == 2);
      const uint64_t size = varint();
      REQUIRE(size <= data.size() - at);
      fields.push_back({int(key >> 3), 0, data.substr(at, size)});
      at += size;
    }
  }
  return fields;
}
std::vector<uint64_t> numbers(const std::string& packed) {
  std::vector<uint64_t> list;
  size_t at = 0;
  while (at < packed.size()) {
    uint64_t v = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(packed[at++]);
      v |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80)) break;
    }
    list.push_back(v);
  }
  return list;
}

}  // namespace

TEST_CASE("collapsed: one line for each stack, outermost first, bytes at the peak") {
  const verdict::Evidence e = made_up();
  CHECK(collapsed(live_stacks(e, *peak_moment(e))) ==
        "<module> (project/a/train.py:38);make_model (project/a/train.py:5);build "
        "(/usr/lib/python3/dist-packages/keras/src/trainer.py:20);"
        "add_weight (/usr/lib/python3/dist-packages/keras/src/trainer.py:33) 104857600\n"
        "<module> (project/a/train.py:40);fit (/usr/lib/python3/dist-packages/keras/src/trainer.py:70);"
        "on_epoch_end (/usr/lib/python3/dist-packages/keras/src/trainer.py:90);Keeper.on_epoch_end "
        "(project/a/train.py:12);<listcomp> (project/a/train.py:12) 83886080\n"
        "Allocate (/usr/lib/libtensorflow.so) 31457280\n");
}
TEST_CASE("collapsed: growth holds only what grew after warm-up") {
  const verdict::Evidence e = made_up();
  const Weighed grown = grown_stacks(e);
  REQUIRE(grown.stacks.size() == 1);
  // whole epochs; how many of the ten are warm-up is the verdict's to say
  const double epochs = grown.stacks[0].bytes / (8.0 * kMiB);
  CHECK(epochs == std::floor(epochs));
  CHECK((epochs >= 4 && epochs <= 8));
  CHECK(grown_stacks(made_up(0)).stacks.empty());
}
TEST_CASE("collapsed: names that would break a line do not") {
  verdict::Evidence e = made_up();
  e.sites[2].frames[0].function = "a;b\n9 \033[2J";
  const std::string text = collapsed(live_stacks(e, *peak_moment(e)));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
  CHECK(text.find("a:b?9 ?[2J (/usr/lib/libtensorflow.so) 31457280\n") != text.npos);
}
TEST_CASE("speedscope: a file of its schema, with a sampled profile in bytes") {
  const verdict::Evidence e = made_up();
  const nlohmann::json j =
      nlohmann::json::parse(speedscope({live_stacks(e, *peak_moment(e)), grown_stacks(e)}, e.command));
  CHECK(j.at("$schema") == "https://www.speedscope.app/file-format-schema.json");
  CHECK(j.at("name") == "python train.py");
  REQUIRE(j.at("profiles").size() == 2);
  for (const auto& p : j.at("profiles")) {
    CHECK(p.at("type") == "sampled");
    CHECK(p.at("unit") == "bytes");
    REQUIRE(p.at("samples").size() == p.at("weights").size());
    double sum = 0;
    for (const auto& w : p.at("weights")) sum += w.get<double>();
    CHECK(p.at("startValue") == 0);
    CHECK(p.at("endValue") == sum);
    for (const auto& sample : p.at("samples"))
      for (const auto& index : sample) CHECK(index.get<size_t>() < j.at("shared").at("frames").size());
  }
  const auto& first = j["profiles"][0]["samples"][0];
  CHECK(j["shared"]["frames"][first[0].get<size_t>()].at("name") == "<module>");
  CHECK(j["shared"]["frames"][first[1].get<size_t>()].at("line") == 5);
}
TEST_CASE("pprof: a tiny decoder finds types, samples, locations, functions and strings") {
  const verdict::Evidence e = made_up();
  std::vector<std::string> strings;
  std::vector<std::string> types;
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> locations;  // id -> function, line
  std::map<uint64_t, uint64_t> functions;                       // id -> name
  std::vector<std::pair<std::vector<uint64_t>, std::vector<uint64_t>>> samples;
  uint64_t first_shown = 0;
  const std::vector<Field> fields = decode(pprof(live_stacks(e, *peak_moment(e)), false, e.seconds));
  for (const Field& f : fields)
    if (f.number == 6) strings.push_back(f.bytes);
  for (const Field& f : fields) {
    if (f.number == 1)
      types.push_back(strings.at(decode(f.bytes).at(0).value) + "/" + strings.at(decode(f.bytes).at(1).value));
    if (f.number == 2) samples.emplace_back(numbers(decode(f.bytes).at(0).bytes), numbers(decode(f.bytes).at(1).bytes));
    if (f.number == 4) {
      const std::vector<Field> at = decode(f.bytes), line = decode(at.at(1).bytes);
      locations[at.at(0).value] = {line.at(0).value, line.size() > 1 ? line[1].value : 0};
    }
    if (f.number == 5) functions[decode(f.bytes).at(0).value] = decode(f.bytes).at(1).value;
    if (f.number == 10) CHECK(f.value == 11'000'000'000);
    if (f.number == 14) first_shown = f.value;
  }
  CHECK(strings.at(0) == "");
  CHECK(types == std::vector<std::string>{"alloc_objects/count", "alloc_space/bytes", "inuse_objects/count",
                                          "inuse_space/bytes"});
  CHECK(strings.at(first_shown) == "inuse_space");
  REQUIRE(samples.size() == 3);
  for (const auto& [stack, values] : samples) {
    REQUIRE(values.size() == 4);
    for (const uint64_t location : stack) CHECK(functions.count(locations.at(location).first) == 1);
  }
  const auto& [stack, values] = samples[0];  // the weights of the model: most bytes first
  CHECK(values == std::vector<uint64_t>{20, 100 * kMiB, 20, 100 * kMiB});
  CHECK(strings.at(functions.at(locations.at(stack.at(0)).first)) == "add_weight");
  CHECK(locations.at(stack.at(2)).second == 5);
}
TEST_CASE("pprof: growth is named so") {
  const std::string data = pprof(grown_stacks(made_up()), true, 1);
  CHECK(data.find("growth_space") != data.npos);
  CHECK(data.find("inuse_space") == data.npos);
}
