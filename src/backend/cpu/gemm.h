// Gemm: a product of small row-major float matrices of a fixed size: C = A B or C += A B.
//
//   a [m, k], b [k, n], c [m, n]; lda, ldb, ldc: floats from row to row. trans_a: a is stored as [k, m], and lda is from row to row
//   of that. (b stored as [n, k] is what LIBXSMM 1.17 cannot do: transpose it first.)
//
// Where LIBXSMM is there (MILLPOND_XSMM), it compiles the product for its exact size. It is used as a code generator only: its own dispatcher would cost 3 ms and
// 11 MiB at the first call (a registry of 131,072 places) and never gives code back (Debian builds it without LIBXSMM_ENABLE_DEREG). Without it, and for sizes that it
// has no kernel for, the loops of gemm_kernels.h do the work.
// Memory: a page of machine code for each size from generate() on, under the account process/jit. Users of a size are counted over the whole
// process; the last one gives the page back.
#pragma once
#include <cstdint>
#include <utility>

namespace millpond::backend::cpu {

class Gemm {
 public:
  struct Size {
    int64_t m = 0, n = 0, k = 0, lda = 0, ldb = 0, ldc = 0;
    bool add = false;  // C += A B
    bool trans_a = false;
  };

  Gemm() = default;
  /// Empty (false) when there is no kernel for it: a dimension of 0, or a processor without AVX2.
  explicit Gemm(const Size& size);
  ~Gemm();
  Gemm(Gemm&& o) noexcept
      : function_(std::exchange(o.function_, nullptr)), loops_(o.loops_), size_(o.size_), code_bytes_(o.code_bytes_) {}
  Gemm& operator=(Gemm&& o) noexcept {
    std::swap(function_, o.function_);
    std::swap(loops_, o.loops_);
    std::swap(size_, o.size_);
    std::swap(code_bytes_, o.code_bytes_);
    return *this;
  }

  explicit operator bool() const { return loops_; }
  /// From here on by machine code for the size, where there is some; until then by our own loops.
  void generate();
  /// Of machine code; other users of the same size may share it.
  int64_t code_bytes() const { return code_bytes_; }
  void operator()(const float* a, const float* b, float* c) const noexcept {
    if (function_)
      function_(b, a, c);
    else
      loops_(size_, a, b, c);
  }

 private:
  using Function = void (*)(const float*, const float*, float*);
  Function function_ = nullptr;
  void (*loops_)(const Size&, const float*, const float*, float*) = nullptr;
  Size size_;
  int64_t code_bytes_ = 0;
};

}  // namespace millpond::backend::cpu
