// A dataset of an HDF5 file: what it is, and its values. All that its header claims is checked against the file before
// a value is read: the bytes of the values are in the file (gzip: could come from bytes that are), every chunk is
// there. Memory: reading contiguous values costs nothing beside their destination; chunked ones one chunk, and one more
// as stored.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "io/h5_object.h"
#include "millpond/dtype.h"
#include "millpond/shape.h"

namespace millpond::io::h5 {

struct Dataset {
  DType dtype = DType::kFloat32;  // as a Tensor holds it
  Shape shape;
  uint64_t stored = 0;  // bytes of it in the file
  // How it lies there.
  enum Layout { kNothing, kContiguous, kCompact, kChunked } layout = kNothing;
  int element = 0;                // bytes of one value
  uint64_t address = kNowhere;    // of the values, or of the B-tree of chunks
  std::vector<uint32_t> chunk;    // its dimensions
  std::vector<uint16_t> filters;  // in the order they were applied
};

/// Reads the header's messages. Throws Error(kFormat) with the reason when the dataset is not one we read.
Dataset describe(Source& source, const std::vector<Message>& messages);

/// All values, in row-major order, to `to`, which has room for shape.size() values of dtype.
void read_values(Source& source, const Dataset& dataset, std::byte* to);

}  // namespace millpond::io::h5
