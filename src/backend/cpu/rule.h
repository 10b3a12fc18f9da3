// What the kernels that update weights share: a rule made ready, and where a parameter with its slots lies.
#pragma once
#include <cstring>
#include <memory>
#include <optional>

#include "backend/cpu/expression.h"
#include "backend/cpu/rule_kernels.h"
#include "backend/host/kernel.h"
#include "ops/rule.h"

namespace millpond::backend::cpu {

/// A rule that is written out for vectors, recognised by its formula, whatever its name is.
struct Written {
  WrittenRule kind;
  bool nesterov = false, decay = false;
  RuleStep constants{};                               // those of the formula
  float RuleStep::* scalars[2] = {nullptr, nullptr};  // where the step's scalars go
  int scalar_count = 0;
};
std::optional<Written> written(const ops::Rule& rule);

class PreparedRule {
 public:
  /// For weights whose rows, if a pass is over several, are `cols` apart. `by_hand` false: as an expression even where
  /// it is written out.
  PreparedRule(const ops::Rule& rule, int64_t rows, int64_t cols, bool by_hand = true);

  /// No fast path: the reference kernel must do.
  bool missing() const { return !pass; }
  const std::optional<Written>& by_hand() const { return written_; }
  int slots() const { return slots_; }
  int64_t own_bytes() const { return expression_ ? expression_->own_bytes() : 0; }
  /// `own`: own_bytes() of the calling thread, 64-byte aligned.
  RuleStep step(const float* scalars, std::byte* own) const;

  RulePass pass = nullptr;

 private:
  int slots_, scalars_;
  std::optional<Written> written_;
  std::unique_ptr<ExpressionKernel> expression_;
};

/// Weight and slots from element `begin`: outputs `output` and up, which are the bytes of the operands `input` and up.
/// (A test may have given them bytes of their own: then elements [begin, end) are copied first.)
struct Parameter {
  Parameter(const Arguments& a, int slots, int input, int output, int64_t begin, int64_t end) {
    for (int k = 0; k <= slots; ++k) {
      p[k] = a.output<float>(output + k) + begin;
      const float* from = a.input<float>(input + k) + begin;
      if (from != p[k]) [[unlikely]]
        std::memcpy(p[k], from, size_t(end - begin) * sizeof(float));
    }
  }
  float* p[1 + ops::Rule::kMostSlots];
};

}  // namespace millpond::backend::cpu
