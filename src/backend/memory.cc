#include "backend/memory.h"

#include "backend/backend.h"
#include "base/assert.h"

namespace millpond::backend {

Memory Memory::part(Bytes from, Bytes size) const {
  MP_ASSERT(from.value >= 0 && size.value >= 0 && from + size <= size_);
  Memory m = *this;
  m.at_ += from.value;
  m.size_ = size;
  return m;
}

std::byte* Memory::host() const { return at_ && backend_->on_host() ? at_ : nullptr; }

void Memory::write(const void* from) const {
  if (size_.value > 0) backend_->write(at_, from, size_);
}
void Memory::read(void* to) const {
  if (size_.value > 0) backend_->read(to, at_, size_);
}
void Memory::zero() const {
  if (size_.value > 0) backend_->zero(at_, size_);
}

}  // namespace millpond::backend
