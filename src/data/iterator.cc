// What every stage does: starting, measuring, errors with their place, and the plain ways to give rows and to skip.
#include <cstring>

#include "base/format.h"
#include "base/random.h"
#include "data/node.h"

namespace millpond {

Bytes Element::bytes() const {
  Bytes sum;
  for (const Tensor& t : *this) sum += t.bytes();
  return sum;
}

bool ElementSpec::fixed() const {
  return known && std::ranges::all_of(*this, [](const TensorSpec& t) {
           return std::ranges::none_of(t.shape, [](int64_t d) { return d < 0; });
         });
}
Bytes ElementSpec::bytes() const {
  Bytes sum;
  for (const TensorSpec& t : *this) sum += Bytes{data::bytes_of(t)};
  return sum;
}
std::string to_string(const ElementSpec& spec) {
  if (!spec.known) return "unknown";
  std::string text = "(";
  for (size_t i = 0; i < spec.size(); ++i) {
    text += format("{}{} [", i ? ", " : "", spec[i].dtype);
    for (size_t d = 0; d < spec[i].shape.size(); ++d)
      text +=
          format("{}{}", d ? ", " : "", spec[i].shape[d] < 0 ? std::string("any") : std::to_string(spec[i].shape[d]));
    text += "]";
  }
  return text + ")";
}

Tensor Buffers::tensor(DType dtype, const Shape& shape) { return pool_.tensor(dtype, shape, stage_); }

namespace data {
namespace {
constexpr int64_t kSample = 16;  // of so many calls one is timed and stands for all of them,
constexpr int64_t kSlow = 2000;  // unless a call takes longer than so many nanoseconds: then each is
}  // namespace

void rethrow_with_place(const Stage& stage, int64_t index) {
  const auto placed = [&](Error e) {
    if (std::ranges::none_of(e.details(), [](const auto& d) { return d.first == "stage"; })) {
      e.add("stage", stage.name);
      e.add("element", std::to_string(index));
    }
    return e;
  };
  try {
    throw;
  } catch (const Error& e) {
    throw placed(e);
  } catch (const std::exception& e) {
    throw placed(Error(Code::kValue, format("{} failed at element {}: {}", stage.name, index, e.what())));
  }
}

bool Iterator::next(Element& e) {
  try {
    bool there;
    if (slow_ || calls_++ % kSample == 0) {
      const int64_t start = now_ns();
      there = get(e);
      const int64_t took = now_ns() - start;
      stage_.ns.fetch_add(slow_ ? took : took * kSample, std::memory_order_relaxed);
      slow_ = took > kSlow;
    } else {
      there = get(e);
    }
    if (!there) {
      e.clear();
      return false;
    }
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    rethrow_with_place(stage_, index_);
  }
  ++index_;
  stage_.out.fetch_add(1, std::memory_order_relaxed);
  return true;
}

int64_t Iterator::rows(RowSink& sink, int64_t n) {
  int64_t done = 0;
  const int64_t start = now_ns();
  rows_done_ = 0;
  try {
    done = get_rows(sink, n);
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    rethrow_with_place(stage_, index_ + rows_done_);
  }
  stage_.ns.fetch_add(now_ns() - start, std::memory_order_relaxed);
  index_ += done;
  stage_.out.fetch_add(done, std::memory_order_relaxed);
  return done;
}

void RowSink::append(const Element& e) {
  const auto wrong = [&] {
    throw Error(Code::kShape,
                format("an element is {}, but those before it were {}", to_string(spec_of(e)), to_string(*spec)))
        .hint("elements of different shapes need batch(n, {.padded = true})");
  };
  if (e.size() != spec->size()) wrong();
  for (size_t i = 0; i < e.size(); ++i) {
    const TensorSpec& s = (*spec)[i];
    const Tensor& t = e[i];
    if (t.dtype() != s.dtype || size_t(t.shape().rank()) != s.shape.size() ||
        !std::equal(t.shape().begin(), t.shape().end(), s.shape.begin()))
      wrong();
    if (bytes[i]) std::memcpy(to[i], t.data(), size_t(bytes[i]));
    to[i] += bytes[i];
  }
}

int64_t Iterator::get_rows(RowSink& sink, int64_t n) {
  Element e;
  for (; rows_done_ < n && get(e); ++rows_done_) sink.append(e);
  return rows_done_;
}

int64_t Iterator::pass(int64_t n) {
  Element e;
  int64_t done = 0;
  while (done < n && get(e)) ++done;
  return done;
}

uint64_t Run::seed_of(const Node& node) const {
  if (!seeds.empty())
    if (const auto at = seeds.find(&node); at != seeds.end()) return at->second;
  return node.seed().value_or(0);
}

Stage& Run::inner_stage(const std::string& name, const std::string& text) {
  const std::lock_guard lock(lock_);
  Stage*& s = inner_[name];
  if (!s) {
    s = &pool->add_stage(name, text);
    s->inner = true;
  }
  return *s;
}

const std::vector<std::string>& Node::class_names() const {
  static const std::vector<std::string> none;
  return inputs_.empty() ? none : inputs_[0]->class_names();
}

Bytes Node::most() const {
  // A stage that passes its elements on passes its input's spec on as well.
  return !inputs_.empty() && &spec() == &inputs_[0]->spec() ? inputs_[0]->most() : cost_of(spec());
}

Bytes Node::ceiling(const Scope& scope) const {
  if (!scope.ceilings) return {};
  const auto at = scope.ceilings->find(this);
  return at == scope.ceilings->end() ? Bytes{} : at->second;
}

namespace {
// An indexed stage reads its source by itself; the stages it went through still have their line in the table.
void list_sources(const Node& node, Run& run, Stage& above, int depth) {
  for (const NodePtr& n : node.inputs()) {
    if (n->options()) {
      list_sources(*n, run, above, depth);
      continue;
    }
    Stage& s = run.pool->add_stage(n->name(), n->text());
    s.depth = depth;
    s.decide("read by number, holds nothing");
    above.inputs.push_back(&s);
    list_sources(*n, run, s, depth + 1);
  }
}
}  // namespace

std::unique_ptr<Iterator> Node::start(Run& run, const Scope& scope) const {
  if (options()) return input().start(run, scope);
  Stage& stage = scope.inner ? run.inner_stage("inner/" + name(), text()) : run.pool->add_stage(name(), text());
  if (!scope.inner) {
    stage.depth = scope.depth;
    stage.bound = ceiling(scope);
  }
  Scope below = scope;
  ++below.depth;
  std::unique_ptr<Iterator> made = make(run, stage, below);
  if (indexed() && !scope.inner) {
    list_sources(*this, run, stage, below.depth);
    stage.inputs.clear();  // nothing below is timed apart
    const Node* source = this;
    while (!source->inputs().empty()) source = source->inputs()[0].get();
    if (source != this) stage.reads = source->name();
  }
  return made;
}

int64_t bytes_of(const TensorSpec& t) {
  int64_t n = size_of(t.dtype).value;
  for (const int64_t d : t.shape) n *= d;
  return n;
}

Shape to_shape(const TensorSpec& spec) { return Shape(std::span<const int64_t>(spec.shape)); }

ElementSpec spec_of(const Element& e) {
  ElementSpec spec;
  for (const Tensor& t : e) spec.push_back({t.dtype(), std::vector<int64_t>(t.shape().begin(), t.shape().end())});
  return spec;
}

Bytes cost_of(const ElementSpec& spec) {
  if (!spec.fixed()) return {};
  Bytes sum;
  for (const TensorSpec& t : spec) sum += Pool::cost(Bytes{bytes_of(t)});
  return sum;
}

ElementSpec batched(const ElementSpec& spec, int64_t n) {
  ElementSpec out = spec;
  for (TensorSpec& t : out) t.shape.insert(t.shape.begin(), n);
  return out;
}

}  // namespace data
}  // namespace millpond
