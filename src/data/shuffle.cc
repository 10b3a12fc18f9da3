// shuffle: of numbered elements a permutation of their numbers, which holds nothing; of others a buffer, bounded in
// bytes.
//
// The buffer: elements come in until one more would make it larger than its bytes (as far as can be told from the
// largest so far) or its number; then a random one goes out and the next one takes its place. What it holds follows
// from the elements and the bound alone, so the order is the same each time.
#include "base/seed.h"
#include "data/indexed.h"
#include "data/permutation.h"

namespace millpond::data {
namespace {

class PermutedNode final : public IndexedNode {
 public:
  PermutedNode(NodePtr input, uint64_t seed, bool reshuffle)
      : IndexedNode({std::move(input)}), of_(*inputs_[0]->indexed()), seed_(seed), reshuffle_(reshuffle) {}
  std::string name() const override { return "shuffle"; }
  std::string text() const override { return format("shuffle(all {}, permuted numbers)", size()); }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t size() const override { return of_.size(); }
  std::optional<uint64_t> seed() const override { return seed_; }
  void gather(const Run& run, uint64_t key, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    const Permutation p = order(run, key);
    for (int64_t& i : index) i = int64_t(p(uint64_t(i)));
    of_.gather(run, key, index, to);
  }
  bool view(const Run& run, uint64_t key, int64_t row, Element& e) const override {
    return of_.view(run, key, int64_t(order(run, key)(uint64_t(row))), e);
  }

 private:
  Permutation order(const Run& run, uint64_t key) const {
    return Permutation(uint64_t(size()), random_key(run.seed_of(*this), reshuffle_ ? key : 0));
  }
  const Indexed& of_;
  uint64_t seed_;
  bool reshuffle_;
};

class ShuffleIterator final : public Unary {
 public:
  ShuffleIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, uint64_t seed, bool reshuffle,
                  int64_t elements, Bytes bytes)
      : Unary(run, stage, std::move(input)),
        seed_(seed),
        reshuffle_(reshuffle),
        elements_(elements),
        bytes_(bytes),
        random_(0) {}
  ~ShuffleIterator() override { drop(); }

 protected:
  void begin(uint64_t key) override {
    drop();
    Unary::begin(key);
    random_ = Random(random_key(seed_, reshuffle_ ? key : 0));
    ended_ = false;
  }
  bool get(Element& e) override {
    while (!ended_ && (buffer_.empty() || (int64_t(buffer_.size()) < elements_ && held_ + largest_ <= bytes_))) {
      if (buffer_.size() == buffer_.capacity()) grow();
      buffer_.push_back(take_empty());
      Element& slot = buffer_.back();
      if (!input_->next(slot)) {
        ended_ = true;
        buffer_.pop_back();
        break;
      }
      keep(slot);
    }
    if (buffer_.empty()) return false;
    const size_t at = size_t(random_.below(buffer_.size()));
    std::swap(e, buffer_[at]);
    const Bytes cost = cost_in_shuffle(e);
    held_ -= cost;
    pool().count(Bytes{} - overhead(e), stage_);
    std::swap(buffer_[at], buffer_.back());
    spare_ = std::move(buffer_.back());
    spare_.clear();
    buffer_.pop_back();
    return true;
  }

 private:
  static Bytes cost_in_shuffle(const Element& e) {
    Bytes sum = overhead(e);
    for (const Tensor& t : e) sum += Pool::cost(t.bytes());
    return sum;
  }
  // What the consumer handed in serves as the next slot: its memory goes round.
  Element take_empty() { return std::move(spare_); }
  void keep(Element& e) {
    const Bytes cost = cost_in_shuffle(e);
    held_ += cost;
    largest_ = std::max(largest_, cost);
    keep_apart(e, pool(), stage_);
    hand_over(e, stage_);
    pool().count(overhead(e), stage_);
    if (full_ < int64_t(buffer_.size())) {
      full_ = int64_t(buffer_.size());
      if ((full_ & (full_ - 1)) == 0) tell();
    }
  }
  void tell() {
    stage_.decide(format("buffers {} elements of {}, at most {}{}", full_, largest_, bytes_,
                         elements_ < INT64_MAX ? format(" or {} elements", elements_) : ""));
  }
  void grow() { buffer_.reserve(std::max<size_t>(16, 2 * buffer_.capacity())); }
  void drop() {
    for (const Element& e : buffer_) pool().count(Bytes{} - overhead(e), stage_);
    if (full_) tell();
    buffer_.clear();
    held_ = largest_ = {};  // the order must not depend on what an earlier round met
  }

  uint64_t seed_;
  bool reshuffle_;
  int64_t elements_;
  Bytes bytes_, held_, largest_;
  Random random_;
  std::vector<Element> buffer_;
  Element spare_;
  int64_t full_ = 0;
  bool ended_ = false;
};

class ShuffleNode final : public Node {
 public:
  ShuffleNode(NodePtr input, ShuffleOptions o, uint64_t seed)
      : Node({std::move(input)}), o_(std::move(o)), seed_(seed) {}
  std::string name() const override { return "shuffle"; }
  std::string text() const override {
    std::string t;
    if (o_.elements) t = format("{} elements", o_.elements);
    if (o_.bytes.value) t += format("{}{}", t.empty() ? "" : ", ", o_.bytes);
    return format("shuffle({})", t);
  }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return input().cardinality(); }
  std::optional<uint64_t> seed() const override { return seed_; }
  Need need() const override {
    const ElementSpec& s = input().spec();
    Bytes one = most();
    if (one.value) one += Bytes{int64_t(sizeof(Element) + s.size() * sizeof(Tensor) + 16)};
    Bytes ask = o_.bytes;
    if (o_.elements && one.value && o_.elements < INT64_MAX / one.value)
      ask = ask.value ? std::min(ask, one * o_.elements) : one * o_.elements;
    return {.working = {}, .holds = true, .least = one * 2, .ask = ask};
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<ShuffleIterator>(run, stage, input().start(run, scope), run.seed_of(*this),
                                             o_.reshuffle_each_iteration, o_.elements ? o_.elements : INT64_MAX,
                                             ceiling(scope));
  }

 private:
  ShuffleOptions o_;
  uint64_t seed_;
};

}  // namespace

NodePtr shuffle_node(NodePtr input, ShuffleOptions o) {
  if (o.elements < 0 || o.bytes.value < 0)
    throw Error(Code::kUsage, format("shuffle: a buffer of {} elements and {} bytes", o.elements, o.bytes.value))
        .hint("0 stands for as many as the budget allows");
  const uint64_t seed = o.seed ? *o.seed : draw_seed();
  if (input->indexed() && o.permute)
    return std::make_shared<PermutedNode>(std::move(input), seed, o.reshuffle_each_iteration);
  // Images are shuffled as names, before they are read.
  if (o.permute && input->inputs().size() == 1 && input->input().indexed())
    if (NodePtr moved =
            input->over(std::make_shared<PermutedNode>(input->inputs()[0], seed, o.reshuffle_each_iteration)))
      return moved;
  return std::make_shared<ShuffleNode>(std::move(input), std::move(o), seed);
}

}  // namespace millpond::data
