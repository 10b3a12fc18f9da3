#include "backend/cpu/gemm.h"

#ifdef MILLPOND_XSMM
#include <libxsmm_cpuid.h>
#include <libxsmm_generator.h>
#endif
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "backend/cpu/blocks.h"
#include "backend/cpu/gemm_kernels.h"
#include "backend/cpu/isa.h"
#include "base/segment.h"

namespace millpond::backend::cpu {
namespace {

using Key = std::array<int64_t, 9>;
constexpr size_t kLargestCode = 128 << 10;  // LIBXSMM's own limit

// Machine code of one size, in pages of its own: written first, then executable and read-only.
class Code {
 public:
  Code(const void* code, size_t bytes)
      : size_(size_t(round_up(int64_t(bytes), kPage.value))), holding_("process/jit", Bytes{int64_t(size_)}) {
    void* p = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return;
    std::memcpy(p, code, bytes);
    if (mprotect(p, size_, PROT_READ | PROT_EXEC) == 0)
      data_ = p;
    else
      munmap(p, size_);
  }
  ~Code() {
    if (data_) munmap(data_, size_);
  }
  Code(const Code&) = delete;
  void* data() const { return data_; }
  int64_t size() const { return int64_t(size_); }

 private:
  void* data_ = nullptr;
  size_t size_;
  Holding holding_;
};

struct Entry {
  std::unique_ptr<Code> code;
  int64_t users = 0;
};
struct Kernels {
  std::mutex mutex;
  std::map<Key, Entry> by_size;
  std::map<const void*, Key> by_code;
};
Kernels& kernels() {
  static Kernels* all = new Kernels;  // never destroyed: kernels of static life may go after it
  return *all;
}

#ifndef MILLPOND_XSMM
std::unique_ptr<Code> code_for(const Gemm::Size&) { return nullptr; }
#else
// LIBXSMM multiplies by columns: a row-major C = A B is its C^T = B^T A^T, so m and n, a and b change places.
std::unique_ptr<Code> code_for(const Gemm::Size& s) {
  libxsmm_descriptor_blob blob;
  const int flags = s.trans_a ? LIBXSMM_GEMM_FLAG_TRANS_B : LIBXSMM_GEMM_FLAG_NONE;
  const auto m = libxsmm_blasint(s.n), n = libxsmm_blasint(s.m), k = libxsmm_blasint(s.k), lda = libxsmm_blasint(s.ldb),
             ldb = libxsmm_blasint(s.lda), ldc = libxsmm_blasint(s.ldc);
  constexpr auto kPlain = LIBXSMM_GEMM_PREFETCH_NONE;
  const libxsmm_gemm_descriptor* d = nullptr;
  switch (s.numbers) {
    case Gemm::Numbers::kFloat:
      d = libxsmm_sgemm_descriptor_init(&blob, m, n, k, lda, ldb, ldc, 1.f, s.add ? 1.f : 0.f, flags, kPlain);
      break;
    case Gemm::Numbers::kDouble:
      d = libxsmm_dgemm_descriptor_init(&blob, m, n, k, lda, ldb, ldc, 1., s.add ? 1. : 0., flags, kPlain);
      break;
    case Gemm::Numbers::kBFloat16:
      d = libxsmm_bsgemm_descriptor_init(&blob, m, n, k, lda, ldb, ldc, 1.f, s.add ? 1.f : 0.f,
                                         flags | LIBXSMM_GEMM_FLAG_VNNI_A, kPlain);
      break;
  }
  if (!d) return nullptr;
  const std::unique_ptr<char[]> buffer(new char[kLargestCode]);
  libxsmm_generated_code g{};
  g.generated_code = buffer.get();
  g.buffer_size = kLargestCode;
  g.code_type = 2;  // binary
  g.arch = unsigned(isa() == Isa::kAvx512 ? libxsmm_cpuid_x86() : LIBXSMM_X86_AVX2);
  if (s.numbers == Gemm::Numbers::kBFloat16) g.arch = LIBXSMM_X86_AVX512_CPX;
  libxsmm_generator_gemm_kernel(&g, d);
  if (g.last_error != 0 || g.code_size == 0) return nullptr;
  auto code = std::make_unique<Code>(g.generated_code, g.code_size);
  return code->data() ? std::move(code) : nullptr;
}
#endif

}  // namespace

Gemm::Gemm(const Size& s) : size_(s) {
  if (s.m <= 0 || s.n <= 0 || s.k <= 0 || isa() == Isa::kNone) return;
  const GemmKernels& k = gemm_kernels();
  loops_ = s.numbers == Numbers::kFloat ? k.product : s.numbers == Numbers::kDouble ? k.doubles : k.pairs;
}

bool Gemm::has_bfloat16() {
#ifdef MILLPOND_XSMM
  return isa() == Isa::kAvx512 && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void Gemm::generate() {
  if (function_ || !loops_) return;
  const Size& s = size_;
  const Key key{s.m, s.n, s.k, s.lda, s.ldb, s.ldc, s.add, s.trans_a, int64_t(s.numbers)};
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  auto found = all.by_size.find(key);
  if (found == all.by_size.end()) {
    std::unique_ptr<Code> code = code_for(s);
    if (!code) return;
    all.by_code[code->data()] = key;
    found = all.by_size.emplace(key, Entry{std::move(code)}).first;
  }
  ++found->second.users;
  function_ = reinterpret_cast<Function>(found->second.code->data());
  code_bytes_ = found->second.code->size();
}

Gemm::~Gemm() {
  if (!function_) return;
  Kernels& all = kernels();
  const std::lock_guard lock(all.mutex);
  const auto code = all.by_code.find(reinterpret_cast<const void*>(function_));
  const auto entry = all.by_size.find(code->second);
  if (--entry->second.users > 0) return;
  all.by_code.erase(code);
  all.by_size.erase(entry);
}

}  // namespace millpond::backend::cpu
