// take, skip, shard, zip, concatenate, repeat, enumerate, filter: stages that pass elements on and hold none.
#include "data/indexed.h"

namespace millpond::data {
namespace {

// ---- of numbered elements: arithmetic on the numbers ----

// Row i is row first + i * step of the input.
class SliceNode final : public IndexedNode {
 public:
  SliceNode(NodePtr input, int64_t first, int64_t step, int64_t size, std::string name, std::string text)
      : IndexedNode({std::move(input)}),
        of_(*inputs_[0]->indexed()),
        first_(first),
        step_(step),
        size_(size),
        name_(std::move(name)),
        text_(std::move(text)) {}
  std::string name() const override { return name_; }
  std::string text() const override { return text_; }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t size() const override { return size_; }
  void gather(const Run& run, uint64_t key, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    for (int64_t& i : index) i = first_ + i * step_;
    of_.gather(run, key, index, to);
  }
  bool view(const Run& run, uint64_t key, int64_t row, Element& e) const override {
    return of_.view(run, key, first_ + row * step_, e);
  }

 private:
  const Indexed& of_;
  int64_t first_, step_, size_;
  std::string name_, text_;
};

class IndexedZipNode final : public IndexedNode {
 public:
  explicit IndexedZipNode(std::vector<NodePtr> inputs) : IndexedNode(std::move(inputs)), size_(INT64_MAX) {
    for (const NodePtr& n : inputs_) {
      size_ = std::min(size_, n->indexed()->size());
      spec_.insert(spec_.end(), n->spec().begin(), n->spec().end());
    }
  }
  std::string name() const override { return "zip"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  void gather(const Run& run, uint64_t key, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    std::array<int64_t, kChunk> own;
    size_t first = 0;
    for (const NodePtr& n : inputs_) {
      std::ranges::copy(index, own.begin());
      n->indexed()->gather(run, key, {own.data(), index.size()}, to.subspan(first, n->spec().size()));
      first += n->spec().size();
    }
  }
  bool view(const Run& run, uint64_t key, int64_t row, Element& e) const override {
    for (const NodePtr& n : inputs_)
      if (!n->indexed()->view(run, key, row, e)) return e.clear(), false;
    return true;
  }

 private:
  int64_t size_;
  ElementSpec spec_;
};

class IndexedConcatenateNode final : public IndexedNode {
 public:
  IndexedConcatenateNode(NodePtr a, NodePtr b)
      : IndexedNode({std::move(a), std::move(b)}),
        a_(*inputs_[0]->indexed()),
        b_(*inputs_[1]->indexed()),
        split_(a_.size()) {
    for (const TensorSpec& t : spec()) row_.push_back(bytes_of(t));
  }
  std::string name() const override { return "concatenate"; }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t size() const override { return split_ + b_.size(); }
  void gather(const Run& run, uint64_t key, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    std::array<std::byte*, kMostTensors> at;
    for (size_t i = 0; i < index.size();) {
      size_t n = 1;
      const bool second = index[i] >= split_;
      while (i + n < index.size() && (index[i + n] >= split_) == second) ++n;
      for (size_t t = 0; t < to.size(); ++t) at[t] = to[t] + int64_t(i) * row_[t];
      const std::span<int64_t> part = index.subspan(i, n);
      if (second)
        for (int64_t& r : part) r -= split_;
      (second ? b_ : a_).gather(run, key, part, {at.data(), to.size()});
      i += n;
    }
  }
  bool view(const Run& run, uint64_t key, int64_t row, Element& e) const override {
    return row < split_ ? a_.view(run, key, row, e) : b_.view(run, key, row - split_, e);
  }

 private:
  const Indexed &a_, &b_;
  int64_t split_;
  std::vector<int64_t> row_;
};

// ---- of elements as they come ----

// Elements first, first + step, ... up to `count` of them.
class SliceIterator final : public Unary {
 public:
  SliceIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, int64_t first, int64_t step, int64_t count)
      : Unary(run, stage, std::move(input)), first_(first), step_(step), count_(count) {}

 protected:
  void begin(uint64_t key) override {
    Unary::begin(key);
    given_ = 0;
    passed_ = false;
  }
  bool reach() {
    const int64_t jump = passed_ ? step_ - 1 : first_;
    passed_ = true;
    return jump == 0 || input_->skip(jump) == jump;
  }
  bool get(Element& e) override {
    if (given_ >= count_ || !reach() || !input_->next(e)) return given_ = count_, false;
    ++given_;
    return true;
  }
  int64_t get_rows(RowSink& sink, int64_t n) override {
    if (step_ != 1) return Iterator::get_rows(sink, n);
    if (given_ >= count_ || !reach()) return given_ = count_, 0;
    const int64_t want = std::min(n, count_ - given_), got = input_->rows(sink, want);
    given_ = got < want ? count_ : given_ + got;
    return got;
  }
  int64_t pass(int64_t n) override {
    if (step_ != 1) return Iterator::pass(n);
    if (given_ >= count_ || !reach()) return given_ = count_, 0;
    const int64_t want = std::min(n, count_ - given_), got = input_->skip(want);
    given_ = got < want ? count_ : given_ + got;
    return got;
  }

 private:
  int64_t first_, step_, count_, given_ = 0;
  bool passed_ = false;
};

class StreamSliceNode final : public Node {
 public:
  StreamSliceNode(NodePtr input, int64_t first, int64_t step, int64_t count, int64_t cardinality, std::string name,
                  std::string text)
      : Node({std::move(input)}),
        first_(first),
        step_(step),
        count_(count),
        cardinality_(cardinality),
        name_(std::move(name)),
        text_(std::move(text)) {}
  std::string name() const override { return name_; }
  std::string text() const override { return text_; }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return cardinality_; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<SliceIterator>(run, stage, input().start(run, scope), first_, step_, count_);
  }

 private:
  int64_t first_, step_, count_, cardinality_;
  std::string name_, text_;
};

class ZipIterator final : public Iterator {
 public:
  ZipIterator(Run& run, Stage& stage, std::vector<std::unique_ptr<Iterator>> inputs)
      : Iterator(run, stage), inputs_(std::move(inputs)) {
    for (const auto& i : inputs_) stage.ask(i->stage());
  }
  void cancel() override {
    for (const auto& i : inputs_) i->cancel();
  }
  void warm() override {
    for (const auto& i : inputs_) i->warm();
  }

 protected:
  void begin(uint64_t key) override {
    for (const auto& i : inputs_) i->rewind(key);
    ended_ = false;
  }
  bool get(Element& e) override {
    if (ended_) return false;
    e.clear();
    for (const auto& i : inputs_) {
      if (!i->next(part_)) {
        part_.clear();
        e.clear();
        ended_ = true;
        return false;
      }
      for (Tensor& t : part_) e.push_back(std::move(t));
    }
    part_.clear();
    return true;
  }
  int64_t pass(int64_t n) override {
    int64_t least = n;
    for (const auto& i : inputs_) least = std::min(least, i->skip(least));
    return least;
  }

 private:
  std::vector<std::unique_ptr<Iterator>> inputs_;
  Element part_;
  bool ended_ = false;
};

int64_t least_cardinality(const std::vector<NodePtr>& inputs) {
  int64_t least = INFINITE;
  for (const NodePtr& n : inputs) {
    const int64_t c = n->cardinality();
    if (c == UNKNOWN) return UNKNOWN;
    if (c >= 0) least = least == INFINITE ? c : std::min(least, c);
  }
  return least;
}

class ZipNode final : public Node {
 public:
  explicit ZipNode(std::vector<NodePtr> inputs) : Node(std::move(inputs)) {
    for (const NodePtr& n : inputs_) {
      spec_.known = spec_.known && n->spec().known;
      spec_.insert(spec_.end(), n->spec().begin(), n->spec().end());
    }
  }
  std::string name() const override { return "zip"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return least_cardinality(inputs_); }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    std::vector<std::unique_ptr<Iterator>> all;
    for (const NodePtr& n : inputs_) all.push_back(n->start(run, scope));
    return std::make_unique<ZipIterator>(run, stage, std::move(all));
  }

 private:
  ElementSpec spec_;
};

class ConcatenateIterator final : public Iterator {
 public:
  ConcatenateIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> a, std::unique_ptr<Iterator> b)
      : Iterator(run, stage), parts_{std::move(a), std::move(b)} {
    for (const auto& p : parts_) stage.ask(p->stage());
  }
  void cancel() override {
    for (const auto& p : parts_) p->cancel();
  }
  void warm() override { parts_[0]->warm(); }

 protected:
  void begin(uint64_t key) override {
    for (const auto& p : parts_) p->rewind(key);
    at_ = 0;
  }
  bool get(Element& e) override {
    for (; at_ < 2; ++at_)
      if (parts_[at_]->next(e)) return true;
    return false;
  }
  int64_t get_rows(RowSink& sink, int64_t n) override {
    int64_t done = 0;
    while (at_ < 2 && done < n)
      if (const int64_t want = n - done, got = parts_[at_]->rows(sink, want); done += got, got < want) ++at_;
    return done;
  }
  int64_t pass(int64_t n) override {
    int64_t done = 0;
    while (at_ < 2 && done < n)
      if (const int64_t want = n - done, got = parts_[at_]->skip(want); done += got, got < want) ++at_;
    return done;
  }

 private:
  std::array<std::unique_ptr<Iterator>, 2> parts_;
  size_t at_ = 0;
};

class ConcatenateNode final : public Node {
 public:
  ConcatenateNode(NodePtr a, NodePtr b) : Node({std::move(a), std::move(b)}) {
    const ElementSpec &one = input(0).spec(), &two = input(1).spec();
    spec_ = one;
    spec_.known = one.known && two.known;
    if (spec_.known)
      for (size_t i = 0; i < spec_.size(); ++i)
        for (size_t d = 0; d < spec_[i].shape.size(); ++d)
          if (spec_[i].shape[d] != two[i].shape[d]) spec_[i].shape[d] = -1;
  }
  std::string name() const override { return "concatenate"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override {
    const int64_t a = input(0).cardinality(), b = input(1).cardinality();
    if (a == INFINITE || b == INFINITE) return INFINITE;
    return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : a + b;
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    auto a = input(0).start(run, scope);
    auto b = input(1).start(run, scope);
    return std::make_unique<ConcatenateIterator>(run, stage, std::move(a), std::move(b));
  }

 private:
  ElementSpec spec_;
};

class RepeatIterator final : public Unary {
 public:
  RepeatIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, int64_t count)
      : Unary(run, stage, std::move(input)), count_(count) {}

 protected:
  void begin(uint64_t key) override {
    key_ = key;
    round_ = 0;
    here_ = 0;
    if (count_ != 0) Unary::begin(key);
  }
  // The next round; false when there is none. An input without elements would be repeated for ever.
  bool again() {
    if (here_ == 0 || (count_ >= 0 && round_ + 1 >= count_)) return round_ = count_, false;
    here_ = 0;
    Unary::begin(nested(key_, uint64_t(++round_)));
    return true;
  }
  bool over() const { return count_ >= 0 && round_ >= count_; }
  bool get(Element& e) override {
    while (!over()) {
      if (input_->next(e)) return ++here_, true;
      if (!again()) break;
    }
    return false;
  }
  int64_t get_rows(RowSink& sink, int64_t n) override {
    int64_t done = 0;
    while (done < n && !over()) {
      const int64_t want = n - done, got = input_->rows(sink, want);
      here_ += got;
      done += got;
      if (got < want && !again()) break;
    }
    return done;
  }
  int64_t pass(int64_t n) override {
    int64_t done = 0;
    while (done < n && !over()) {
      const int64_t want = n - done, got = input_->skip(want);
      here_ += got;
      done += got;
      if (got < want && !again()) break;
    }
    return done;
  }

 private:
  int64_t count_, round_ = 0, here_ = 0;
  uint64_t key_ = 0;
};

class RepeatNode final : public Node {
 public:
  RepeatNode(NodePtr input, int64_t count) : Node({std::move(input)}), count_(count < 0 ? -1 : count) {}
  std::string name() const override { return "repeat"; }
  std::string text() const override { return count_ < 0 ? "repeat()" : format("repeat({})", count_); }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    if (count_ == 0 || n == 0) return 0;
    if (n == INFINITE) return INFINITE;
    if (count_ < 0) return n == UNKNOWN ? UNKNOWN : INFINITE;
    int64_t all = 0;
    return n == UNKNOWN || __builtin_mul_overflow(n, count_, &all) ? UNKNOWN : all;
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<RepeatIterator>(run, stage, input().start(run, scope), count_);
  }

 private:
  int64_t count_;
};

class EnumerateIterator final : public Unary {
 public:
  EnumerateIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, int64_t start)
      : Unary(run, stage, std::move(input)), start_(start) {}

 protected:
  void begin(uint64_t key) override {
    Unary::begin(key);
    at_ = start_;
  }
  bool get(Element& e) override {
    if (!input_->next(e)) return false;
    Tensor number = pool().tensor(DType::kInt64, {}, stage_);
    number.values<int64_t>()[0] = at_++;
    e.insert(e.begin(), std::move(number));
    return true;
  }
  int64_t pass(int64_t n) override {
    const int64_t done = input_->skip(n);
    at_ += done;
    return done;
  }

 private:
  int64_t start_, at_ = 0;
};

class EnumerateNode final : public Node {
 public:
  EnumerateNode(NodePtr input, int64_t start) : Node({std::move(input)}), start_(start), spec_(inputs_[0]->spec()) {
    if (spec_.known) spec_.insert(spec_.begin(), {DType::kInt64, {}});
  }
  std::string name() const override { return "enumerate"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return input().cardinality(); }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<EnumerateIterator>(run, stage, input().start(run, scope), start_);
  }

 private:
  int64_t start_;
  ElementSpec spec_;
};

class FilterIterator final : public Unary {
 public:
  FilterIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, const FilterFunction& keep)
      : Unary(run, stage, std::move(input)), keep_(keep) {}

 protected:
  bool get(Element& e) override {
    while (input_->next(e)) {
      if (keep_(e)) return true;
      stage_.left_out.fetch_add(1, std::memory_order_relaxed);
    }
    return false;
  }

 private:
  const FilterFunction& keep_;
};

class FilterNode final : public Node {
 public:
  FilterNode(NodePtr input, FilterFunction keep) : Node({std::move(input)}), keep_(std::move(keep)) {
    if (!keep_) throw Error(Code::kUsage, "filter: no function is given");
  }
  std::string name() const override { return "filter"; }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : UNKNOWN; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<FilterIterator>(run, stage, input().start(run, scope), keep_);
  }

 private:
  FilterFunction keep_;
};

// Only says what the whole pipeline may use.
class OptionsNode final : public Node {
 public:
  OptionsNode(NodePtr input, DatasetOptions o) : Node({std::move(input)}), o_(o) {
    if (o.budget.value < 0) throw Error(Code::kUsage, format("with_options: a budget of {} bytes", o.budget.value));
    if (o.threads < 0) throw Error(Code::kUsage, format("with_options: {} threads", o.threads));
  }
  std::string name() const override { return "options"; }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return input().cardinality(); }
  const Indexed* indexed() const override { return input().indexed(); }
  const DatasetOptions* options() const override { return &o_; }
  std::unique_ptr<Iterator> make(Run&, Stage&, const Scope&) const override {
    return nullptr;
  }  // never asked: Node::start passes it over

 private:
  DatasetOptions o_;
};

int64_t not_negative(int64_t n, const char* what) {
  if (n < 0) throw Error(Code::kUsage, format("{}: {} elements", what, n)).hint("give a number of at least 0");
  return n;
}

}  // namespace

NodePtr take_node(NodePtr input, int64_t count) {
  not_negative(count, "take");
  const std::string text = format("take({})", count);
  if (const Indexed* i = input->indexed())
    return std::make_shared<SliceNode>(input, 0, 1, std::min(count, i->size()), "take", text);
  const int64_t n = input->cardinality();
  return std::make_shared<StreamSliceNode>(
      input, 0, 1, count, n == INFINITE ? count : times(n, [&](int64_t c) { return std::min(c, count); }), "take",
      text);
}
NodePtr skip_node(NodePtr input, int64_t count) {
  not_negative(count, "skip");
  const std::string text = format("skip({})", count);
  if (const Indexed* i = input->indexed())
    return std::make_shared<SliceNode>(input, std::min(count, i->size()), 1, std::max<int64_t>(0, i->size() - count),
                                       "skip", text);
  const int64_t n = input->cardinality();
  return std::make_shared<StreamSliceNode>(
      input, count, 1, INT64_MAX, times(n, [&](int64_t c) { return std::max<int64_t>(0, c - count); }), "skip", text);
}
NodePtr shard_node(NodePtr input, int64_t of, int64_t index) {
  if (of < 1 || index < 0 || index >= of)
    throw Error(Code::kUsage, format("shard: part {} of {}", index, of))
        .hint("parts are numbered from 0 to one less than their number");
  const std::string text = format("shard({}, {})", of, index);
  const auto part = [&](int64_t c) { return c > index ? (c - index + of - 1) / of : 0; };
  if (const Indexed* i = input->indexed())
    return std::make_shared<SliceNode>(input, index, of, part(i->size()), "shard", text);
  return std::make_shared<StreamSliceNode>(input, index, of, INT64_MAX, times(input->cardinality(), part), "shard",
                                           text);
}
NodePtr zip_node(std::vector<NodePtr> inputs) {
  if (inputs.empty()) throw Error(Code::kUsage, "zip: no dataset is given");
  size_t tensors = 0;
  for (const NodePtr& n : inputs) tensors += n->spec().size();
  if (tensors > kMostTensors)
    throw Error(Code::kUnsupported,
                format("zip: {} tensors in an element; at most {} are supported", tensors, kMostTensors));
  if (std::ranges::all_of(inputs, [](const NodePtr& n) { return n->indexed() != nullptr; }))
    return std::make_shared<IndexedZipNode>(std::move(inputs));
  return std::make_shared<ZipNode>(std::move(inputs));
}
NodePtr concatenate_node(NodePtr first, NodePtr second) {
  const ElementSpec &a = first->spec(), &b = second->spec();
  if (a.known && b.known) {
    bool same = a.size() == b.size();
    for (size_t i = 0; same && i < a.size(); ++i)
      same = a[i].dtype == b[i].dtype && a[i].shape.size() == b[i].shape.size();
    if (!same)
      throw Error(Code::kShape,
                  format("concatenate: elements of {} and of {} do not go together", to_string(a), to_string(b)));
  }
  if (first->indexed() && second->indexed() && a == b)
    return std::make_shared<IndexedConcatenateNode>(std::move(first), std::move(second));
  return std::make_shared<ConcatenateNode>(std::move(first), std::move(second));
}
NodePtr repeat_node(NodePtr input, int64_t count) { return std::make_shared<RepeatNode>(std::move(input), count); }
NodePtr enumerate_node(NodePtr input, int64_t start) {
  return std::make_shared<EnumerateNode>(std::move(input), start);
}
NodePtr filter_node(NodePtr input, FilterFunction f) {
  return std::make_shared<FilterNode>(std::move(input), std::move(f));
}
NodePtr options_node(NodePtr input, DatasetOptions o) { return std::make_shared<OptionsNode>(std::move(input), o); }

}  // namespace millpond::data
