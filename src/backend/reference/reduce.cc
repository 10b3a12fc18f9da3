#include "ops/reduce.h"
#include "backend/reference/types.h"
#include "ops/apply.h"

namespace millpond::backend::reference {

std::unique_ptr<Kernel> reduce(const ops::Reduce& op, const Request& request) {
  // Two nested walks over x: the outer one over the dimensions that stay, the inner one over those that go.
  const Shape x = request.inputs[0].shape;
  const Strides strides = row_major(x);
  Shape kept = x, gone = x;
  for (int i = 0; i < x.rank(); ++i) {
    Shape& other = std::ranges::count(op.axes, i) ? kept : gone;
    other = other.with(i, 1);
  }
  const int64_t count = gone.size();
  return with_type(request.inputs[0].dtype, [&]<class T>() {
    return loop([=, kind = op.kind](const Arguments& a) {
      walk(kept, std::array{strides, row_major(kept)}, [&](const auto& outer) {
        Total<T> total = 0;
        if (kind == ops::Reduce::Kind::kMax) {  // of nothing: the least that the type has, as in TensorFlow
          if constexpr (kFloating<T>)
            total = Total<T>(-INFINITY);
          else
            total = Total<T>(std::numeric_limits<T>::lowest());
        }
        walk(gone, std::array<Strides, 1>{strides}, [&](const auto& inner) {
          const auto v = Total<T>(load(a.input<T>(0), outer[0] + inner[0]));
          if (kind != ops::Reduce::Kind::kMax)
            total = ops::arithmetic::plus(total, v);
          else if (v > total || v != v)
            total = v;  // a NaN stays
        });
        if (kind == ops::Reduce::Kind::kMean) total /= Total<T>(count);  // of nothing: NaN, as in NumPy
        store(a.output<T>(0), outer[1], total);
      });
    });
  });
}

}  // namespace millpond::backend::reference
