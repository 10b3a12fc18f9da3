#include "eager/live.h"

#include <mutex>
#include <vector>

#include "base/assert.h"
#include "eager/context.h"

namespace millpond::eager {

namespace {

class LiveValue final : public runtime::Variable::Reader {
 public:
  LiveValue(const runtime::Variable& variable, const nn::Weight& weight)
      : variable_(variable), weight_(weight), trainable_(weight && weight->trainable), id_(next_id()) {}

  Ref read() {
    const std::lock_guard lock(Context::get().mutex);
    if (!now_) {
      now_ = std::make_shared<TensorImpl>(variable_.type(), id_);
      now_->memory = variable_.memory();
      now_->at = now_->memory.address();
      now_->variable = weight_;
      now_->trainable = trainable_;
    }
    if (now_.use_count() == 1) runtime::Variable::count_read();
    return now_;
  }

  void before_change() override {
    Context& c = Context::get();
    const std::lock_guard lock(c.mutex);
    if (!now_ || now_.use_count() == 1) return;
    const Bytes size = now_->type.bytes();
    now_->block = c.pool.take(size);
    if (c.backend.on_host()) {
      c.backend.write(now_->block.at, now_->at, size);
    } else {
      std::vector<std::byte> host(size_t(size.value));
      c.backend.read(host.data(), now_->at, size);
      c.backend.write(now_->block.at, host.data(), size);
    }
    now_->at = now_->block.at;
    now_->memory = {};
    now_.reset();
  }

 private:
  const runtime::Variable& variable_;
  std::weak_ptr<nn::WeightState> weight_;
  bool trainable_;
  uint64_t id_;
  Ref now_;
};

}  // namespace

Ref live(const nn::Weight& weight) {
  runtime::Variable& v = weight->variable;
  MP_ASSERT(v.placed());
  {
    const std::lock_guard lock(Context::get().mutex);
    if (!v.reader()) v.set_reader(std::make_unique<LiveValue>(v, weight));
  }
  return static_cast<LiveValue*>(v.reader())->read();
}

Ref live(runtime::Variable& v) {
  {
    const std::lock_guard lock(Context::get().mutex);
    if (!v.reader()) v.set_reader(std::make_unique<LiveValue>(v, nullptr));
  }
  return static_cast<LiveValue*>(v.reader())->read();
}

}  // namespace millpond::eager
