// How attention and its gradient are cut: a head is `tiles` tiles of `queries` queries (a multiple of 16, the last may
// be short) against tiles of `keys` keys.
#pragma once
#include "backend/cpu/attention_kernels.h"
#include "backend/cpu/gemm.h"
#include "backend/cpu/rows.h"

namespace millpond::backend::cpu {

struct AttentionGrid {
  int64_t heads = 0, length = 0, width = 0;
  int64_t tiles = 1, queries = 16, keys = 64, last_keys = 0, last_queries = 0;
  bool causal = false;

  AttentionGrid(const Shape& q, bool c) : heads(q[0] * q[1]), length(q[2]), width(q[3]), causal(c) {
    tiles = ceil_div(length, 64);
    queries = round_up(ceil_div(length, tiles), 16);
    tiles = ceil_div(length, queries);
    last_queries = length - (tiles - 1) * queries;
    keys = std::min<int64_t>(length, 64);
    last_keys = length % keys ? length % keys : keys;
  }
  int64_t key_tiles() const { return ceil_div(length, keys); }
  int64_t keys_of(int64_t tile) const { return tile == key_tiles() - 1 ? last_keys : keys; }
  int64_t queries_of(int64_t tile) const { return tile == tiles - 1 ? last_queries : queries; }
  /// Key tiles that query tile `t` sees.
  int64_t seen(int64_t t) const { return causal ? ceil_div(t * queries + queries_of(t), keys) : key_tiles(); }
  ScoreTile scores(int64_t query_tile, int64_t key_tile) const {
    return {keys_of(key_tile), queries, key_tile * keys, query_tile * queries, causal};
  }
  /// Nanoseconds of one product [queries, keys, width] for all tiles of a head: 100 GFLOP/s.
  double head_time() const { return 0.02 * double(length) * double(length) * double(width) * (causal ? 0.5 : 1.0); }
};

}  // namespace millpond::backend::cpu
