#include "train/stream.h"

#include "base/format.h"
#include "data/running.h"

namespace millpond::train {
namespace {

// Neither NaN nor infinity has an exponent that is not all ones.
template <class Bits>
bool all_finite(const std::byte* at, Bits exponent, int64_t n) {
  const auto* v = reinterpret_cast<const Bits*>(at);
  bool good = true;
  for (int64_t i = 0; i < n; ++i) good &= (v[i] & exponent) != exponent;
  return good;
}

bool all_finite(const std::byte* at, DType type, int64_t n) {
  switch (type) {
    case DType::kFloat64:
      return all_finite<uint64_t>(at, uint64_t{0x7ff} << 52, n);
    case DType::kFloat32:
      return all_finite<uint32_t>(at, 0x7f800000u, n);
    case DType::kFloat16:
      return all_finite<uint16_t>(at, 0x7c00, n);
    case DType::kBFloat16:
      return all_finite<uint16_t>(at, 0x7f80, n);
    default:
      return true;
  }
}

}  // namespace

Stream::Stream(ModelImpl& model, const Dataset& dataset, bool labels, const char* what, int64_t epoch)
    : iterator_(dataset), what_(what), cardinality_(dataset.cardinality()) {
  if (epoch) iterator_.rewind(epoch);
  if (!iterator_.next(element_)) throw Error(Code::kValue, format("{}: the dataset has no elements", what));
  // How many tensors are x: all that the model has inputs for; a model that waits for its data has one.
  const std::shared_ptr<nn::Network> network = model.network_now();
  const size_t inputs = network ? network->inputs.size() : 1;
  if (element_.size() < inputs)
    throw Error(Code::kUsage, format("{}: elements have {} tensors, but the model \"{}\" has {} inputs", what,
                                     element_.size(), model.name, inputs));
  Arrays x(std::vector<Tensor>(element_.begin(), element_.begin() + int64_t(inputs)));
  Arrays y(std::vector<Tensor>(element_.begin() + int64_t(inputs), element_.end()));
  for (const Tensor& t : element_)
    if (t.shape().rank() == 0)
      throw Error(Code::kShape, format("{}: an element is a single number; batches are wanted", what))
          .hint("put batch(32) at the end of the dataset");
  if (labels && network && y.size() == network->outputs.size() + 1)
    throw Error(Code::kUnsupported,
                format("{}: elements have {} tensors, but the model \"{}\" has {} inputs and {} outputs", what,
                       element_.size(), model.name, inputs, network->outputs.size()))
        .hint("weights of samples are not supported yet: leave them out with map");
  try {
    first_ = check_data(model, x, labels ? y : Arrays(), labels, what);
  } catch (const Error& e) {
    if (e.code() != Code::kShape) throw;
    throw Error(e).hint(format("elements of the dataset are {}; batches are wanted, with batch(n) at its end",
                               to_string(data::spec_of(element_))));
  }
  if (!labels) element_.resize(inputs);
  for (const Tensor& t : element_) {
    rows_.push_back(t.shape().without(0));
    types_.push_back(t.dtype());
  }
  for (Arrays* a : {&first_.x, &first_.y})
    for (Tensor& t : *a) t = Tensor::view(nullptr, t.dtype(), t.shape());
  for (const SymbolicTensor& input : model.built().inputs) inputs_.push_back(input.shape());
  open_ = model.built().open();
  samples_ = first_.samples;
  direct_ = iterator_.running().upcoming() >= 0 && (labels || dataset.element_spec().size() == inputs);
}

// Samples of another shape than in the batch before: the input must leave that open; labels go with the inputs, and
// whether they suit the model's outputs is seen when its program is made.
bool Stream::may_change(size_t i, const Shape& rows) {
  const size_t inputs = inputs_.size();
  if (!open_) return false;
  if (i < inputs) {
    const std::optional<Shape> shape = nn::fitted(inputs_[i], rows);
    if (!shape) return false;
    first_.shapes.x[i] = *shape;
  } else if (rows.rank() == rows_[i].rank()) {
    first_.shapes.y[i - inputs] = rows;
  } else {
    return false;
  }
  rows_[i] = rows;
  return true;
}

void Stream::check_like_first(const Element& e) {
  const size_t n = rows_.size();
  if (e.size() < n)
    throw Error(Code::kShape,
                format("{}: batch {} has {} tensors, the first one had {}", what_, batches_, e.size(), n));
  for (size_t i = 0; i < n; ++i) {
    if (e[i].shape().rank() == 0 || (e[i].shape().without(0) != rows_[i] && !may_change(i, e[i].shape().without(0))))
      throw Error(Code::kShape,
                  format("{}: tensor {} of batch {} has the shape {}, but samples of the first one have {}", what_, i,
                         batches_, e[i].shape(), rows_[i]));
    if (e[i].shape()[0] != e[0].shape()[0])
      throw Error(Code::kShape, format("{}: tensor 0 of batch {} has {} samples, but tensor {} has {}", what_, batches_,
                                       e[0].shape()[0], i, e[i].shape()[0]));
  }
}

int64_t Stream::advance() {
  if (!element_.empty()) return samples_;  // the first
  if (direct_) return samples_ = iterator_.running().upcoming();
  do {
    if (!iterator_.next(element_)) return samples_ = 0;
    check_like_first(element_);
    samples_ = element_[0].shape()[0];
    if (samples_ == 0) element_.clear();  // an empty batch teaches nothing
  } while (samples_ == 0);
  return samples_;
}

bool Stream::fits_directly(const Ready& ready) const {
  for (size_t i = 0; i < ready.lanes.size(); ++i)
    if (ready.lanes[i].to_type != types_[i] || ready.lanes[i].limit) return false;
  return true;
}

void Stream::stage(Team& team, Ready& r, bool check_inputs) {
  const Rows rows{nullptr, 0, samples_};
  Refusal bad;
  r.program.open();
  if (element_.empty() && direct_ && fits_directly(r)) {
    std::byte* to[data::kMostTensors];
    for (size_t i = 0; i < r.lanes.size(); ++i) to[i] = r.lanes[i].to;
    iterator_.running().fill({to, r.lanes.size()}, samples_);
    for (size_t i = 0; i < r.lanes.size() && check_inputs; ++i) {
      r.lanes[i].from = r.lanes[i].to;
      r.lanes[i].from_type = r.lanes[i].to_type;
      r.lanes[i].check = is_floating(types_[i]) ? Check::kFinite : Check::kNone;
      const int64_t width = r.lanes[i].width;
      for (int64_t k = 0; k < samples_ && !bad; ++k)
        if (!all_finite(r.lanes[i].to + k * width * size_of(types_[i]).value, types_[i], width)) bad = {int(i), k};
    }
  } else {
    if (element_.empty()) {
      iterator_.next(element_);
      check_like_first(element_);
    }
    for (size_t i = 0; i < r.lanes.size(); ++i) {
      Lane& lane = r.lanes[i];
      lane.from = element_[i].data();
      lane.from_type = element_[i].dtype();
      lane.check = lane.limit                                    ? Check::kBelow
                   : check_inputs && is_floating(lane.from_type) ? Check::kFinite
                                                                 : Check::kNone;
    }
    bad = backend::stage(team, r.lanes, rows);
  }
  if (bad) {
    Data data{{}, {}, samples_, first_.shapes};
    for (size_t i = 0; i < r.lanes.size(); ++i) {
      const Lane& lane = r.lanes[i];
      (i < first_.x.size() ? data.x : data.y)
          .push_back(Tensor::view(const_cast<std::byte*>(lane.from), lane.from_type, rows_[i].with_front(samples_)));
    }
    try {
      refuse(r, data, rows, bad);
    } catch (Error& e) {
      e.add("batch", std::to_string(batches_));
      throw;
    }
  }
  element_.clear();  // its buffers are free for the next one while the step runs
  ++batches_;
}

void Stream::rewind(int64_t epoch) {
  element_.clear();
  batches_ = 0;
  iterator_.rewind(epoch);
  iterator_.warm();
}

}  // namespace millpond::train
