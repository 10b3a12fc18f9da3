#include "ops/concatenate.h"

#include "backend/cpu/strided.h"

namespace millpond::backend::cpu {
namespace {

// Blocks are runs of one operand's copy; those of the first operand come first.
class Concatenate final : public Kernel {
 public:
  Concatenate(const ops::Concatenate& op, const Request& request) {
    const Shape& y = request.outputs[0].shape;
    const int64_t element = size_of(request.outputs[0].dtype).value, inner = steps_of(y)[size_t(op.axis)] * element;
    stream_ = y.size() * element >= kStreamBytes;
    int64_t outer = 1, start = 0;
    for (int i = 0; i < op.axis; ++i) outer *= y[i];
    for (size_t k = 0; k < request.inputs.size(); ++k) {
      const int64_t width = request.inputs[k].shape[op.axis] * inner;
      Part p;
      p.operand = int(k);
      p.start = start;
      p.copy.add(outer, width, y[op.axis] * inner);
      p.copy.add(width, 1, 1);
      p.copy.finish(1);
      p.runs = Runs(p.copy.runs(), p.copy.time());
      start += width;
      if (p.copy.runs() == 0) continue;
      p.first = blocks_[0];
      blocks_[0] += p.runs.blocks;
      parts_.push_back(p);
    }
    // little work is one block
    double time = 0;
    for (const Part& p : parts_) time += double(p.copy.runs()) * p.copy.time();
    whole_ = time < 1.5 * kBlockTime;
    if (whole_) blocks_[0] = 1;
  }
  std::span<const int> phases() const override { return blocks_; }
  void run(const Arguments& a, int, int block, int) const noexcept override {
    for (const Part& p : parts_) {
      if (!whole_ && (block < p.first || block >= p.first + p.runs.blocks)) continue;
      const int64_t begin = whole_ ? 0 : p.runs.begin(block - p.first),
                    end = whole_ ? p.copy.runs() : p.runs.end(block - p.first);
      p.copy.copy(kernels_, a.input<std::byte>(p.operand), a.output<std::byte>(0) + p.start, begin, end, stream_);
    }
  }

 private:
  struct Part {
    int operand = 0, first = 0;
    int64_t start = 0;
    Strided copy;
    Runs runs;
  };
  std::vector<Part> parts_;
  bool whole_ = false, stream_ = false;
  int blocks_[1] = {0};
  const CopyKernels& kernels_ = copy_kernels();
};

}  // namespace

std::unique_ptr<Kernel> concatenate(const ops::Concatenate& op, const Request& request) {
  return std::make_unique<Concatenate>(op, request);
}

}  // namespace millpond::backend::cpu
