// Shape: the dimensions of a tensor, outermost first. Up to eight, held in place: copying one allocates nothing.
// A tensor's dimensions are numbers. In the shapes of a model that is being built some may be None: not known yet, and
// different from one batch to the next.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace millpond {

/// A dimension that is not known before data come: Input({None, None, 3}).
inline constexpr int64_t None = -1;

class Shape {
 public:
  static constexpr int kMaxRank = 8;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);  // throws Error(kShape): more than kMaxRank, or below None

  int rank() const { return rank_; }
  /// -1 is the last. Throws Error(kShape) where there is no such dimension.
  int64_t operator[](int i) const {
    const int at = i < 0 ? i + rank_ : i;
    if (at < 0 || at >= rank_) no_dimension(i);
    return dims_[size_t(at)];
  }
  int64_t back() const { return (*this)[-1]; }
  /// Number of elements; 1 for a scalar. Throws Error(kShape) where a dimension is None.
  int64_t size() const;
  /// No dimension is None.
  bool known() const;
  std::span<const int64_t> dims() const { return {dims_.data(), size_t(rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + rank_; }

  Shape with(int axis, int64_t dim) const;  // the same with one dimension changed
  Shape without(int axis) const;            // one dimension removed
  Shape with_front(int64_t dim) const;      // a dimension put in front (the batch)
  Shape slice(int from, int to) const;      // dimensions [from, to)

  bool operator==(const Shape& o) const;

 private:
  [[noreturn]] void no_dimension(int i) const;
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

/// "[32, 224, 224, 3]"; a scalar is "[]", and what is not known is None: "[None, 3]".
std::string to_string(const Shape& shape);

/// NumPy's rule. Throws Error(kShape) with both shapes when they do not go together.
Shape broadcast(const Shape& a, const Shape& b);

}  // namespace millpond
