// Any bytes as a tf.train.Example: its features, or an Error. What was read, written and read again is the same.
#include "data/formats/example.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fuzz/input_file.h"

using namespace millpond;
using namespace millpond::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Example e, again;  // used again, as readers do
  try {
    e.parse(std::as_bytes(std::span(data, size)));
  } catch (const Error&) {
    if (!e.features().empty() || e.find("")) std::abort();
    return 0;
  }
  size_t values = 0;
  ExampleWriter w;
  for (const Feature& f : e.features()) {
    if (e.find(f.name) != &f) std::abort();
    values += e.ints(f).size() + e.floats(f).size() + e.bytes(f).size();
    if (f.kind == FeatureKind::kInt64) w.add(f.name, e.ints(f));
    if (f.kind == FeatureKind::kFloat) w.add(f.name, e.floats(f));
    if (f.kind == FeatureKind::kBytes) w.add(f.name, e.bytes(f));
  }
  if (values > size) std::abort();  // more than the bytes can say
  const std::string bytes(w.finish());
  again.parse(std::as_bytes(std::span(bytes.data(), bytes.size())));
  for (const Feature& f : e.features()) {
    if (f.kind == FeatureKind::kNone) continue;
    const Feature* g = again.find(f.name);
    if (!g || g->kind != f.kind || g->count != f.count) std::abort();
    if (!std::ranges::equal(e.ints(f), again.ints(*g)) || !std::ranges::equal(e.bytes(f), again.bytes(*g)))
      std::abort();
    if (f.count && f.kind == FeatureKind::kFloat &&
        std::memcmp(e.floats(f).data(), again.floats(*g).data(), f.count * 4) != 0)
      std::abort();
  }
  fuzz::accepted += !e.features().empty();
  return 0;
}
