#include "eager/pool.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace millpond::eager {

namespace {
constexpr Bytes kLeast{64};
constexpr Bytes kChunk{64 << 10};
constexpr uint64_t kLook = 1024;        // takings between two looks at what is idle
constexpr uint64_t kForgotten = 16384;  // takings after which an idle chunk goes
}  // namespace

struct Pool::Chunk {
  backend::Memory memory;
  int number = 0;             // of its class
  Bytes block;                // size of each
  std::vector<int32_t> free;  // numbers; the one given back last stands last
  int32_t count = 0;          // blocks in it
  bool listed = false;        // among those with room
  uint64_t emptied = 0;       // when its last block came back
  bool empty() const { return int32_t(free.size()) == count; }
};

Pool::Pool(const backend::Backend& backend, Bytes bound) : backend_(backend), bound_(bound) {}
Pool::~Pool() = default;

// Below 256 bytes multiples of 64; above, four sizes to each doubling: 256, 320, 384, 448, 512, 640, ...
int Pool::class_of(Bytes size) {
  const uint64_t n = uint64_t(std::max(size, kLeast).value);
  if (n <= 256) return int((n + 63) / 64) - 1;
  const int log = int(std::bit_width(n - 1)) - 1;  // 2^log < n <= 2^(log + 1)
  const uint64_t quarter = uint64_t{1} << (log - 2);
  return 4 * (log - 8) + int((n - (uint64_t{1} << log) + quarter - 1) / quarter) + 3;
}
Bytes Pool::size_of_class(int number) {
  if (number < 4) return Bytes{64 * (number + 1)};
  const int log = (number - 4) / 4 + 8, step = (number - 4) % 4 + 1;
  return Bytes{(int64_t{1} << log) + step * (int64_t{1} << (log - 2))};
}

Pool::Chunk& Pool::grow(int number) {
  auto made = std::make_unique<Chunk>();
  made->number = number;
  made->block = size_of_class(number);
  made->count = int32_t(std::max<int64_t>(1, kChunk.value / made->block.value));
  if (made->block * 4 > kChunk) made->count = 1;
  made->memory = backend_.take(made->block * made->count, "eager/pool");
  made->free.reserve(size_t(made->count));
  for (int32_t i = made->count; i-- > 0;) made->free.push_back(i);
  taken_ += made->memory.size();
  empty_ += made->memory.size();
  Class& c = classes_[size_t(number)];
  made->listed = true;
  c.with_room.push_back(made.get());
  c.chunks.push_back(std::move(made));
  return *c.chunks.back();
}

Pool::Block Pool::take(Bytes size) {
  const int number = class_of(size);
  MP_CHECK(number < kClasses);
  const std::lock_guard lock(mutex_);
  if (++clock_ % kLook == 0) age();
  Class& c = classes_[size_t(number)];
  Chunk& chunk = c.with_room.empty() ? grow(number) : *c.with_room.back();
  if (chunk.empty()) empty_ -= chunk.memory.size();
  const int32_t i = chunk.free.back();
  chunk.free.pop_back();
  if (chunk.free.empty()) c.with_room.pop_back(), chunk.listed = false;
  used_ += chunk.block;
  return {chunk.memory.address() + (chunk.block * i).value, &chunk, i};
}

void Pool::give(const Block& block) {
  if (!block.chunk) return;
  const std::lock_guard lock(mutex_);
  Chunk& chunk = *block.chunk;
  chunk.free.push_back(block.number);
  used_ -= chunk.block;
  Class& c = classes_[size_t(chunk.number)];
  if (!chunk.listed) c.with_room.push_back(&chunk), chunk.listed = true;
  if (!chunk.empty()) return;
  chunk.emptied = clock_;
  empty_ += chunk.memory.size();
  if (empty_ > bound_) drop(chunk);
}

// Of an empty chunk.
void Pool::drop(Chunk& chunk) {
  Class& c = classes_[size_t(chunk.number)];
  empty_ -= chunk.memory.size();
  taken_ -= chunk.memory.size();
  std::erase(c.with_room, &chunk);
  std::erase_if(c.chunks, [&](const auto& owned) { return owned.get() == &chunk; });
}

void Pool::age() {
  std::vector<Chunk*> old;
  for (Class& c : classes_)
    for (Chunk* chunk : c.with_room)
      if (chunk->empty() && clock_ - chunk->emptied > kForgotten) old.push_back(chunk);
  for (Chunk* chunk : old) drop(*chunk);
}

Bytes Pool::trim() {
  const std::lock_guard lock(mutex_);
  const Bytes before = taken_;
  std::vector<Chunk*> idle;
  for (Class& c : classes_)
    for (Chunk* chunk : c.with_room)
      if (chunk->empty()) idle.push_back(chunk);
  for (Chunk* chunk : idle) drop(*chunk);
  return before - taken_;
}

void Pool::set_bound(Bytes bound) {
  {
    const std::lock_guard lock(mutex_);
    bound_ = bound;
    if (empty_ <= bound) return;
  }
  trim();
}

Bytes Pool::used() const {
  const std::lock_guard lock(mutex_);
  return used_;
}
Bytes Pool::idle() const {
  const std::lock_guard lock(mutex_);
  return taken_ - used_;
}
Bytes Pool::bound() const {
  const std::lock_guard lock(mutex_);
  return bound_;
}

}  // namespace millpond::eager
