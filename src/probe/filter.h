// Which addresses can be those of sampled blocks that are alive: asked at every free of the program, so nearly always
// answered by one look into 8 KiB that stay in the nearest cache.
//
//   near: a bit of 49,152: the word by the page, the bit by the place in it. A program frees blocks that lie together,
//         so it looks into few words. With some thousand blocks alive the bit is set for one address in eight. That
//         matters more than the look: a filter that is half full is guessed wrongly by the processor every other time.
//   far:  a counter by a hash of the address, where the bit is set.
//
// The words of `near` have 48 bits of the filter; the 16 above them count how often one of these was set.
// Memory: 8 KiB for the bits, 48 KiB for what each stands for, 64 KiB for the counters.
#pragma once
#include <stddef.h>
#include <stdint.h>

namespace millpond::probe::live {

inline constexpr size_t kNear = 1 << 10, kBits = 48, kFar = 1 << 16;
extern uint64_t near[kNear];
extern uint8_t far[kFar];

inline uint64_t hash(const void* p) { return (uint64_t(p) >> 4) * 0x9e3779b97f4a7c15u; }
inline size_t home_of(const void* p) { return hash(p) >> 48; }  // of 65,536
inline size_t word_of(const void* p) { return uint64_t(p) >> 12 & (kNear - 1); }
inline size_t bit_of(const void* p) { return (uint64_t(p) >> 4 & 255) * kBits >> 8; }
inline uint64_t& near_of(const void* p) { return near[word_of(p)]; }
inline uint64_t near_bit(const void* p) { return uint64_t{1} << bit_of(p); }
inline uint8_t& far_of(uint64_t hash) { return far[(hash >> 32) & 0xffff]; }

// Whether p can be in the table, or is a block of early start-up; never false for those.
inline bool may_hold(const void* p) {
  return __builtin_expect((__atomic_load_n(&near_of(p), __ATOMIC_RELAXED) & near_bit(p)) != 0, 0) &&
         __atomic_load_n(&far_of(hash(p)), __ATOMIC_RELAXED) != 0;
}
void mark(const void* p);   // may_hold(p) is true from now on, for good
void enter(const void* p);  // until as many have left
void leave(const void* p);
void forget_filter();  // in a child

}  // namespace millpond::probe::live
