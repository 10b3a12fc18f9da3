// ChannelGrid: [..., channels] cut into blocks of rows, and of channels where rows are few: the blocks of batch
// normalisation.
#pragma once
#include "backend/cpu/folded.h"
#include "backend/cpu/rows.h"

namespace millpond::backend::cpu {

struct ChannelGrid {
  int64_t channels = 0, fold = 1;
  Runs rows, cols;

  /// `each`: nanoseconds for an element in the cheapest phase.
  ChannelGrid(Matrix x, double each) : channels(x.cols), fold(best_fold(x.rows, x.cols)) {
    const int64_t wanted = std::clamp<int64_t>(int64_t(double(x.rows * x.cols) * each / kBlockTime), 1, kMaxBlocks);
    const int64_t tall = std::clamp<int64_t>(x.rows / 16, 1, wanted);  // rows enough to hide the sums of a block
    rows = Runs(x.rows, kBlockTime * double(tall) / double(x.rows), fold, int(tall));
    const int64_t wide = fold > 1 ? 1 : std::clamp<int64_t>(wanted / tall, 1, ceil_div(x.cols, 64));
    cols = Runs(x.cols, kBlockTime * double(wide) / double(x.cols), 64, int(wide));
  }
  int blocks() const { return rows.blocks * cols.blocks; }

  struct Block {
    int row_block;
    int64_t row, col;
    Folded panel;
    int64_t at;  // offset of its first element
  };
  Block block(int b) const {
    const int i = b / cols.blocks, j = b % cols.blocks;
    const int64_t r = rows.begin(i), c = cols.begin(j);
    return {i, r, c, {rows.end(i) - r, cols.end(j) - c, channels, fold}, r * channels + c};
  }
};

}  // namespace millpond::backend::cpu
