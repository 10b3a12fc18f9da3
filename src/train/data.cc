// A user's arrays: checked against the model once, then staged batch by batch.
#include <cfloat>
#include <cmath>

#include "base/format.h"
#include "train/model.h"

namespace millpond::train {
namespace {

Shape sample_of(const Tensor& t) { return t.shape().slice(1, t.shape().rank()); }

}  // namespace

Data check_data(ModelImpl& model, const Arrays& x, const Arrays& y, bool with_labels, const char* what) {
  if (x.empty() || !x[0].data()) {
    if (x.empty() || x[0].shape().rank() == 0 || x[0].shape()[0] != 0)
      throw Error(Code::kUsage, format("{}: no data is given", what));
  }
  for (const Tensor& t : x)
    if (t.shape().rank() == 0)
      throw Error(Code::kShape, format("{}: x is a single number; the first dimension counts the samples", what));
  model.build_from(sample_of(x[0]), is_floating(x[0].dtype()) ? DType::kFloat32 : x[0].dtype());
  const nn::Network& net = model.built();
  Data data{x, y, x[0].shape()[0], {}};
  if (x.size() != net.inputs.size())
    throw Error(Code::kUsage, format("{}: the model \"{}\" has {} inputs, but {} arrays are given", what, model.name,
                                     net.inputs.size(), x.size()));
  for (size_t i = 0; i < x.size(); ++i) {
    const Shape want = net.inputs[i].shape(), got = sample_of(x[i]);
    const std::optional<Shape> shape = nn::fitted(want, got);
    if (!shape)
      throw Error(Code::kShape, format("{}: samples of x{} have the shape {}, but the input \"{}\" wants {}", what, i,
                                       got, net.inputs[i].node()->layer->name, want))
          .with("layer", net.inputs[i].node()->layer->name);
    data.shapes.x.push_back(*shape);
    if (x[i].shape()[0] != data.samples)
      throw Error(Code::kShape,
                  format("{}: x0 has {} samples, but x{} has {}", what, data.samples, i, x[i].shape()[0]));
  }
  if (with_labels) {
    if (y.size() != net.outputs.size())
      throw Error(Code::kUsage, format("{}: the model \"{}\" has {} outputs, but y has {} arrays", what, model.name,
                                       net.outputs.size(), y.size()));
    for (size_t i = 0; i < y.size(); ++i) {
      if (y[i].shape().rank() == 0)
        throw Error(Code::kShape, format("{}: y is a single number; the first dimension counts the samples", what));
      if (y[i].shape()[0] != data.samples)
        throw Error(Code::kShape,
                    format("{}: x0 has {} samples, but y{} has {}", what, data.samples, i, y[i].shape()[0]));
      data.shapes.y.push_back(sample_of(y[i]));
    }
  } else {
    data.y.clear();
  }
  if (data.samples == 0)
    throw Error(Code::kValue, format("{}: the data has no samples", what)).hint("give at least one");
  if (data.samples > int64_t(UINT32_MAX))
    throw Error(Code::kUnsupported,
                format("{}: {} samples; at most {} are counted so far", what, data.samples, UINT32_MAX));
  return data;
}

Data rows_of(const Data& data, int64_t from, int64_t to) {
  Data part{{}, {}, to - from, data.shapes};
  for (const Tensor& t : data.x) part.x.push_back(t.rows(from, to));
  for (const Tensor& t : data.y) part.y.push_back(t.rows(from, to));
  return part;
}

void connect(Ready& r, const Data& data, bool check_inputs) {
  for (size_t i = 0; i < r.lanes.size(); ++i) {
    const Tensor& t = i < data.x.size() ? data.x[i] : data.y[i - data.x.size()];
    Lane& lane = r.lanes[i];
    lane.from = t.data();
    lane.from_type = t.dtype();
    lane.check = lane.limit ? Check::kBelow : check_inputs && is_floating(t.dtype()) ? Check::kFinite : Check::kNone;
  }
}

[[noreturn]] void refuse(const Ready& r, const Data& data, const Rows& rows, Refusal bad) {
  const Feed& feed = r.feeds[size_t(bad.lane)];
  const size_t lane = size_t(bad.lane);
  const Tensor& t = lane < data.x.size() ? data.x[lane] : data.y[lane - data.x.size()];
  const int64_t row = rows[bad.at], width = r.lanes[lane].width;
  const bool below = r.lanes[lane].check == Check::kBelow;
  double value = 0;
  int64_t column = 0;
  for (; column < width; ++column) {
    value = t.at(row * width + column);
    if (below ? !(value > -1 && std::trunc(value) < double(feed.limit))
              : !std::isfinite(value) || std::abs(value) > FLT_MAX)
      break;
  }
  const std::string where = width == 1 ? "" : format(", value {}", column);
  if (below) {
    throw Error(Code::kValue, format("{} {} in row {} of {}{} is out of range: {} \"{}\" has {} {}, 0 to {}",
                                     feed.label ? "label" : "index", value, row, feed.name, where,
                                     feed.label ? "the output" : "the layer", feed.limit_of, feed.limit,
                                     feed.label ? "classes" : "rows", feed.limit - 1))
        .with("layer", feed.limit_of);
  }
  throw Error(Code::kValue, format("row {} of {}{} is {}", row, feed.name, where,
                                   std::isnan(value)   ? "NaN"
                                   : std::isinf(value) ? "infinite"
                                                       : format("too large for {}", feed.type.dtype)))
      .hint("clean the data, or train with check_inputs off");
}

void stage_batch(Team& team, Ready& r, const Data& data, const Rows& rows) {
  r.program.open();
  if (const Refusal bad = backend::stage(team, r.lanes, rows)) refuse(r, data, rows, bad);
}

Means::Means(const Ready& like) : backend_(like.program.backend()), size_(like.scalars.size()) {
  for (size_t i = 0; i < size_; ++i) {
    const Scalar& s = like.scalars[i];
    if (!s.metric) {
      means_.push_back({i, s.per_sample, s.counted});
      sums_.resize(sums_.size() + (s.counted ? 2 : 1));
      continue;
    }
    Counted c{i, s.metric, s.counts, std::vector<Tensor>(s.counts.size()), {}};
    for (const runtime::Variable* v : c.variables) {
      const size_t at = c.before.size();
      c.before.resize(at + size_t(v->type().bytes().value));
      v->memory().read(c.before.data() + at);
    }
    counted_.push_back(std::move(c));
  }
  reset();
}
Means::~Means() {
  backend_.wait();  // for steps that add to the sums
  for (const Counted& c : counted_) {
    const std::byte* from = c.before.data();
    for (const runtime::Variable* v : c.variables) v->memory().write(from), from += v->type().bytes().value;
  }
}
void Means::reset() {
  backend_.wait();
  samples_ = 0;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  for (const Counted& c : counted_)
    for (runtime::Variable* v : c.variables) v->zero();
}
void Means::read(std::span<Logs::Entry> entries) {
  backend_.wait();
  const double* sum = sums_.data();
  for (const Mean& m : means_) {
    const double of = *sum++, by = m.counted ? *sum++ : samples_ * m.per_sample;
    entries[m.scalar].value = by > 0 ? of / by : 0;
  }
  for (Counted& c : counted_) {
    for (size_t i = 0; i < c.variables.size(); ++i) c.counts[i] = c.variables[i]->seen("metrics");
    entries[c.scalar].value = c.metric->result(c.counts);
  }
}

}  // namespace millpond::train
