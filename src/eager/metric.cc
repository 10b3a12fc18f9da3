// Metrics by themselves: a mean's sum is made by a function and added up here, in double; a counting metric's counts are
// variables that its function changes.
#include "nn/metric.h"
#include "base/format.h"
#include "eager/call.h"
#include "eager/tape.h"
#include "millpond/metrics.h"
#include "millpond/ops.h"
#include "nn/loss.h"
#include "ops/cast.h"
#include "ops/reduce.h"
#include "runtime/variable.h"

namespace millpond {
namespace eager {
namespace {

struct Alone {
  double sum = 0, count = 0;                                // of a mean
  std::vector<std::unique_ptr<runtime::Variable>> counted;  // of a counting metric
};

Alone& alone(const nn::MetricImpl& metric) {
  if (!metric.alone) {
    auto made = std::make_shared<Alone>();
    if (const auto* counting = dynamic_cast<const nn::CountingMetric*>(&metric)) {
      std::vector<runtime::Variable*> all;
      for (const nn::CountingMetric::Count& count : counting->counts()) {
        made->counted.push_back(
            std::make_unique<runtime::Variable>(format("metrics/{}/{}", metric.name, count.name), count.type));
        all.push_back(made->counted.back().get());
      }
      runtime::place(all, format("metrics/{}", metric.name));
    }
    metric.alone = std::move(made);
  }
  return *static_cast<Alone*>(metric.alone.get());
}

}  // namespace
}  // namespace eager

void Metric::update_state(const EagerTensor& labels, const EagerTensor& prediction) {
  using eager::Ref;
  const eager::Tape::Silence silence;
  const eager::Seen p = eager::seen(eager::need(prediction, "update_state"));
  const DType in = is_half(p.type.dtype) ? DType::kFloat32 : p.type.dtype;
  const Ref y = ops::cast(labels, in).impl();
  eager::Context& c = eager::Context::get();
  const std::lock_guard lock(c.mutex);
  eager::Alone& state = eager::alone(*impl_);
  graph::Key key;
  key.add(uint64_t(reinterpret_cast<uintptr_t>(impl_.get())));
  key.add(uint64_t(p.by) * 2 + (p.mask != nullptr));
  key.add(y->type);
  key.add(p.input->type);
  if (p.mask) key.add(p.mask->type);
  const auto* mean = dynamic_cast<const nn::MeanMetric*>(impl_.get());
  // The function of a counting metric changes its counts, which `impl_` owns: it is kept with them.
  const std::shared_ptr<eager::Function> f = eager::kept_function(c, key, impl_, [&](graph::Builder& b) {
    const graph::Value label = b.input("y", y->type), pin = b.input("p", p.input->type);
    const graph::Value mask = p.mask ? b.input("mask", p.mask->type) : graph::Value{};
    const graph::Value shown = p.prediction(b, pin);
    if (mean) {
      const graph::Value values = mean->values(b, label, shown);
      graph::Value sum, count;
      if (mask) {
        const nn::Counted some = nn::counted(b, values, mask, impl_->name);
        sum = some.sum, count = some.count;
      } else {
        sum = ops::sum(b, values), count = b.scalar(DType::kFloat32, double(values.shape().size()));
      }
      b.graph().outputs.push_back({"sum", ops::cast(b, sum, DType::kFloat32)});
      b.graph().outputs.push_back({"count", ops::cast(b, count, DType::kFloat32)});
      return;
    }
    const auto& counting = dynamic_cast<const nn::CountingMetric&>(*impl_);
    std::vector<graph::Value> before;
    for (const auto& v : state.counted) before.push_back(b.variable(v->account(), v->type(), v.get()));
    const std::vector<graph::Value> after = counting.update(b, before, label, shown);
    for (size_t i = 0; i < before.size(); ++i) b.graph().updates.push_back({before[i], after[i]});
  });
  std::vector<Ref> operands{y, p.input};
  if (p.mask) operands.push_back(p.mask);
  const std::vector<Ref> made = eager::call(f, operands, false);
  if (!mean) return;
  state.sum += eager::outside(made[0]).item();
  state.count += eager::outside(made[1]).item();
}

struct metrics::Mean::State {
  std::string name;
  double sum = 0, count = 0;  // under Context::mutex
};
metrics::Mean::Mean(std::string name) : state_(std::make_shared<State>(State{std::move(name)})) {}
const std::string& metrics::Mean::name() const { return state_->name; }
void metrics::Mean::update_state(const EagerTensor& values) {
  const eager::Tape::Silence silence;
  const double sum = double(ops::sum(values));
  const std::lock_guard lock(eager::Context::get().mutex);
  state_->sum += sum;
  state_->count += double(values.size());
}
double metrics::Mean::result() const {
  const std::lock_guard lock(eager::Context::get().mutex);
  return state_->count > 0 ? state_->sum / state_->count : 0;
}
void metrics::Mean::reset_state() {
  const std::lock_guard lock(eager::Context::get().mutex);
  state_->sum = state_->count = 0;
}

double Metric::result() const {
  eager::Context& c = eager::Context::get();
  const std::lock_guard lock(c.mutex);
  const eager::Alone& state = eager::alone(*impl_);
  const auto* counting = dynamic_cast<const nn::CountingMetric*>(impl_.get());
  if (!counting) return state.count > 0 ? state.sum / state.count : 0;
  std::vector<Tensor> counts;
  for (const auto& v : state.counted) counts.push_back(v->seen("metrics/looked_at"));
  return counting->result(counts);
}

void Metric::reset_state() {
  eager::Context& c = eager::Context::get();
  const std::lock_guard lock(c.mutex);
  eager::Alone& state = eager::alone(*impl_);
  state.sum = state.count = 0;
  for (const auto& v : state.counted) v->zero();
}

}  // namespace millpond
