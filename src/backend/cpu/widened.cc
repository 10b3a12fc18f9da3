#include "backend/cpu/widened.h"

#include "backend/cpu/lanes.h"
#include "backend/cpu/rows.h"
#include "backend/cpu/typed_steps.h"

namespace millpond::backend::cpu {
namespace {

constexpr size_t kMost = 32;  // operands and results together

class Widened final : public Kernel {
 public:
  Widened(std::unique_ptr<Kernel> inner, const Request& request)
      : inner_(std::move(inner)), inputs_(request.inputs.size()) {
    int64_t at = aligned(inner_->workspace().value);
    const auto add = [&](const TensorType& t) {
      Side s;
      if (is_half(t.dtype)) {
        s.half = t.dtype, s.count = t.shape.size(), s.at = at;
        at += aligned(s.count * 4);
      }
      sides_.push_back(s);
    };
    for (const TensorType& t : request.inputs) add(t);
    for (const TensorType& t : request.outputs) add(t);
    workspace_ = Bytes{at};
    phases_.push_back(plan(0, inputs_, before_));
    for (const int n : inner_->phases()) phases_.push_back(n);
    phases_.push_back(plan(inputs_, sides_.size(), after_));
  }
  std::span<const int> phases() const override { return phases_; }
  Bytes workspace() const override { return workspace_; }
  Bytes held() const override { return inner_->held(); }
  void generate() override { inner_->generate(); }
  void run(const Arguments& a, int phase, int block, int member) const noexcept override {
    if (phase == 0) return convert(before_[size_t(block)], a, true);
    if (phase == int(phases_.size()) - 1) return convert(after_[size_t(block)], a, false);
    void* all[kMost];
    for (size_t i = 0; i < sides_.size(); ++i)
      all[i] = sides_[i].count < 0 ? theirs(a, i) : static_cast<void*>(a.scratch + sides_[i].at);
    inner_->run({all, all + inputs_, a.scratch}, phase - 1, block, member);
  }

 private:
  struct Side {
    DType half = DType::kBFloat16;
    int64_t count = -1, at = 0;  // -1: as it is
  };
  struct Part {
    size_t side;
    int64_t begin, end;
  };
  void* theirs(const Arguments& a, size_t i) const { return i < inputs_ ? a.in[i] : a.out[i - inputs_]; }

  /// Cuts the conversions of sides [from, to) into blocks; an empty phase has one, which does nothing.
  int plan(size_t from, size_t to, std::vector<Part>& parts) const {
    for (size_t i = from; i < to; ++i) {
      if (sides_[i].count <= 0) continue;
      const Runs runs(sides_[i].count, 0.15, 64);
      for (int b = 0; b < runs.blocks; ++b) parts.push_back({i, runs.begin(b), runs.end(b)});
    }
    if (parts.empty()) parts.push_back({0, 0, 0});
    return int(parts.size());
  }

  void convert(const Part& p, const Arguments& a, bool up) const noexcept {
    if (p.begin == p.end) return;
    const Side& s = sides_[p.side];
    std::byte* const half = static_cast<std::byte*>(theirs(a, p.side)) + p.begin * 2;
    std::byte* const wide = a.scratch + s.at + p.begin * 4;
    const Step step{nullptr, 1, 0, 0, 0, Span::kFull, 0, 0, 0};
    const Ref refs[] = {{up ? half : wide, 0}, {up ? wide : half, 0}};
    Chunk c{};
    c.rows[0] = 1, c.cols[0] = p.end - p.begin;
    (up ? typed_steps().load(as_stored(s.half)) : typed_steps().store(as_stored(s.half)))(step, refs, c);
  }

  std::unique_ptr<Kernel> inner_;
  size_t inputs_;
  std::vector<Side> sides_;
  std::vector<Part> before_, after_;
  std::vector<int> phases_;
  Bytes workspace_;
};

}  // namespace

std::unique_ptr<Kernel> widened(const graph::Operator& op, const Request& request, Maker make) {
  Request wide = request;
  bool any = false;
  for (auto* types : {&wide.inputs, &wide.outputs})
    for (TensorType& t : *types)
      if (is_half(t.dtype)) t.dtype = DType::kFloat32, any = true;
  if (!any || wide.inputs.size() + wide.outputs.size() > kMost) return nullptr;
  std::unique_ptr<Kernel> inner = make(op, wide);
  if (!inner || inner->slow()) return nullptr;
  return std::make_unique<Widened>(std::move(inner), request);
}

}  // namespace millpond::backend::cpu
