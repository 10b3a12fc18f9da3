// npy: NumPy's .npy files, versions 1 to 3. Little endian float16/32/64, int32/64, uint8 and bool, C order.
//
//   "\x93NUMPY" major minor | header length (2 bytes, from version 2 on 4) | {'descr': '<f4', 'fortran_order': False,
//   'shape': (3, 4), }  blanks \n | the values
//
// Memory: map_npy costs address space; its pages belong to the file and the system may take them back. read_npy costs
// the size of the values. The header is read through a buffer of at most 64 KiB; nothing is allocated before the file's
// size has been found to be exactly what the header says. A file that lies is refused: Error(kFormat) with file,
// position, what was expected and what was found; a type or order we do not read: Error(kUnsupported) with the NumPy
// line that cures it.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "io/atomic_file.h"
#include "millpond/npy.h"

namespace millpond::io {

struct NpyHeader {
  DType dtype = DType::kFloat32;
  Shape shape;
  Bytes data_at;  // where in the file the values begin
};

/// `start`: the first bytes of the file, all of the header among them (64 KiB are always enough). `name` is for errors.
NpyHeader parse_npy_header(std::span<const std::byte> start, Bytes file_size, const std::string& name);

using millpond::map_npy, millpond::read_npy, millpond::write_npy;

/// write_npy for rows that come bit by bit, their number known at the end only. Without close() there is no file. Holds
/// nothing but a descriptor.
class NpyWriter {
 public:
  NpyWriter(const std::string& file, DType dtype, const Shape& row);
  /// Whole rows.
  void append(std::span<const std::byte> rows);
  int64_t rows() const { return rows_; }
  void close();

 private:
  std::string header() const;
  std::string name_;
  DType dtype_;
  Shape row_;
  int64_t rows_ = 0, row_bytes_ = 0;
  AtomicFile out_;
};

}  // namespace millpond::io
