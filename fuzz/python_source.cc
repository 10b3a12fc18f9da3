// Any text as a Python source: the places of its functions lie within it, begin before they end, and are found in one
// pass.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "fuzz/input_file.h"
#include "watch/sources.h"

using namespace millpond;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  const watch::PythonBlocks blocks = watch::python_blocks(lines);
  for (const std::vector<watch::LineRange>* list : {&blocks.functions, &blocks.statements})
    for (const watch::LineRange& r : *list)
      if (r.first < 1 || r.last < r.first || r.last > int(lines.size())) std::abort();
  if (!blocks.functions.empty()) ++fuzz::accepted;
  return 0;
}
