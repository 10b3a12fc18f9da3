#include "ops/slice.h"

#include "backend/cpu/strided.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> slice(const ops::Slice& op, const Request& request) {
  const Shape &x = request.inputs[0].shape, &y = request.outputs[0].shape;
  const int64_t element = size_of(request.inputs[0].dtype).value;
  const auto from = steps_of(x), to = steps_of(y);
  Strided s;
  int64_t start = 0;
  for (int i = 0; i < y.rank(); ++i) {
    start += op.starts[size_t(i)] * from[size_t(i)] * element;
    s.add(y[i], from[size_t(i)] * element, to[size_t(i)] * element);
  }
  s.finish(element);
  const bool stream = y.size() * element >= kStreamBytes;
  return in_runs(Runs(s.runs(), s.time()), [=, k = &copy_kernels()](const Arguments& a, int64_t begin, int64_t end) {
    s.copy(*k, a.input<std::byte>(0) + start, a.output<std::byte>(0), begin, end, stream);
  });
}

}  // namespace millpond::backend::cpu
