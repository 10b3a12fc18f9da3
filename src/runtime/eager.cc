#include "runtime/eager.h"

#include <algorithm>

#include "base/assert.h"
#include "base/format.h"

namespace millpond::runtime {

Eager::Entry& Eager::find(const std::shared_ptr<const graph::Operator>& op, std::span<const graph::TensorType> inputs) {
  graph::Key key;
  op->identify(key);
  for (const graph::TensorType& t : inputs) key.add(t);
  const auto found = entries_.find(key);
  Entry& e = found != entries_.end() ? found->second : make(key, op, inputs);
  MP_CHECK(e.op->name() == op->name() && e.op->attributes() == op->attributes());
  e.used = ++clock_;
  return e;
}

Eager::Entry& Eager::make(const graph::Key& key, const std::shared_ptr<const graph::Operator>& op,
                          std::span<const graph::TensorType> inputs) {
  if (!op->bodies().empty())
    throw Error(Code::kUnsupported, format("{} runs graphs and has no kernel of its own", op->name()))
        .hint("run it in a program (runtime/program.h)");
  Entry e;
  e.op = op;
  backend::Request request;
  request.inputs.assign(inputs.begin(), inputs.end());
  request.outputs = e.outputs = op->infer(inputs);
  request.threads = threads_;
  e.kernel = backend_.make(*op, request);
  if (e.kernel->workspace().value > 0) e.scratch = backend_.take(e.kernel->workspace(), "eager/scratch");
  backend::Script script;
  script.threads = threads_;
  const int count = int(inputs.size() + e.outputs.size());
  script.operands.resize(size_t(count));
  for (int i = 0; i < count; ++i) script.handed.push_back({i, i});
  script.calls.push_back(
      {e.kernel.get(), {script.operands.data(), script.operands.data() + inputs.size(), e.scratch.address()}});
  e.executor = backend_.prepare(std::move(script));
  constexpr int64_t kLists = 512;  // of the executor and of a kernel without tables
  e.bytes = e.scratch.size() + e.kernel->held() + key.bytes() +
            Bytes{kLists + int64_t(sizeof(Entry) + (inputs.size() + e.outputs.size()) * 2 * sizeof(graph::TensorType))};
  e.used = ++clock_;
  bytes_ += e.bytes;
  ++made_;
  Entry& placed = entries_.emplace(key, std::move(e)).first->second;
  make_room(&placed);
  return placed;
}

// Kernels are rarely made and seldom too many: a look at all of them is cheaper than a list that every call would keep
// in order.
void Eager::make_room(const Entry* but) {
  while (bytes_ > most_ && entries_.size() > (but ? 1 : 0)) {
    auto oldest = entries_.end();
    for (auto it = entries_.begin(); it != entries_.end(); ++it)
      if (&it->second != but && (oldest == entries_.end() || it->second.used < oldest->second.used)) oldest = it;
    bytes_ -= oldest->second.bytes;
    entries_.erase(oldest);
  }
}

}  // namespace millpond::runtime
