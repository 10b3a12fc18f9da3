#include "data/running.h"

#include <nlohmann/json.hpp>

#include "base/process.h"
#include "base/team.h"

namespace millpond::data {
namespace {

void each_running(const Node& node, const std::function<void(const Node&)>& f) {
  if (!node.options()) f(node);
  for (const NodePtr& n : node.run_inputs()) each_running(*n, f);
}
void each_node(const Node& node, const std::function<void(const Node&)>& f) {
  f(node);
  for (const NodePtr& n : node.inputs()) each_node(*n, f);
}

// The options nearest to the end of the chain.
const DatasetOptions* options_of(const Node& node) {
  const DatasetOptions* found = nullptr;
  each_node(node, [&](const Node& n) {
    if (!found) found = n.options();
  });
  return found;
}

// What a chain made in the same way has in common: names of its stages.
std::string chain_of(const Node& node) {
  std::string text;
  each_node(node, [&](const Node& n) {
    if (!n.options()) text += n.text() + ";";
  });
  return text;
}

double inclusive_ns(const Stage& s) { return double(s.ns.load()); }
// Time a stage itself takes for what it has given: without its inputs; its threads share their work.
double self_ns(const Stage& s) {
  if (const int threads = s.threads.load(); threads > 0) return std::max(0.0, double(s.work_ns.load())) / threads;
  double ns = inclusive_ns(s);
  for (const Stage* i : s.inputs) ns -= inclusive_ns(*i);
  return std::max(0.0, ns);
}

std::string rate(double per_second) {
  if (per_second >= 1e6) return format("{:.3g} M/s", per_second / 1e6);
  if (per_second >= 1e3) return format("{:.3g} k/s", per_second / 1e3);
  return format("{:.3g} /s", per_second);
}
std::string duration(double ns) {
  if (ns < 1e3) return format("{:.0f} ns", ns);
  if (ns < 1e6) return format("{:.3g} us", ns / 1e3);
  if (ns < 1e9) return format("{:.3g} ms", ns / 1e6);
  return format("{:.3g} s", ns / 1e9);
}

}  // namespace

std::map<const Node*, Bytes> ceilings_of(const Node& root, Bytes budget, bool consumer) {
  std::vector<Claim> claims;
  std::vector<const Node*> nodes;
  bool sure = true;
  each_running(root, [&](const Node& n) {
    const Need need = n.need();
    claims.push_back({n.name(), need.working, need.holds, need.least, need.ask});
    nodes.push_back(&n);
    sure = sure && n.sure();
  });
  if (consumer) claims.push_back({"consumer", root.most() * 2, false, {}, {}});
  const std::vector<Bytes> shares = divide(budget, claims, sure);
  std::map<const Node*, Bytes> ceilings;
  for (size_t i = 0; i < nodes.size(); ++i) {
    // The same stage twice in a tree (zip of a dataset with itself): each may hold the lesser share.
    const auto [at, fresh] = ceilings.emplace(nodes[i], shares[i]);
    if (!fresh) at->second = std::min(at->second, shares[i]);
  }
  return ceilings;
}

Running::Running(NodePtr root) : root_(std::move(root)) {
  const DatasetOptions* o = options_of(*root_);
  own_budget_ = o && o->budget.value > 0;
  const Bytes budget = own_budget_ ? o->budget : Bytes{memory_free_now().bytes.value / 10};
  run_ = std::make_unique<Run>(Pool::make(budget), o && o->threads > 0 ? o->threads : usable_threads());
  ceilings_ = ceilings_of(*root_, budget, true);
  top_ = root_->start(*run_, {&ceilings_, false, 0});
  top_->rewind(0);
  began_ns_ = now_ns();
  Node::Log& log = root_->log();
  const std::lock_guard lock(log.lock);
  log.running = this;
}

Running::~Running() {
  {
    Node::Log& log = root_->log();
    const std::lock_guard lock(log.lock);
    if (log.running == this) {
      log.running = nullptr;
      log.last = explain();
    }
  }
  run_->stopping = true;
  top_->cancel();
  current.clear();
  top_.reset();
}

bool Running::next(Element& e) {
  if (over_) return e.clear(), false;
  const int64_t start = now_ns();
  try {
    over_ = !top_->next(e);
  } catch (const Stopped&) {
    over_ = true;
    throw Error(Code::kInterrupted, "the data pipeline was stopped while it was asked for an element");
  } catch (...) {
    over_ = true;
    e.clear();
    waited_ns_ += now_ns() - start;
    throw;
  }
  waited_ns_ += now_ns() - start;
  if (over_) return e.clear(), false;
  ++elements_;
  return true;
}

void Running::fill(std::span<std::byte* const> to, int64_t rows) {
  const int64_t start = now_ns();
  try {
    top_->fill(to, rows);
  } catch (...) {
    over_ = true;
    throw;
  }
  waited_ns_ += now_ns() - start;
  ++elements_;
}

void Running::rewind(int64_t epoch) {
  if (epoch < 0) throw Error(Code::kUsage, format("rewind: epoch {}", epoch));
  current.clear();
  begun = ended = over_ = false;
  epoch_ = epoch;
  elements_ = 0;
  top_->rewind(uint64_t(epoch));
}

void Running::warm() { top_->warm(); }

std::string Running::save() const {
  nlohmann::json seeds = nlohmann::json::array();
  each_node(*root_, [&](const Node& n) {
    if (!n.ordered())
      throw Error(
          Code::kUsage,
          format("the place of this dataset cannot be saved: {} gives elements in the order in which they are ready",
                 n.name()))
          .hint("make it with ordered = true");
    if (n.seed()) seeds.push_back(run_->seed_of(n));
  });
  return nlohmann::json{{"millpond_dataset", 1},
                        {"epoch", epoch_},
                        {"elements", elements_},
                        {"seeds", seeds},
                        {"chain", chain_of(*root_)}}
      .dump();
}

void Running::restore(std::string_view position) {
  const auto json = nlohmann::json::parse(position, nullptr, false);
  const auto integer = [&](const char* key) -> int64_t {
    const auto at = json.find(key);
    if (at == json.end() || !at->is_number_integer() ||
        (at->is_number_unsigned() ? at->get<uint64_t>() > uint64_t(INT64_MAX) : at->get<int64_t>() < 0))
      throw Error(Code::kFormat,
                  format("this is no saved place of a dataset: \"{}\" is missing or no whole number", key));
    return at->get<int64_t>();
  };
  if (!json.is_object() || integer("millpond_dataset") != 1)
    throw Error(Code::kFormat, "this is no saved place of a dataset");
  const int64_t epoch = integer("epoch"), elements = integer("elements");
  const auto chain = json.find("chain"), seeds = json.find("seeds");
  if (chain == json.end() || !chain->is_string() || seeds == json.end() || !seeds->is_array())
    throw Error(Code::kFormat, "this is no saved place of a dataset: \"chain\" or \"seeds\" is missing");
  if (chain->get<std::string>() != chain_of(*root_))
    throw Error(Code::kUsage, "the saved place belongs to a dataset that was made in another way")
        .with("saved", chain->get<std::string>())
        .with("this one", chain_of(*root_));
  std::vector<const Node*> seeded;
  each_node(*root_, [&](const Node& n) {
    if (n.seed()) seeded.push_back(&n);
  });
  if (seeded.size() != seeds->size())
    throw Error(Code::kFormat,
                format("the saved place has {} seeds, but {} stages have one", seeds->size(), seeded.size()));
  std::map<const Node*, uint64_t> values;
  for (size_t i = 0; i < seeded.size(); ++i) {
    if (!(*seeds)[i].is_number_integer())
      throw Error(Code::kFormat, "the saved place has a seed that is no whole number");
    values[seeded[i]] = (*seeds)[i].get<uint64_t>();
  }
  // Stages take their seeds when they start.
  top_->cancel();
  current.clear();
  top_.reset();
  const Bytes budget = run_->pool->limit();
  run_ = std::make_unique<Run>(Pool::make(budget), run_->threads);
  run_->seeds = std::move(values);
  top_ = root_->start(*run_, {&ceilings_, false, 0});
  rewind(epoch);
  elements_ = top_->skip(elements);
  if (elements_ != elements)
    throw Error(Code::kValue,
                format("the saved place is after {} elements, but this dataset has only {}", elements, elements_))
        .hint("the data has changed since it was saved");
}

std::string Running::waited_on() const {
  const Stage* slowest = nullptr;
  double most = 0;
  for (const Stage* s : run_->pool->stages())
    if (const double ns = self_ns(*s); ns > most) most = ns, slowest = s;
  return !slowest ? "" : slowest->reads.empty() ? slowest->name : slowest->reads;
}

std::string Running::explain() const {
  const Pool& pool = *run_->pool;
  const double seconds = double(now_ns() - began_ns_) * 1e-9;
  std::string out = format("budget {}{}; held {}, at most {}; waited {} of {:.3g} s", pool.limit(),
                           own_budget_ ? "" : " (a tenth of the free memory)", pool.held(), pool.peak(),
                           duration(double(waited_ns_)), seconds);
  if (const std::string on = waited_on(); !on.empty()) out += format(", slowest is {}", on);
  out += '\n';
  size_t wide = 5;
  const std::vector<const Stage*> stages = pool.stages();
  for (const Stage* s : stages) wide = std::max(wide, s->text.size());
  out += format("  {:<{}}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", "stage", wide, "elements", "rate",
                "own time", "waited", "held", "bound", "decided");
  for (size_t i = stages.size(); i-- > 0;) {
    const Stage& s = *stages[i];
    const auto n = double(s.out.load());
    const double own = self_ns(s);
    std::string note = s.decided();
    if (const int64_t left = s.left_out.load()) note += format("{}{} left out", note.empty() ? "" : "; ", left);
    out += format("  {:<{}}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}  {}\n", s.text, wide, s.out.load(),
                  n > 0 && own > 0 ? rate(n * 1e9 / own) : "", own > 0 ? duration(own) : "",
                  s.waits.load() ? duration(double(s.waited_ns.load())) : "", s.held(),
                  s.bound.value ? to_string(s.bound) : "", note);
  }
  return out;
}

}  // namespace millpond::data
