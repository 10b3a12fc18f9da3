// .npz: a zip archive of .npy arrays (numpy.savez, savez_compressed). Members that are stored are read at any row with
// pread, as a .npy file is; deflated ones are read in order.
// Memory: the list of members (names and shapes); an NpzStream of a deflated member holds zlib's state and window. All
// of a member's claims (sizes, offsets, header) are checked against the file before anything is taken for it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/formats/source.h"
#include "millpond/dtype.h"
#include "millpond/shape.h"

namespace millpond::data {

struct NpzMember {
  std::string name;  // "x" for the member x.npy
  DType dtype = DType::kFloat32;
  Shape shape;
  bool stored = false;                      // not deflated: rows can be read at random
  int64_t data_at = 0;                      // stored: where in the file the values begin
  int64_t header = 0;                       // bytes of the .npy header
  int64_t begin = 0, packed = 0, size = 0;  // of the member in the file; as it lies there; inflated
  uint32_t crc = 0;
  int64_t rows() const { return shape.rank() ? shape[0] : 1; }
  Bytes row_bytes() const;
};

class NpzFile {
 public:
  explicit NpzFile(SharedSource source);
  explicit NpzFile(const std::string& file) : NpzFile(open_file(file)) {}

  const std::vector<NpzMember>& members() const { return members_; }
  /// Throws Error(kValue) naming those there are.
  const NpzMember& member(std::string_view name) const;
  const SharedSource& source() const { return source_; }

  /// Rows [first, first + n) of a stored member; safe from any thread. Throws Error(kUnsupported) for a deflated one.
  void read_rows(const NpzMember& member, int64_t first, int64_t n, std::span<std::byte> to) const;

 private:
  SharedSource source_;
  std::vector<NpzMember> members_;
};

/// The rows of one member in order, whether stored or deflated; the archive's CRC is checked at the end.
class NpzStream {
 public:
  NpzStream(const NpzFile& file, std::string_view member);
  const NpzMember& member() const { return member_; }
  /// Up to `rows` rows; returns how many, 0 at the end.
  int64_t read(int64_t rows, std::span<std::byte> to);
  int64_t position() const { return row_; }  // the next row
  /// Stored: free. Deflated: inflates up to there. The CRC is not checked after a jump.
  void seek(int64_t row);
  Bytes memory() const { return stream_.memory(); }

 private:
  NpzMember member_;
  ByteStream stream_;
  int64_t row_ = 0;
  uint32_t crc_ = 0;
  bool whole_ = true;  // nothing was jumped over
};

}  // namespace millpond::data
