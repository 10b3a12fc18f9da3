#include "ops/dropout.h"
#include "backend/reference/types.h"
#include "base/random.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> dropout(const ops::Dropout& op, const Request& request) {
  const int64_t n = request.outputs[0].shape.size();
  return with_floating(request.outputs[0].dtype, [&]<class T>() {
    return loop([n, salt = op.salt, threshold = op.threshold(),
                 scale = ops::dropout_scale(float(op.rate))](const Arguments& a) {
      const uint64_t key = random_key(salt, uint64_t(uint32_t(a.input<int32_t>(1)[0])));
      for (int64_t i = 0; i < n; ++i)
        store(a.output<T>(0), i,
              random_bits(key, uint32_t(i)) >= threshold ? load(a.input<T>(0), i) * Number<T>(scale) : Number<T>(0));
    });
  });
}

}  // namespace millpond::backend::reference
