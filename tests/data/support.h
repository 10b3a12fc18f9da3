// Plain twins of elements and datasets, and a look at this process.
#pragma once
#include <dirent.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/random.h"
#include "millpond/dataset.h"
#include "support/message_of.h"

namespace millpond::test {

/// One tensor, copied.
struct Plain {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
  bool operator==(const Plain&) const = default;
};
using Item = std::vector<Plain>;

inline Item plain(const Element& e) {
  Item item;
  for (const Tensor& t : e)
    item.push_back({t.dtype(), {t.shape().begin(), t.shape().end()}, {t.data(), t.data() + t.bytes().value}});
  return item;
}
inline bool same(const Element& e, const Item& item) {
  if (e.size() != item.size()) return false;
  for (size_t i = 0; i < e.size(); ++i) {
    const Tensor& t = e[i];
    const Plain& p = item[i];
    if (t.dtype() != p.dtype || size_t(t.shape().rank()) != p.shape.size() ||
        !std::equal(p.shape.begin(), p.shape.end(), t.shape().begin()))
      return false;
    if (!p.bytes.empty() && std::memcmp(t.data(), p.bytes.data(), p.bytes.size()) != 0) return false;
  }
  return true;
}
inline std::vector<Item> collect(const Dataset& d) {
  std::vector<Item> all;
  for (const Element& e : d) all.push_back(plain(e));
  return all;
}
/// First values of the first tensors, as numbers.
inline std::vector<double> numbers(const Dataset& d) {
  std::vector<double> all;
  for (const Element& e : d)
    for (int64_t i = 0; i < e[0].size(); ++i) all.push_back(e[0].at(i));
  return all;
}

inline int threads_now() {
  int n = 0;
  DIR* d = opendir("/proc/self/task");
  while (const dirent* e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n;
}
inline int files_open() {
  int n = 0;
  DIR* d = opendir("/proc/self/fd");
  while (const dirent* e = readdir(d)) n += e->d_name[0] != '.';
  closedir(d);
  return n - 1;
}

inline Tensor random_floats(Shape shape, uint64_t seed) {
  Tensor t(DType::kFloat32, shape, "data/test");
  Random random(seed);
  for (float& v : t.values<float>()) v = float(random.uniform());
  return t;
}

}  // namespace millpond::test
