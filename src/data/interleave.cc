// flat_map and interleave: an element becomes a dataset, and the elements of these follow each other, or come by turns.
// The inner pipelines live in the budget of the outer one: interleave's ceiling is divided among those that are open at
// once.
#include <set>

#include "data/queue.h"
#include "data/running.h"

namespace millpond::data {
namespace {

class InterleaveIterator final : public Unary {
 public:
  InterleaveIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, const FlatMapFunction& f,
                     const InterleaveOptions& o, Bytes ceiling)
      : Unary(run, stage, std::move(input)),
        f_(f),
        o_(o),
        each_(Bytes{ceiling.value / o.cycle_length}),
        open_(size_t(o.cycle_length)) {}
  void cancel() override {
    Unary::cancel();
    const std::lock_guard lock(lock_);
    cancelled_ = true;
    for (const Inner& i : open_)
      if (i.iterator) i.iterator->cancel();
  }

 protected:
  void begin(uint64_t key) override {
    close();
    Unary::begin(key);
    key_ = key;
    at_ = 0;
    taken_ = made_ = 0;
    live_ = 0;
    ended_ = false;
  }
  bool get(Element& e) override {
    while (!ended_ || live_ > 0) {
      Inner& here = open_[at_];
      if (here.iterator) {
        if (here.iterator->next(e)) {
          if (++taken_ == o_.block_length) turn();
          return true;
        }
        const std::lock_guard lock(lock_);
        here.drop();
        --live_;
        turn();
      } else if (!ended_) {
        if (!input_->next(from_)) {
          ended_ = true;
          continue;
        }
        open(here);
      } else {
        turn();
      }
    }
    return false;
  }

 private:
  struct Inner {
    std::optional<Dataset> dataset;
    std::unique_ptr<std::map<const Node*, Bytes>> ceilings;
    std::unique_ptr<Iterator> iterator;  // uses the others
    void drop() {
      iterator.reset();
      ceilings.reset();
      dataset.reset();
    }
    ~Inner() { drop(); }
    Inner() = default;
    Inner(Inner&&) = default;
    Inner& operator=(Inner&&) = default;  // only onto one that was dropped
  };
  void turn() {
    at_ = (at_ + 1) % open_.size();
    taken_ = 0;
  }
  void open(Inner& here) {
    Inner made;
    made.dataset = f_(from_);
    from_.clear();
    const Node& node = *made.dataset->node();
    made.ceilings = std::make_unique<std::map<const Node*, Bytes>>(ceilings_of(node, each_, false));
    made.iterator = node.start(run_, {made.ceilings.get(), true, 0});
    if (o_.parallel)
      made.iterator =
          std::make_unique<Queue>(run_, run_.inner_stage("inner/ahead", "read ahead"), std::move(made.iterator),
                                  QueueOptions{.threads = 1, .depth = 16 * o_.block_length, .ceiling = each_});
    made.iterator->rewind(random_key(key_, uint64_t(++made_)));
    made.iterator->warm();
    const std::lock_guard lock(lock_);
    if (cancelled_) throw Stopped{};
    here = std::move(made);
    ++live_;
  }
  void close() {
    const std::lock_guard lock(lock_);
    for (Inner& i : open_) i.drop();
  }

  const FlatMapFunction& f_;
  const InterleaveOptions& o_;
  Bytes each_;
  std::mutex lock_;  // of open_ against cancel, which comes from another thread
  std::vector<Inner> open_;
  bool cancelled_ = false;
  Element from_;
  uint64_t key_ = 0;
  size_t at_ = 0;
  int64_t taken_ = 0, made_ = 0, live_ = 0;
  bool ended_ = false;
};

class InterleaveNode final : public Node {
 public:
  InterleaveNode(NodePtr input, FlatMapFunction f, std::optional<InterleaveOptions> o)
      : Node({std::move(input)}), f_(std::move(f)), flat_(!o), o_(o.value_or(InterleaveOptions{.cycle_length = 1})) {
    if (!f_) throw Error(Code::kUsage, format("{}: no function is given", name()));
    if (o_.cycle_length < 1 || o_.cycle_length > 1024 || o_.block_length < 1)
      throw Error(Code::kUsage,
                  format("interleave: cycle_length {}, block_length {}", o_.cycle_length, o_.block_length));
  }
  std::string name() const override { return flat_ ? "flat_map" : "interleave"; }
  std::string text() const override {
    return flat_ ? "flat_map()"
                 : format("interleave({} by {}{})", o_.cycle_length, o_.block_length, o_.parallel ? ", parallel" : "");
  }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return input().cardinality() == 0 ? 0 : UNKNOWN; }
  Need need() const override { return {.working = {}, .holds = true, .least = {}, .ask = o_.bytes}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<InterleaveIterator>(run, stage, input().start(run, scope), f_, o_, ceiling(scope));
  }

 private:
  FlatMapFunction f_;
  bool flat_;
  InterleaveOptions o_;
  ElementSpec spec_ = Dataset::unknown_spec();
};

}  // namespace

NodePtr interleave_node(NodePtr input, FlatMapFunction f, std::optional<InterleaveOptions> o) {
  return std::make_shared<InterleaveNode>(std::move(input), std::move(f), o);
}

}  // namespace millpond::data
