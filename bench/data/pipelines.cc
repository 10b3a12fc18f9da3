// pipelines WORK FOLDER EPOCHS: one pipeline of bench/data.py, gone through EPOCHS times; the times of each and a sum
// over all values, as JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "base/process.h"
#include "io/npy.h"
#include "millpond/dataset.h"

using namespace millpond;

namespace {

Dataset make(const std::string& work, const std::string& folder) {
  if (work == "arrays") {
    return Dataset::from_arrays(io::read_npy(folder + "/x.npy", "data/x"), io::read_npy(folder + "/y.npy", "data/y"))
        .shuffle({.seed = 1})
        .batch(128)
        .prefetch(AUTOTUNE);
  }
  if (work == "csv") return Dataset::from_csv(folder + "/rows.csv", {.label = "label"}).batch(256).prefetch(AUTOTUNE);
  if (work == "images") {
    return Dataset::from_image_folder(folder + "/images", {.height = 180, .width = 180})
        .augment({.flip_horizontal = true, .crop_height = 160, .crop_width = 160, .brightness = 0.1, .seed = 1})
        .batch(32)
        .prefetch(AUTOTUNE);
  }
  std::fprintf(stderr, "pipelines: '%s' is not known\n", work.c_str());
  std::exit(2);
}

double sum_of(const Tensor& t) {
  double sum = 0;
  if (t.dtype() == DType::kFloat32)
    for (const float v : t.values<float>()) sum += double(v);
  else
    for (int64_t i = 0; i < t.size(); ++i) sum += t.at(i);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: pipelines WORK FOLDER EPOCHS\n"), 2;
  const Dataset d = make(argv[1], argv[2]);
  DatasetIterator it = d.iterator();
  nlohmann::json seconds = nlohmann::json::array();
  int64_t elements = 0;
  double x = 0, y = 0;
  for (int epoch = 0; epoch < std::atoi(argv[3]); ++epoch) {
    const auto start = std::chrono::steady_clock::now();
    if (epoch) it.rewind(epoch);
    elements = 0;
    for (Element e; it.next(e);) {
      elements += e[0].shape()[0];
      if (epoch == 0) x += sum_of(e[0]), y += sum_of(e[1]);  // the values, once; later epochs are timed
    }
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const auto t = totals();
  std::puts(nlohmann::json{{"elements", elements},
                           {"seconds", seconds},
                           {"sum_x", x},
                           {"sum_y", y},
                           {"rss_peak", t ? t->peak.value : 0},
                           {"pipeline_peak", it.peak().value},
                           {"explain", it.explain()}}
                .dump()
                .c_str());
}
