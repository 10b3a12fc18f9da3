#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "operators.h"

namespace millpond::test {

namespace {
// The same operands in float64; `absolute`: their magnitudes.
std::vector<Tensor> widened(const std::vector<Tensor>& inputs, bool absolute) {
  std::vector<Tensor> wide;
  for (const Tensor& t : inputs) {
    wide.push_back(is_floating(t.dtype()) ? t.astype(DType::kFloat64) : t);
    if (absolute && is_floating(t.dtype()))
      for (double& v : wide.back().values<double>()) v = std::abs(v);
  }
  return wide;
}

// In float64 where the operator takes it, otherwise as it is.
std::vector<Tensor> reference(const graph::Operator& op, const std::vector<Tensor>& inputs, bool absolute) {
  const std::vector<Tensor> wide = widened(inputs, absolute);
  std::vector<TensorType> types;
  for (const Tensor& t : wide) types.push_back({t.dtype(), t.shape()});
  if (refusal_of(op, types).empty()) return run_operator(backend::reference_backend(), op, wide);
  std::vector<Tensor> narrow;
  for (size_t i = 0; i < inputs.size(); ++i) narrow.push_back(absolute ? wide[i].astype(inputs[i].dtype()) : inputs[i]);
  return run_operator(backend::reference_backend(), op, narrow);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() && (a.size() == 0 || std::memcmp(a.data(), b.data(), size_t(a.bytes().value)) == 0);
}
}  // namespace

void check_twin(const backend::Backend& fast, const graph::Operator& op, const std::vector<Tensor>& inputs,
                Tolerance tolerance, std::vector<int> only) {
  std::string who = std::string(op.name()) + "[" + op.attributes() + "]";
  for (const Tensor& t : inputs) who += " " + to_string(t.shape());
  const std::vector<Tensor> first = run_operator(fast, op, inputs);
  const auto wanted = tolerance.kind == Tolerance::Kind::kExact ? run_operator(backend::reference_backend(), op, inputs)
                                                                : reference(op, inputs, false);
  const auto sums = tolerance.kind == Tolerance::Kind::kTerms ? reference(op, inputs, true) : wanted;
  const double unit = 0x1p-24;
  for (size_t k = 0; k < first.size(); ++k) {
    if (!only.empty() && std::ranges::count(only, int(k)) == 0) continue;
    REQUIRE(first[k].shape() == wanted[k].shape());
    double largest = tolerance.least, worst = 0;
    int64_t at = -1;
    for (int64_t i = 0; i < wanted[k].size(); ++i)
      if (std::isfinite(wanted[k].at(i))) largest = std::max(largest, std::abs(wanted[k].at(i)));
    for (int64_t i = 0; i < wanted[k].size(); ++i) {
      const double x = first[k].at(i), y = wanted[k].at(i);
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      if (first[k].dtype() == DType::kFloat32 && x == double(float(y)))
        continue;  // both overflow, or the twin is the rounded exact value
      double allowed = 0;
      switch (tolerance.kind) {
        case Tolerance::Kind::kExact:
          break;
        case Tolerance::Kind::kUlps:
          allowed = 2 * unit * tolerance.k * std::abs(y);
          break;
        case Tolerance::Kind::kTerms:
          allowed = 2 * unit * (tolerance.k + 2) * std::abs(sums[k].at(i));
          break;
        case Tolerance::Kind::kScale:
          allowed = 2 * unit * tolerance.k * largest;
          break;
      }
      if (tolerance.kind != Tolerance::Kind::kExact)
        allowed += 0x1p-126;  // below the smallest normal number flushing to zero is allowed
      const double excess = std::isnan(x) || std::isnan(y) ? INFINITY : std::abs(x - y) / allowed;
      if (!(excess <= worst)) worst = excess, at = i;
    }
    CHECK_MESSAGE(worst <= 1, who << " output " << k << ": element " << at << " is " << (at < 0 ? 0 : first[k].at(at))
                                  << ", the twin's is " << (at < 0 ? 0 : wanted[k].at(at)) << ", which is " << worst
                                  << " times the tolerance");
  }

  for (int threads : {2, 3}) {
    const auto once = run_operator(fast, op, inputs, {.threads = threads}),
               again = run_operator(fast, op, inputs, {.threads = threads});
    for (size_t k = 0; k < once.size(); ++k) {
      CHECK_MESSAGE(same_bits(once[k], again[k]),
                    who << " output " << k << " differs between two runs on " << threads << " threads");
      if (!only.empty() && std::ranges::count(only, int(k)) == 0) continue;
      // Another number of threads may cut the work differently, so its sums may differ in the last bits, not in more.
      double largest = tolerance.least, apart = 0;
      for (int64_t i = 0; i < once[k].size(); ++i) {
        const double x = once[k].at(i), y = first[k].at(i);
        if (std::isfinite(y)) largest = std::max({largest, std::abs(y), std::abs(sums[k].at(i))});
        if (!(x == y || (std::isnan(x) && std::isnan(y))))
          apart = std::max(apart, std::isfinite(x - y) ? std::abs(x - y) : INFINITY);
      }
      CHECK_MESSAGE(apart <= 4 * unit * (tolerance.k + 2) * largest,
                    who << " output " << k << " differs by " << apart << " between one thread and " << threads);
    }
  }
  std::vector<TensorType> types;
  for (const Tensor& t : inputs) types.push_back({t.dtype(), t.shape()});
  const std::vector<TensorType> outs = op.infer(types);
  const auto overlaps = op.memory().may_overwrite;
  for (size_t o = 0; o < overlaps.size(); ++o) {
    if (types[overlaps[o].input] != outs[overlaps[o].output]) continue;
    const auto a = run_operator(fast, op, inputs, {.threads = 1, .overlap = int(o)});
    for (size_t k = 0; k < a.size(); ++k)
      CHECK_MESSAGE(same_bits(a[k], first[k]), who << " output " << k << " changes when output " << overlaps[o].output
                                                   << " lies over operand " << overlaps[o].input);
  }
}

}  // namespace millpond::test
