#include "data/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <new>
#include <set>

#include "base/assert.h"
#include "base/format.h"

namespace millpond::data {
namespace {

constexpr int64_t kLarge =
    128 << 10;  // from here on a block is a mapping of its own, which goes back to the system whole
constexpr int64_t kHeader = 128;

// Classes: multiples of 64 up to 512, then eight steps for each doubling.
int class_of(int64_t size) {
  const int64_t n = std::max<int64_t>(size, 1);
  if (n <= 512) return int((n + 63) / 64 - 1);
  const int log = 63 - std::countl_zero(uint64_t(n - 1));  // 2^log <= n - 1 < 2^(log + 1)
  const int64_t step = int64_t{1} << (log - 3);
  return 8 + (log - 9) * 8 + int((n - 1 - (int64_t{1} << log)) / step);
}
int64_t size_of_class(int index) {
  if (index < 8) return 64 * (index + 1);
  const int log = 9 + (index - 8) / 8;
  return (int64_t{1} << log) + ((index - 8) % 8 + 1) * (int64_t{1} << (log - 3));
}
// In all, with header; large ones are whole pages.
int64_t whole_of(int index) {
  const int64_t whole = size_of_class(index) + kHeader;
  return whole >= kLarge ? (whole + 4095) / 4096 * 4096 : whole;
}

std::mutex all_lock;
std::set<Pool*> all_pools;

}  // namespace

struct alignas(64) Pool::Block {
  std::shared_ptr<Pool> pool;                 // while it is in use
  Block* next = nullptr;                      // in its class, while it waits
  Block *before = nullptr, *after = nullptr;  // among the large ones
  std::atomic<Stage*> stage{nullptr};
  int64_t whole = 0;
  int index = 0;
  alignas(16) std::byte record[56];  // shared_ptr's
  std::byte* values() { return reinterpret_cast<std::byte*>(this) + kHeader; }
};

struct Pool::Deleter {
  Block* block;
  void operator()(std::byte*) const {}  // the block goes back when its record does, which is later
};
template <class T>
struct Pool::Allocator {
  using value_type = T;
  Block* block;
  explicit Allocator(Block* b) : block(b) {}
  template <class U>
  Allocator(const Allocator<U>& o) : block(o.block) {}
  T* allocate(size_t n) {
    static_assert(sizeof(T) <= sizeof(Block::record));
    MP_ASSERT(n == 1);
    return reinterpret_cast<T*>(block->record);
  }
  void deallocate(T*, size_t) {
    const std::shared_ptr<Pool> pool = std::move(block->pool);
    pool->give(block);
  }
  template <class U>
  bool operator==(const Allocator<U>& o) const {
    return block == o.block;
  }
};

Pool::Block* block_of(const std::shared_ptr<void>& owner) {
  const auto* d = owner ? std::get_deleter<Pool::Deleter>(owner) : nullptr;
  return d ? d->block : nullptr;
}

Pool::Pool(Bytes limit) : limit_(limit), spare_("pipeline/spare", Bytes{0}) {}
std::shared_ptr<Pool> Pool::make(Bytes limit) {
  static_assert(sizeof(Block) == kHeader);
  std::shared_ptr<Pool> p(new Pool(limit));
  const std::lock_guard lock(all_lock);
  all_pools.insert(p.get());
  return p;
}
Pool::~Pool() {
  {
    const std::lock_guard lock(all_lock);
    all_pools.erase(this);
  }
  for (Block* b : free_)
    while (b) {
      Block* const next = b->next;
      destroy(b);
      b = next;
    }
}

Stage& Pool::add_stage(std::string name, std::string text) {
  const std::lock_guard lock(lock_);
  return stages_.emplace_back(std::move(name), std::move(text));
}

std::vector<const Stage*> Pool::stages() const {
  const std::lock_guard lock(lock_);
  std::vector<const Stage*> all;
  for (const Stage& s : stages_) all.push_back(&s);
  return all;
}

Bytes Pool::cost(Bytes size) { return Bytes{whole_of(class_of(size.value))}; }

Pool::Block* Pool::create(int index, Bytes whole) {
  void* memory = nullptr;
  if (whole.value >= kLarge) {
    memory = mmap(nullptr, size_t(whole.value), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    madvise(memory, size_t(whole.value),
            MADV_NOHUGEPAGE);  // a huge page could reach beyond what is written, and be resident for nothing
  } else {
    memory = ::operator new(size_t(whole.value), std::align_val_t{64});
  }
  Block* b = new (memory) Block;
  b->whole = whole.value;
  b->index = index;
  return b;
}
void Pool::destroy(Block* b) {
  const int64_t whole = b->whole;
  b->~Block();
  if (whole >= kLarge)
    munmap(b, size_t(whole));
  else
    ::operator delete(static_cast<void*>(b), std::align_val_t{64});
}

// Lets waiting blocks go, largest class first, until `wanted` more fit.
bool Pool::trim(Bytes wanted) {
  for (int c = kClasses - 1; c >= 0 && total_.load(std::memory_order_relaxed) + wanted.value > limit_.value; --c)
    while (free_[size_t(c)] && total_.load(std::memory_order_relaxed) + wanted.value > limit_.value) {
      Block* const b = free_[size_t(c)];
      free_[size_t(c)] = b->next;
      if (b->before) b->before->after = b->after;
      if (b->after) b->after->before = b->before;
      if (large_ == b) large_ = b->after;
      total_ -= b->whole;
      spare_.add(Bytes{-b->whole});
      destroy(b);
    }
  return total_.load(std::memory_order_relaxed) + wanted.value <= limit_.value;
}

void Pool::refuse(Bytes size, const Stage& stage) {
  Error e(Code::kMemory, format("the data pipeline's budget of {} is too small: {} asks for {} more, but {} is in use",
                                limit_, stage.name, size, Bytes{in_use_.load()}));
  for (const Stage& s : stages_)
    if (s.held().value > 0)
      e.add(s.name, format("holds {}{}", s.held(), s.bound.value ? format(" of at most {}", s.bound) : ""));
  throw std::move(e).hint(
      format("give it more, for example with_options({{.budget = {}_MiB}}), make batches smaller, or let go of "
             "elements that were taken out of it",
             std::max<int64_t>(1, (in_use_.load() + 2 * size.value) >> 20) + 1));
}

std::shared_ptr<std::byte> Pool::take(Bytes size, Stage& stage) {
  const int index = class_of(size.value);
  MP_ASSERT(index < kClasses);
  const Bytes whole{whole_of(index)};
  Block* b = nullptr;
  {
    std::unique_lock lock(lock_);
    for (;;) {
      b = free_[size_t(index)];
      if (b) {
        free_[size_t(index)] = b->next;
        spare_.add(Bytes{-b->whole});
        in_use_ += b->whole;
        break;
      }
      if (trim(whole)) {
        total_ += whole.value;
        in_use_ += whole.value;
        peak_ = std::max(peak_.load(), total_.load());
        break;
      }
      if (this_waiter && this_waiter->stopping()) throw Stopped{};
      if (!this_waiter || this_waiter->urgent()) refuse(whole, stage);
      ++waiting_;
      given_.wait_for(lock, std::chrono::milliseconds(20));
      --waiting_;
    }
  }
  if (!b) {
    try {
      b = create(index, whole);
    } catch (...) {
      const std::lock_guard lock(lock_);
      total_ -= whole.value;
      in_use_ -= whole.value;
      throw;
    }
    if (whole.value >= kLarge) {
      const std::lock_guard lock(lock_);
      b->after = large_;
      if (large_) large_->before = b;
      large_ = b;
    }
  }
  b->pool = shared_from_this();
  b->stage.store(&stage, std::memory_order_relaxed);
  stage.change(Bytes{b->whole});
  return std::shared_ptr<std::byte>(b->values(), Deleter{b}, Allocator<std::byte>(b));
}

void Pool::give(Block* b) {
  b->stage.exchange(nullptr, std::memory_order_relaxed)->change(Bytes{-b->whole});
  bool wake = false;
  {
    const std::lock_guard lock(lock_);
    b->next = free_[size_t(b->index)];
    free_[size_t(b->index)] = b;
    in_use_ -= b->whole;
    spare_.add(Bytes{b->whole});
    wake = waiting_ > 0;
  }
  if (wake) given_.notify_all();
}

Tensor Pool::tensor(DType dtype, const Shape& shape, Stage& stage) {
  int64_t size = 0;
  if (__builtin_mul_overflow(shape.size(), size_of(dtype).value, &size))
    throw Error(Code::kShape, format("a tensor of shape {} and type {} has more than 2^63 bytes", shape, dtype));
  std::shared_ptr<std::byte> memory = take(Bytes{size}, stage);
  std::byte* const at = memory.get();
  return Tensor::view(at, dtype, shape, std::move(memory));
}

void Pool::count(Bytes by, Stage& stage) {
  stage.change(by);
  bool wake = false;
  {
    const std::lock_guard lock(lock_);
    if (by.value > 0) trim(by);
    total_ += by.value;
    in_use_ += by.value;
    peak_ = std::max(peak_.load(), total_.load());
    wake = by.value < 0 && waiting_ > 0;
  }
  if (wake) given_.notify_all();
}

void Pool::poke() { given_.notify_all(); }

void Pool::each_range(const std::function<void(const std::string&, const void*, Bytes)>& f) const {
  const std::lock_guard lock(lock_);
  for (Block* b = large_; b; b = b->after) {
    const Stage* s = b->stage.load(std::memory_order_relaxed);  // none: it waits
    f(s ? s->holding.account() : spare_.account(), b, Bytes{b->whole});
  }
}

void hand_over(Element& e, Stage& to) {
  for (const Tensor& t : e)
    if (Pool::Block* b = block_of(t.owner())) {
      Stage* from = b->stage.load(std::memory_order_relaxed);
      while (from != &to && !from->keeps && !b->stage.compare_exchange_weak(from, &to, std::memory_order_relaxed)) {
      }
      if (from == &to || from->keeps) continue;
      from->change(Bytes{-b->whole});
      to.change(Bytes{b->whole});
    }
}

void keep_apart(Element& e, Pool& pool, Stage& stage) {
  for (Tensor& t : e) {
    const Pool::Block* b = block_of(t.owner());
    if (!b || b->whole <= Pool::cost(t.bytes()).value) continue;
    Tensor own = pool.tensor(t.dtype(), t.shape(), stage);
    if (t.bytes().value) std::memcpy(own.data(), t.data(), size_t(t.bytes().value));
    t = std::move(own);
  }
}

Bytes overhead(const Element& e) { return Bytes{int64_t(sizeof(Element) + e.size() * sizeof(Tensor) + 16)}; }

void each_pipeline_range(const std::function<void(const std::string&, const void*, Bytes)>& f) {
  const std::lock_guard lock(all_lock);
  for (const Pool* p : all_pools) p->each_range(f);
}

}  // namespace millpond::data
