// How work is cut: enough blocks for threads to share it evenly, few enough that claiming one costs nothing. The cut
// depends on the work alone, never on the number of threads, so that sums repeat bit for bit.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

namespace millpond::backend::cpu {

inline constexpr double kBlockTime = 20e3;  // nanoseconds
inline constexpr int kMaxBlocks = 128;

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

/// Parts of one size, a multiple of `unit` and about `most` at most, into which n falls evenly; the last may be
/// smaller.
constexpr int64_t even(int64_t n, int64_t most, int64_t unit) {
  return std::min(n, round_up(ceil_div(n, ceil_div(n, most)), unit));
}
/// The size of the last of n's parts of `size`.
constexpr int64_t last_part(int64_t n, int64_t size) { return n - (ceil_div(n, size) - 1) * size; }

/// `count` things of `each` nanoseconds in runs of `size` things; a run is a multiple of `unit`.
struct Runs {
  int64_t count = 0, size = 1;
  int blocks = 1;
  Runs() = default;
  Runs(int64_t n, double each, int64_t unit = 1, int most = kMaxBlocks) : count(n) {
    const int64_t wanted = std::clamp<int64_t>(int64_t(double(n) * each / kBlockTime), 1, most);
    size = std::max<int64_t>(unit, round_up(ceil_div(std::max<int64_t>(n, 1), wanted), unit));
    blocks = int(std::max<int64_t>(1, ceil_div(n, size)));
  }
  int64_t begin(int block) const { return block * size; }
  int64_t end(int block) const { return std::min(count, (block + 1) * size); }
};

/// `count` things in pieces of one size (the last may be smaller), and the pieces in blocks of nearly the same number:
/// for work that is a few microseconds a piece, where two threads that each take half of the blocks must have half of
/// the work.
struct Pieces {
  int64_t count = 0, size = 1;
  int pieces = 1, blocks = 1;
  Pieces() = default;
  /// `time` of all together, in nanoseconds. A piece is at most `most` things and a multiple of `unit`.
  Pieces(int64_t n, int64_t most, int64_t unit, double time) : count(n) {
    int64_t wanted = ceil_div(std::max<int64_t>(n, 1), most);
    if (time > 12e3) wanted = round_up(wanted, 4);  // halves, and halves of those
    size = std::max(unit, round_up(ceil_div(std::max<int64_t>(n, 1), wanted), unit));
    pieces = int(std::max<int64_t>(1, ceil_div(n, size)));
    const int64_t enough = time > 12e3 ? round_up(std::max<int64_t>(1, int64_t(time / kBlockTime)), 4) : 1;
    blocks = int(std::min<int64_t>({pieces, enough, kMaxBlocks}));
  }
  int first(int block) const {
    return int(int64_t(pieces) * block / blocks);
  }  // pieces [first(b), first(b + 1)) are block b's
  int64_t begin(int piece) const { return piece * size; }
  int64_t end(int piece) const { return std::min(count, (piece + 1) * size); }
};

/// How many threads come with scratch of their own: all, or one where no phase is shared.
inline int members(std::span<const int> phases, int threads) { return std::ranges::max(phases) > 1 ? threads : 1; }

constexpr int64_t aligned(int64_t bytes) { return round_up(bytes, 64); }

}  // namespace millpond::backend::cpu
