#include "ops/gather.h"

#include "backend/cpu/copy_kernels.h"
#include "backend/cpu/rows.h"

namespace millpond::backend::cpu {

std::unique_ptr<Kernel> gather(const ops::Gather&, const Request& request) {
  const Shape& table = request.inputs[0].shape;
  const int64_t count = table[0], bytes = table[1] * size_of(request.inputs[0].dtype).value,
                n = bytes ? request.inputs[1].shape.size() : 0;
  return in_runs(Runs(n, 4 + byte_time(2.0 * double(bytes))), [=, t = request.inputs[1].dtype,
                                                               f = copy_kernels().gather](const Arguments& a,
                                                                                          int64_t begin, int64_t end) {
    f(a.input<std::byte>(0), count, bytes, labels(a, 1, t, begin), end - begin, a.output<std::byte>(0) + begin * bytes);
  });
}

}  // namespace millpond::backend::cpu
