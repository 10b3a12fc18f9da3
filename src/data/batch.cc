// batch, unbatch, window: elements stacked in one buffer, and taken apart again.
#include <chrono>
#include <cstring>

#include "base/assert.h"
#include "base/convert.h"
#include "base/with_type.h"
#include "data/node.h"

namespace millpond::data {
namespace {

void take_batch(Element& e, RowSink& sink, const ElementSpec& spec, int64_t n, Pool& pool, Stage& stage) {
  e.clear();
  sink.spec = &spec;
  for (size_t i = 0; i < spec.size(); ++i) {
    e.push_back(pool.tensor(spec[i].dtype, to_shape(spec[i]).with_front(n), stage));
    sink.to[i] = e[i].data();
    sink.bytes[i] = bytes_of(spec[i]);
  }
}

void check_count(const Element& e) {
  if (e.size() > kMostTensors)
    throw Error(Code::kUnsupported,
                format("an element of {} tensors; at most {} are supported", e.size(), kMostTensors));
}

class BatchIterator final : public Unary {
 public:
  BatchIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, const ElementSpec& spec, int64_t size,
                bool drop)
      : Unary(run, stage, std::move(input)), fixed_(spec.fixed()), spec_(spec), size_(size), drop_(drop) {}
  int64_t upcoming() const override {
    const int64_t left = fixed_ ? input_->remaining() : -1;
    if (left < 0) return -1;
    return left < size_ && drop_ ? 0 : std::min(left, size_);
  }
  bool splits() const override { return fixed_ && input_->numbered(); }
  bool claim(RowClaim& c) override {
    c = input_->claim_rows(size_);
    if (c.rows == 0 || (c.rows < size_ && drop_)) return false;
    ++index_;
    stage_.out.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  void gather(const RowClaim& c, Element& e) override {
    RowSink sink;
    take_batch(e, sink, spec_, size_, pool(), stage_);
    const auto start = std::chrono::steady_clock::now();
    try {
      input_->read_rows(c, sink);
    } catch (const Stopped&) {
      throw;
    } catch (...) {
      rethrow_with_place(input_->stage(), c.first);
    }
    input_->stage().ns.fetch_add((std::chrono::steady_clock::now() - start).count(), std::memory_order_relaxed);
    if (c.rows < size_)
      for (Tensor& t : e) t = t.rows(0, c.rows);
  }
  void fill(std::span<std::byte* const> to, int64_t rows) override {
    RowSink sink;
    sink.spec = &spec_;
    for (size_t i = 0; i < spec_.size(); ++i) {
      sink.to[i] = to[i];
      sink.bytes[i] = bytes_of(spec_[i]);
    }
    const int64_t got = input_->rows(sink, rows);
    MP_ASSERT(got == rows);
    ++index_;
    stage_.out.fetch_add(1, std::memory_order_relaxed);
  }

 protected:
  bool get(Element& e) override {
    RowSink sink;
    int64_t n = 0;
    e.clear();
    if (!fixed_) {  // the first element says what the others must be
      if (!input_->next(first_)) return false;
      check_count(first_);
      spec_ = spec_of(first_);
    }
    take_batch(e, sink, spec_, size_, pool(), stage_);
    if (!fixed_) {
      sink.append(first_);
      first_.clear();
      while (++n < size_ && input_->next(first_)) sink.append(first_);
      first_.clear();
    } else {
      n = input_->rows(sink, size_);
    }
    if (n == 0 || (n < size_ && drop_)) return e.clear(), false;
    if (n < size_)
      for (Tensor& t : e) t = t.rows(0, n);
    return true;
  }
  int64_t pass(int64_t n) override {
    if (n > INT64_MAX / size_) return Iterator::pass(n);
    const int64_t rows = input_->skip(n * size_);
    return drop_ ? rows / size_ : (rows + size_ - 1) / size_;
  }

 private:
  bool fixed_;
  ElementSpec spec_;  // of one row
  int64_t size_;
  bool drop_;
  Element first_;
};

void fill_with(Tensor& t, double value) {
  with_type(t.dtype(), [&]<class T>() { std::ranges::fill(t.values<T>(), convert<T>(value)); });
}
// Copies a block of `from` into the larger block `to`, both row-major, beginning at 0 in every dimension.
void place(const std::byte* from, const Shape& small, std::byte* to, const Shape& large, int64_t item) {
  if (small.rank() <= 1 || small == large) {
    std::memcpy(to, from, size_t(small.size() * item));
    return;
  }
  const Shape s = small.without(0), l = large.without(0);
  for (int64_t i = 0; i < small[0]; ++i) place(from + i * s.size() * item, s, to + i * l.size() * item, l, item);
}

class PaddedIterator final : public Unary {
 public:
  PaddedIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, int64_t size, const BatchOptions& o)
      : Unary(run, stage, std::move(input)), size_(size), o_(o) {}

 protected:
  bool get(Element& e) override {
    e.clear();
    size_t n = 0;
    rows_.resize(size_t(size_));
    while (n < rows_.size() && input_->next(rows_[n])) ++n;
    const auto done = [&](bool there) {
      for (Element& row : rows_) row.clear();
      return there;
    };
    if (n == 0 || (int64_t(n) < size_ && o_.drop_remainder)) return done(false);
    check_count(rows_[0]);
    if (!o_.padded_shapes.empty() && o_.padded_shapes.size() != rows_[0].size())
      throw Error(Code::kShape, format("{} padded_shapes are given for elements of {} tensors", o_.padded_shapes.size(),
                                       rows_[0].size()));
    for (size_t t = 0; t < rows_[0].size(); ++t) {
      Shape most = rows_[0][t].shape();
      for (size_t r = 0; r < n; ++r) {
        if (rows_[r].size() != rows_[0].size() || rows_[r][t].dtype() != rows_[0][t].dtype() ||
            rows_[r][t].shape().rank() != most.rank())
          throw Error(Code::kShape, format("an element is {}, which cannot be padded to go with {}",
                                           to_string(spec_of(rows_[r])), to_string(spec_of(rows_[0]))));
        for (int d = 0; d < most.rank(); ++d) most = most.with(d, std::max(most[d], rows_[r][t].shape()[d]));
      }
      if (!o_.padded_shapes.empty()) most = wanted(most, o_.padded_shapes[t], t);
      Tensor out = pool().tensor(rows_[0][t].dtype(), most.with_front(int64_t(n)), stage_);
      const int64_t item = size_of(out.dtype()).value, row = most.size() * item;
      bool whole = true;
      for (size_t r = 0; r < n && whole; ++r) whole = rows_[r][t].shape() == most;
      if (!whole) fill_with(out, o_.padding_value);
      for (size_t r = 0; r < n; ++r)
        if (rows_[r][t].size())
          place(rows_[r][t].data(), rows_[r][t].shape(), out.data() + int64_t(r) * row, most, item);
      e.push_back(std::move(out));
    }
    return done(true);
  }

 private:
  static Shape wanted(Shape most, const std::vector<int64_t>& shape, size_t tensor) {
    if (int(shape.size()) != most.rank())
      throw Error(Code::kShape, format("padded_shapes of tensor {} has {} dimensions, but the elements have {}", tensor,
                                       shape.size(), most.rank()));
    for (int d = 0; d < most.rank(); ++d) {
      const int64_t want = shape[size_t(d)];
      if (want >= 0 && want < most[d])
        throw Error(Code::kShape,
                    format("an element has {} in dimension {}, more than the {} of padded_shapes", most[d], d, want));
      if (want >= 0) most = most.with(d, want);
    }
    return most;
  }
  int64_t size_;
  const BatchOptions& o_;
  std::vector<Element> rows_;
};

class BatchNode final : public Node {
 public:
  BatchNode(NodePtr input, int64_t size, BatchOptions o) : Node({std::move(input)}), size_(size), o_(std::move(o)) {
    if (size < 1) throw Error(Code::kUsage, format("batch: {} elements in a batch", size)).hint("give at least 1");
    row_ = inputs_[0]->spec();
    if (row_.size() > kMostTensors)
      throw Error(Code::kUnsupported,
                  format("batch: elements of {} tensors; at most {} are supported", row_.size(), kMostTensors));
    ElementSpec row = row_;
    if (o_.padded && row.known)
      for (size_t t = 0; t < row.size(); ++t)
        for (size_t d = 0; d < row[t].shape.size(); ++d)
          if (t < o_.padded_shapes.size() && d < o_.padded_shapes[t].size() && o_.padded_shapes[t][d] >= 0)
            row[t].shape[d] = o_.padded_shapes[t][d];
    const int64_t n = inputs_[0]->cardinality();
    spec_ = batched(row, o_.drop_remainder || n == INFINITE || (n >= 0 && n % size == 0) ? size : -1);
  }
  std::string name() const override { return "batch"; }
  std::string text() const override {
    return format("batch({}{}{})", size_, o_.drop_remainder ? ", drop_remainder" : "", o_.padded ? ", padded" : "");
  }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override {
    return times(input().cardinality(),
                 [&](int64_t c) { return o_.drop_remainder ? c / size_ : (c + size_ - 1) / size_; });
  }
  Bytes most() const override {
    ElementSpec all = spec_;
    for (TensorSpec& t : all) t.shape[0] = size_;
    return cost_of(all);
  }
  Need need() const override { return {.working = o_.padded ? most() + input().most() * size_ : most()}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    auto from = input().start(run, scope);
    if (o_.padded) return std::make_unique<PaddedIterator>(run, stage, std::move(from), size_, o_);
    return std::make_unique<BatchIterator>(run, stage, std::move(from), row_, size_, o_.drop_remainder);
  }

 private:
  int64_t size_;
  BatchOptions o_;
  ElementSpec row_, spec_;
};

class UnbatchIterator final : public Unary {
 public:
  using Unary::Unary;

 protected:
  void begin(uint64_t key) override {
    Unary::begin(key);
    batch_.clear();
    at_ = rows_ = 0;
  }
  bool get(Element& e) override {
    while (at_ >= rows_) {
      batch_.clear();
      if (!input_->next(batch_)) return false;
      at_ = 0;
      rows_ = 0;
      for (size_t i = 0; i < batch_.size(); ++i) {
        if (batch_[i].shape().rank() == 0)
          throw Error(Code::kShape, format("tensor {} is a single number and has no rows", i));
        if (i && batch_[i].shape()[0] != rows_)
          throw Error(Code::kShape,
                      format("tensor 0 has {} rows, but tensor {} has {}", rows_, i, batch_[i].shape()[0]));
        rows_ = batch_[i].shape()[0];
      }
    }
    e.clear();
    for (const Tensor& t : batch_) {
      const Shape row = t.shape().without(0);
      e.push_back(Tensor::view(const_cast<std::byte*>(t.data()) + at_ * (size_of(t.dtype()) * row.size()).value,
                               t.dtype(), row, t.owner()));
    }
    ++at_;
    return true;
  }

 private:
  Element batch_;
  int64_t at_ = 0, rows_ = 0;
};

class UnbatchNode final : public Node {
 public:
  explicit UnbatchNode(NodePtr input) : Node({std::move(input)}), spec_(inputs_[0]->spec()) {
    for (TensorSpec& t : spec_) {
      if (t.shape.empty()) throw Error(Code::kShape, "unbatch: elements hold single numbers, which have no rows");
      rows_ = t.shape[0];
      t.shape.erase(t.shape.begin());
    }
  }
  std::string name() const override { return "unbatch"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (n == 0 || n == INFINITE) return n;
    return n == UNKNOWN || rows_ < 0 || !spec_.known ? UNKNOWN : n * rows_;
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<UnbatchIterator>(run, stage, input().start(run, scope));
  }

 private:
  ElementSpec spec_;
  int64_t rows_ = -1;
};

// Holds the elements of the window that the next one shares with it.
class WindowIterator final : public Unary {
 public:
  WindowIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, int64_t size, int64_t shift, int64_t stride,
                 bool drop)
      : Unary(run, stage, std::move(input)), size_(size), shift_(shift), stride_(stride), drop_(drop) {}

 protected:
  void begin(uint64_t key) override {
    Unary::begin(key);
    held_.clear();
    ended_ = false;
  }
  bool get(Element& e) override {
    e.clear();
    const int64_t span = (size_ - 1) * stride_ + 1;
    while (!ended_ && int64_t(held_.size()) < span) {
      Element one = std::move(spare_);
      spare_ = {};
      if (!input_->next(one)) {
        ended_ = true;
        break;
      }
      hand_over(one, stage_);
      held_.push_back(std::move(one));
    }
    const int64_t there = (int64_t(held_.size()) + stride_ - 1) / stride_, n = std::min(size_, there);
    if (n == 0 || (n < size_ && drop_)) return held_.clear(), false;
    check_count(held_[0]);
    const ElementSpec spec = spec_of(held_[0]);
    RowSink sink;
    take_batch(e, sink, spec, n, pool(), stage_);
    for (int64_t i = 0; i < n; ++i) sink.append(held_[size_t(i * stride_)]);
    const int64_t gone = std::min<int64_t>(shift_, int64_t(held_.size()));
    for (int64_t i = 0; i < gone; ++i) {
      spare_ = std::move(held_.front());
      held_.pop_front();
    }
    spare_.clear();
    if (gone < shift_ && !ended_ && input_->skip(shift_ - gone) < shift_ - gone) ended_ = true;
    return true;
  }

 private:
  int64_t size_, shift_, stride_;
  bool drop_;
  std::deque<Element> held_;
  Element spare_;
  bool ended_ = false;
};

class WindowNode final : public Node {
 public:
  WindowNode(NodePtr input, int64_t size, WindowOptions o) : Node({std::move(input)}), size_(size), o_(o) {
    if (size < 1 || o.shift < 0 || o.stride < 1 || size > (int64_t{1} << 31) / o.stride)
      throw Error(Code::kUsage, format("window: size {}, shift {}, stride {}", size, o.shift, o.stride))
          .hint("all must be at least 1, the shift 0 for the size");
    if (o_.shift == 0) o_.shift = size;
    spec_ = batched(inputs_[0]->spec(), o.drop_remainder ? size : -1);
  }
  std::string name() const override { return "window"; }
  std::string text() const override { return format("window({}, shift {}, stride {})", size_, o_.shift, o_.stride); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override {
    return times(input().cardinality(), [&](int64_t c) {
      const int64_t span = (size_ - 1) * o_.stride + 1;
      if (o_.drop_remainder) return c < span ? 0 : (c - span) / o_.shift + 1;
      return (c + o_.shift - 1) / o_.shift;
    });
  }
  Bytes most() const override { return cost_of(batched(input().spec(), size_)); }
  Need need() const override { return {.working = most() + input().most() * ((size_ - 1) * o_.stride + 1)}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<WindowIterator>(run, stage, input().start(run, scope), size_, o_.shift, o_.stride,
                                            o_.drop_remainder);
  }

 private:
  int64_t size_;
  WindowOptions o_;
  ElementSpec spec_;
};

}  // namespace

NodePtr batch_node(NodePtr input, int64_t size, BatchOptions o) {
  return std::make_shared<BatchNode>(std::move(input), size, std::move(o));
}
NodePtr unbatch_node(NodePtr input) { return std::make_shared<UnbatchNode>(std::move(input)); }
NodePtr window_node(NodePtr input, int64_t size, WindowOptions o) {
  return std::make_shared<WindowNode>(std::move(input), size, o);
}

}  // namespace millpond::data
