// The user's own function. In debug builds its results lie between bytes that are looked at afterwards, and its
// operands are compared with what they were, so that a function which writes where it should not is told from a wrong
// result.
#include "ops/own.h"

#include <atomic>
#include <cstring>

#include "backend/reference/types.h"
#include "base/format.h"

namespace millpond::backend::reference {
namespace {

class OwnKernel : public Kernel {
 public:
  OwnKernel(const ops::Own& op, const Request& request) : own_(op.own), who_(op.who()) {
    for (const TensorType& t : request.inputs) inputs_.push_back({nullptr, {t.dtype, t.shape}});
    for (const TensorType& t : request.outputs) outputs_.push_back({nullptr, {t.dtype, t.shape}});
    for (const TensorType& t : request.outputs) sizes_.push_back(t.bytes());
    for (const TensorType& t : request.inputs) input_sizes_.push_back(t.bytes());
    // Element-wise work is cut into as many pieces as there are threads; each is at least some microseconds.
    constexpr int64_t kPiece = 16384;
    if (dynamic_cast<const extend::OwnElementwise*>(own_.get()) && !kWatched)
      blocks_ = int(std::clamp<int64_t>(request.outputs[0].shape.size() / kPiece, 1, request.threads));
  }
  std::span<const int> phases() const override { return {&blocks_, 1}; }

  void run(const Arguments& a, int, int block, int) const noexcept override {
    // A kernel keeps no state between calls and may be run by several threads: the arrays of a call are its own.
    constexpr size_t kMost = 16;
    extend::Array in[kMost], out[kMost];
    for (size_t i = 0; i < inputs_.size() && i < kMost; ++i) in[i] = inputs_[i], in[i].data = a.in[i];
    for (size_t i = 0; i < outputs_.size() && i < kMost; ++i) out[i] = outputs_[i], out[i].data = a.out[i];
    if (blocks_ > 1) {
      const int64_t n = outputs_[0].type.shape.size(), from = n * block / blocks_, to = n * (block + 1) / blocks_;
      const float* pieces[kMost];
      for (size_t i = 0; i < inputs_.size(); ++i) pieces[i] = static_cast<const float*>(a.in[i]) + from;
      static_cast<const extend::OwnElementwise&>(*own_).apply({pieces, inputs_.size()},
                                                              static_cast<float*>(a.out[0]) + from, to - from);
      return;
    }
    if (!kWatched) return own_->compute({in, inputs_.size()}, {out, outputs_.size()});
    watch(a, in, out);
  }

  Bytes workspace() const override {
    Bytes total;
    if (!kWatched) return total;
    for (const Bytes size : sizes_) total += kGuard + round_up(size, kGuard) + kGuard;
    for (const Bytes size : input_sizes_) total += round_up(size, kGuard);
    return total;
  }
  void throw_if_failed() const override {
    if (const Wrong w = wrong_.exchange(Wrong::kNone); w != Wrong::kNone)
      throw Error(Code::kUsage,
                  w == Wrong::kOutside
                      ? format("{}: compute writes outside of result {}, which its shape rule says is {}{}", who_,
                               at_.load(), outputs_[size_t(at_)].type.dtype, outputs_[size_t(at_)].type.shape)
                      : format("{}: compute writes to its operand {}", who_, at_.load()))
          .hint(w == Wrong::kOutside ? "let infer give the shape that compute fills"
                                     : "an operand belongs to others too; write to results alone");
  }

 private:
#ifdef MILLPOND_CHECKS
  static constexpr bool kWatched = true;
#else
  static constexpr bool kWatched = false;
#endif
  static constexpr Bytes kGuard{64};
  static constexpr int kPattern = 0xa5;
  enum class Wrong { kNone, kOutside, kOperand };

  void watch(const Arguments& a, extend::Array* in, extend::Array* out) const {
    std::byte* at = a.scratch;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      std::memcpy(at, a.in[i], size_t(input_sizes_[i].value));
      at += round_up(input_sizes_[i], kGuard).value;
    }
    std::byte* const guarded = at;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int64_t whole = (kGuard + round_up(sizes_[i], kGuard) + kGuard).value;
      std::memset(at, kPattern, size_t(whole));
      out[i].data = at + kGuard.value;
      at += whole;
    }
    own_->compute({in, inputs_.size()}, {out, outputs_.size()});
    at = guarded;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const int64_t whole = (kGuard + round_up(sizes_[i], kGuard) + kGuard).value;
      const int64_t end = kGuard.value + sizes_[i].value;
      for (int64_t k = 0; k < whole; ++k)
        if ((k < kGuard.value || k >= end) && at[k] != std::byte{kPattern}) fail(Wrong::kOutside, int(i));
      std::memcpy(a.out[i], at + kGuard.value, size_t(sizes_[i].value));
      at += whole;
    }
    at = a.scratch;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (std::memcmp(at, a.in[i], size_t(input_sizes_[i].value)) != 0) fail(Wrong::kOperand, int(i));
      at += round_up(input_sizes_[i], kGuard).value;
    }
  }
  void fail(Wrong w, int which) const { wrong_ = w, at_ = which; }

  std::shared_ptr<const extend::OwnOperator> own_;
  std::string who_;
  std::vector<extend::Array> inputs_, outputs_;
  std::vector<Bytes> sizes_, input_sizes_;
  int blocks_ = 1;
  mutable std::atomic<Wrong> wrong_{Wrong::kNone};  // only in debug builds; looked at when the run is over
  mutable std::atomic<int> at_{0};
};

}  // namespace

std::unique_ptr<Kernel> own(const ops::Own& op, const Request& request) {
  if (request.inputs.size() > 16 || request.outputs.size() > 16)
    throw Error(Code::kUnsupported,
                format("{} has {} operands and {} results", op.who(), request.inputs.size(), request.outputs.size()))
        .hint("at most 16 of each");
  return std::make_unique<OwnKernel>(op, request);
}

}  // namespace millpond::backend::reference
