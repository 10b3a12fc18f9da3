// map and prefetch.
#include <chrono>
#include <cstring>

#include "base/random.h"
#include "data/queue.h"

namespace millpond::data {
namespace {

constexpr uint64_t kMapSalt = 0x6d61705f73656564;

// A user's function may write where it reads. What it reads may be the user's own array, or a buffer that another stage
// keeps (a cache): the function gets a copy of such a tensor, in a buffer of the pipeline.
void make_own(Element& e, Pool& pool, Stage& stage) {
  for (Tensor& t : e) {
    if (t.bytes().value == 0 || !t.data() || t.owner().use_count() == 1) continue;
    Tensor own = pool.tensor(t.dtype(), t.shape(), stage);
    std::memcpy(own.data(), t.data(), size_t(t.bytes().value));
    t = std::move(own);
  }
}

class MapIterator final : public Unary {
 public:
  MapIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, const MapFunction& f, bool writes,
              bool ignore_errors, uint64_t salt)
      : Unary(run, stage, std::move(input)), f_(f), writes_(writes), ignore_(ignore_errors), salt_(salt) {}

 protected:
  void begin(uint64_t key) override {
    Unary::begin(key);
    key_ = key;
    at_ = 0;
  }
  bool get(Element& e) override {
    for (;;) {
      if (!input_->next(e)) return false;
      if (writes_) make_own(e, pool(), stage_);
      Buffers buffers(pool(), stage_, at_, random_key(key_ ^ salt_, uint64_t(at_)));
      ++at_;
      if (!ignore_) return f_(e, buffers), true;
      try {
        f_(e, buffers);
        return true;
      } catch (const Stopped&) {
        throw;
      } catch (...) {
        stage_.left_out.fetch_add(1, std::memory_order_relaxed);
      }
    }
  }
  int64_t pass(int64_t n) override {
    if (ignore_) return Iterator::pass(n);
    const int64_t done = input_->skip(n);
    at_ += done;
    return done;
  }

 private:
  const MapFunction& f_;
  bool writes_, ignore_;
  uint64_t salt_, key_ = 0;
  int64_t at_ = 0;
};

class MapNode final : public Node {
 public:
  MapNode(NodePtr input, MapFunction f, MapOptions o, MapExtra extra)
      : Node({std::move(input)}), f_(std::move(f)), o_(std::move(o)), extra_(extra) {
    if (o_.parallel == 0 || o_.parallel < AUTOTUNE)
      throw Error(Code::kUsage, format("map: {} threads", o_.parallel)).hint("give at least 1, or AUTOTUNE");
    if (o_.parallel > 256) throw Error(Code::kUsage, format("map: {} threads; at most 256", o_.parallel));
    spec_ = o_.spec ? *o_.spec : Dataset::unknown_spec();
  }
  std::string name() const override { return o_.name; }
  std::string text() const override {
    const std::string how = o_.parallel == 1  ? ""
                            : o_.parallel < 0 ? "parallel AUTOTUNE"
                                              : format("parallel {}", o_.parallel);
    return format("{}({}{})", o_.name, how, o_.ordered ? "" : ", unordered");
  }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override {
    const int64_t n = input().cardinality();
    return o_.ignore_errors && n > 0 ? UNKNOWN : n;
  }
  bool ordered() const override { return o_.ordered || o_.parallel == 1; }
  bool sure() const override { return false; }
  std::optional<uint64_t> seed() const override { return extra_.seed; }
  NodePtr over(NodePtr other) const override {
    return extra_.any_order ? std::make_shared<MapNode>(std::move(other), f_, o_, extra_) : nullptr;
  }
  Need need() const override {
    const Bytes one = cost_of(spec_);
    if (o_.parallel == 1) return {.working = writes() ? one + input().most() : one};
    return {.working = one + input().most(), .holds = true, .least = one, .ask = o_.bytes};
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    const uint64_t salt = kMapSalt ^ mix64(run.seed_of(*this));
    if (o_.parallel == 1)
      return std::make_unique<MapIterator>(run, stage, input().start(run, scope), f_, writes(), o_.ignore_errors, salt);
    // A parallel map over a parallel map: one queue whose workers do both, instead of two that hand elements over.
    // Elements and their seeds stay the same.
    const MapNode* inner = o_.ordered && !o_.ignore_errors ? dynamic_cast<const MapNode*>(&input()) : nullptr;
    if (inner && (inner->o_.parallel == 1 || !inner->o_.ordered || inner->o_.ignore_errors || scope.inner))
      inner = nullptr;
    QueueOptions q{.threads = o_.parallel < 0 || (inner && inner->o_.parallel < 0)
                                  ? AUTOTUNE
                                  : std::max(o_.parallel, inner ? inner->o_.parallel : 0),
                   .depth = AUTOTUNE,
                   .most = 256,
                   .ceiling = ceiling(scope),
                   .ordered = o_.ordered,
                   .ignore_errors = o_.ignore_errors};
    if (q.threads > 0) q.depth = 4 * q.threads;
    std::unique_ptr<Iterator> from;
    if (inner) {
      Stage& below = run.pool->add_stage(inner->name(), inner->text());
      below.depth = scope.depth;
      below.decide(format("done by the threads of {}", name()));
      Scope deeper = scope;
      ++deeper.depth;
      from = inner->input().start(run, deeper);
      const uint64_t inner_salt = kMapSalt ^ mix64(run.seed_of(*inner));
      q.work = [this, inner, &below, &run, &stage, salt, inner_salt](Element& e, int64_t index, uint64_t key) {
        const auto start = std::chrono::steady_clock::now();
        try {
          if (inner->writes()) make_own(e, *run.pool, below);
          Buffers buffers(*run.pool, below, index, random_key(key ^ inner_salt, uint64_t(index)));
          inner->f_(e, buffers);
        } catch (const Stopped&) {
          throw;
        } catch (...) {
          rethrow_with_place(below, index);
        }
        const int64_t took = (std::chrono::steady_clock::now() - start).count();
        below.work_ns.fetch_add(took, std::memory_order_relaxed);
        stage.work_ns.fetch_sub(took, std::memory_order_relaxed);  // the queue adds all of it
        below.out.fetch_add(1, std::memory_order_relaxed);
        below.threads.store(stage.threads.load(std::memory_order_relaxed), std::memory_order_relaxed);
        if (writes()) make_own(e, *run.pool, stage);
        Buffers buffers(*run.pool, stage, index, random_key(key ^ salt, uint64_t(index)));
        f_(e, buffers);
      };
    } else {
      from = input().start(run, scope);
      q.work = [this, &run, &stage, salt](Element& e, int64_t index, uint64_t key) {
        if (writes()) make_own(e, *run.pool, stage);
        Buffers buffers(*run.pool, stage, index, random_key(key ^ salt, uint64_t(index)));
        f_(e, buffers);
      };
    }
    return std::make_unique<Queue>(run, stage, std::move(from), std::move(q));
  }

 private:
  bool writes() const { return !extra_.reads_only; }
  MapFunction f_;
  MapOptions o_;
  MapExtra extra_;
  ElementSpec spec_;
};

// A prefetch that has nothing to do ahead.
class PassIterator final : public Unary {
 public:
  using Unary::Unary;
  int64_t remaining() const override { return input_->remaining(); }
  int64_t upcoming() const override { return input_->upcoming(); }
  void fill(std::span<std::byte* const> to, int64_t rows) override {
    input_->fill(to, rows);
    ++index_;
    stage_.out.fetch_add(1, std::memory_order_relaxed);
  }

 protected:
  bool get(Element& e) override { return input_->next(e); }
  int64_t pass(int64_t n) override { return input_->skip(n); }
};

class PrefetchNode final : public Node {
 public:
  PrefetchNode(NodePtr input, int64_t elements, PrefetchOptions o)
      : Node({std::move(input)}), elements_(elements), o_(o) {
    if (elements < AUTOTUNE || elements > (1 << 20))
      throw Error(Code::kUsage, format("prefetch: {} elements", elements))
          .hint("give 1 or more, or AUTOTUNE; 0 with bytes");
    if (elements == 0 && o.bytes.value <= 0)
      throw Error(Code::kUsage, "prefetch: neither a number of elements nor bytes");
    if (o.bytes.value < 0) throw Error(Code::kUsage, format("prefetch: {} bytes", o.bytes.value));
  }
  std::string name() const override { return "prefetch"; }
  std::string text() const override {
    return format("prefetch({}{})",
                  elements_ < 0    ? "AUTOTUNE"
                  : elements_ == 0 ? ""
                                   : std::to_string(elements_),
                  o_.bytes.value ? format("{}{}", elements_ == 0 ? "" : ", ", o_.bytes) : "");
  }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return input().cardinality(); }
  Need need() const override {
    const Bytes one = most();
    Bytes ask = o_.bytes;
    if (elements_ > 0 && one.value) ask = ask.value ? std::min(ask, one * elements_) : one * elements_;
    return {.working = {}, .holds = true, .least = one, .ask = ask};
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    std::unique_ptr<Iterator> from = input().start(run, scope);
    if (elements_ == AUTOTUNE && !scope.inner && from->splits() && gathered_at_once(run)) {
      stage.decide("nothing to do ahead: rows in memory, gathered sooner than handed over");
      return std::make_unique<PassIterator>(run, stage, std::move(from));
    }
    QueueOptions q{.threads = 1, .depth = elements_ == 0 ? 4096 : elements_, .most = 256, .ceiling = ceiling(scope)};
    return std::make_unique<Queue>(run, stage, std::move(from), std::move(q));
  }

 private:
  // To hand a batch over between threads takes 15 us and more (18 us for a step became 33); to gather as many bytes as
  // these, from arrays in memory, takes less.
  static constexpr int64_t kGatheredAtOnce = 64 << 10;
  bool gathered_at_once(const Run& run) const {
    const Bytes batch = most();
    if (batch.value == 0 || batch.value > kGatheredAtOnce) return false;
    const Node* rows = &input();
    while (rows->options()) rows = &rows->input();
    if (rows->inputs().size() != 1) return false;
    rows = &rows->input();
    while (rows->options()) rows = &rows->input();
    const Indexed* indexed = rows->indexed();
    Element e;
    return indexed && indexed->size() > 0 && indexed->view(run, 0, 0, e);
  }

  int64_t elements_;
  PrefetchOptions o_;
};

}  // namespace

NodePtr map_node(NodePtr input, MapFunction f, MapOptions o, MapExtra extra) {
  return std::make_shared<MapNode>(std::move(input), std::move(f), std::move(o), extra);
}
NodePtr prefetch_node(NodePtr input, int64_t elements, PrefetchOptions o) {
  return std::make_shared<PrefetchNode>(std::move(input), elements, o);
}

}  // namespace millpond::data
