// weights_tool: the readers and writers of src/io as a program, for tests that run beside real Keras and NumPy.
//   weights_tool dump FILE FOLDER   each entry as FOLDER/<path with dots>.npy (bfloat16 as float32); prints path, type,
//   shape weights_tool copy FILE OUT      reads all, writes all weights_tool npy FILE OUT       maps a .npy file and
//   writes it again
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/format.h"
#include "io/npy.h"
#include "io/weights_h5.h"

using namespace millpond;
using namespace millpond::io;

namespace {
int run(const std::string& command, const std::string& in, const std::string& out) {
  if (command == "npy") return write_npy(out, map_npy(in)), 0;
  const WeightsReader reader(in);
  if (command == "copy") {
    std::vector<WeightEntry> entries;
    for (const auto& [path, info] : reader.entries()) entries.push_back({path, reader.read(path, "data/weights")});
    std::vector<ObjectName> names;
    for (const auto& [path, name] : reader.names()) names.push_back({path, name});
    return write_weights(out, entries, names), 0;
  }
  for (const auto& [path, info] : reader.entries()) {
    Tensor t(info.dtype, info.shape);
    reader.read_into(path, t);
    if (t.dtype() == DType::kBFloat16) t = t.astype(DType::kFloat32);
    std::string name = path;
    std::replace(name.begin(), name.end(), '/', '.');
    write_npy(out + "/" + name + ".npy", t);
    std::printf("%s %s %s\n", path.c_str(), std::string(to_string(info.dtype)).c_str(), to_string(info.shape).c_str());
  }
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || (std::strcmp(argv[1], "dump") && std::strcmp(argv[1], "copy") && std::strcmp(argv[1], "npy")))
    return 2;
  try {
    return run(argv[1], argv[2], argv[3]);
  } catch (const Error& e) {
    std::fprintf(stderr, "weights_tool: %s\n", e.what());
    return 1;
  }
}
