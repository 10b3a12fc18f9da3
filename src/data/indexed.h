// Stages whose elements have numbers. Shuffle, take, skip, shard, zip and concatenate of such stages only work on the
// numbers: they hold nothing, and a batch after them gathers its rows straight into its buffer.
#pragma once
#include <cstring>

#include "data/formats/source.h"
#include "data/node.h"

namespace millpond::data {

class IndexedNode : public Node, public Indexed {
 public:
  using Node::Node;
  const Indexed* indexed() const override { return this; }
  int64_t cardinality() const override { return size(); }
  std::vector<NodePtr> run_inputs() const override { return {}; }
  Need need() const override { return {.working = cost_of(spec())}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override;
};

/// Goes through numbered elements in order.
class RowIterator final : public Iterator {
 public:
  RowIterator(Run& run, Stage& stage, const Indexed& indexed, const ElementSpec& spec)
      : Iterator(run, stage), indexed_(indexed), spec_(spec) {
    for (const TensorSpec& t : spec) shapes_.push_back(to_shape(t));
  }
  bool numbered() const override { return true; }
  RowClaim claim_rows(int64_t n) override {
    const RowClaim c{at_, std::clamp<int64_t>(indexed_.size() - at_, 0, n)};
    at_ += c.rows;
    index_ += c.rows;
    stage_.out.fetch_add(c.rows, std::memory_order_relaxed);
    return c;
  }
  void read_rows(const RowClaim& claim, RowSink& sink) const override;
  int64_t remaining() const override { return std::max<int64_t>(0, indexed_.size() - at_); }

 protected:
  void begin(uint64_t key) override { key_ = key, at_ = 0; }
  bool get(Element& e) override;
  int64_t get_rows(RowSink& sink, int64_t n) override;
  int64_t pass(int64_t n) override {
    const int64_t done = std::clamp<int64_t>(indexed_.size() - at_, 0, n);
    at_ += done;
    return done;
  }

 private:
  const Indexed& indexed_;
  const ElementSpec& spec_;
  std::vector<Shape> shapes_;
  uint64_t key_ = 0;
  int64_t at_ = 0;
};

inline std::unique_ptr<Iterator> IndexedNode::make(Run& run, Stage& stage, const Scope&) const {
  return std::make_unique<RowIterator>(run, stage, *this, spec());
}

/// An array in a file: rows of `shape` without its first dimension, from byte `begin` on.
struct RowFile {
  SharedSource source;
  int64_t begin = 0;
  DType dtype = DType::kFloat32;
  Shape shape;
};
NodePtr files_node(std::vector<RowFile> files, std::string name);

}  // namespace millpond::data
