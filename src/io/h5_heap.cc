// Links of a large group since HDF5 1.8: a B-tree (version 2) of places in a "fractal heap", whose blocks double:
//
//    heap offset   0      s      2s ...  w*s    w*s+s        2*w*s    2*w*s+2s      s: size of the first block
//    row 0         | s    | s    |  ...  |                                          w: blocks in a row
//    row 1                               | s    | s    | ... |
//    row 2                                                   | 2s     | 2s   | ...
//
// From some row on the blocks are such tables themselves.
#include <bit>

#include "base/format.h"
#include "io/h5_object.h"

namespace millpond::io::h5 {

namespace {
int bytes_for(uint64_t most) { return (std::bit_width(most) + 7) / 8; }

class Heap {
 public:
  Heap(Source& source, uint64_t at) : source_(source) {
    Cursor c(source, at, 142, "heap of links");
    c.expect("FRHP");
    const uint8_t version = c.u8();
    c.need(version == 0, "a heap of version 0", version);
    id_size_ = c.u16();
    const uint16_t filters = c.u16();
    c.need(filters == 0, "a heap without filters", filters);
    c.skip(1);
    const uint32_t largest = c.u32();
    c.skip(8 * 12);  // statistics, and the places of free space and huge objects
    width_ = c.u16();
    first_ = c.u64();
    const uint64_t largest_direct = c.u64();
    const uint16_t bits = c.u16();
    c.skip(2);
    root_ = c.u64();
    rows_ = c.u16();
    const auto power = [](uint64_t v) { return std::has_single_bit(v) && v <= uint64_t{1} << 40; };
    if (!power(first_) || !power(largest_direct) || !power(width_) || largest_direct < first_ || bits == 0 ||
        bits > 64 || rows_ > 64)
      c.fail("a heap whose blocks double in size",
             format("width {}, blocks of {} to {}, {} bits, {} rows", width_, first_, largest_direct, bits, rows_));
    offset_size_ = (bits + 7) / 8;
    length_size_ =
        std::min((std::bit_width(largest_direct) - 1 + 7) / 8, (std::bit_width(uint64_t(largest)) - 1 + 7) / 8);
    direct_rows_ = unsigned(std::countr_zero(largest_direct) - std::countr_zero(first_)) + 2;
  }

  unsigned id_size() const { return id_size_; }

  Cursor object(Cursor id) {
    const uint8_t kind = id.u8();
    id.need((kind & 0x30) == 0, "a link of ordinary size", kind);
    const uint64_t offset = id.number(offset_size_), length = id.number(length_size_);
    uint64_t at = root_, begin = 0, size = first_;
    unsigned rows = rows_;
    while (rows > 0) {
      // Which row and column of this table: see the drawing.
      const uint64_t inside = offset - begin;
      const unsigned row = inside < width_ * first_ ? 0 : unsigned(std::bit_width(inside / (width_ * first_)));
      id.need(row < rows, format("a place among {} rows", rows), row);
      size = row == 0 ? first_ : first_ << (row - 1);
      const uint64_t row_begin = row == 0 ? 0 : (width_ * first_) << (row - 1), column = (inside - row_begin) / size;
      const uint64_t head = 13 + uint64_t(offset_size_);
      Cursor table(source_, at, 4, "heap of links");
      table.expect("FHIB");
      at = Cursor(source_, at + head + (row * width_ + column) * 8, 8, "heap of links").u64();
      begin += row_begin + column * size;
      const unsigned below =
          row < direct_rows_ ? 0 : unsigned(std::countr_zero(size) - std::countr_zero(first_ * width_)) + 1;
      id.need(below < rows, "a smaller table below", below);
      rows = below;
    }
    Cursor(source_, at, 4, "heap of links").expect("FHDB");
    const uint64_t inside = offset - begin;
    if (inside > size || length > size - inside)
      id.fail(format("a link inside its block of {} bytes", size), format("{} bytes at {}", length, inside));
    return {source_, at + inside, length, "link"};
  }

 private:
  Source& source_;
  unsigned id_size_ = 0, rows_ = 0, direct_rows_ = 0;
  uint64_t width_ = 0, first_ = 0, root_ = 0;
  int offset_size_ = 0, length_size_ = 0;
};

class Index {
 public:
  Index(Source& source, Heap& heap, std::vector<Link>& links) : source_(source), heap_(heap), links_(links) {}

  void read(uint64_t at) {
    Cursor c(source_, at, 38, "index of links");
    c.expect("BTHD");
    c.skip(1);
    const uint8_t type = c.u8();
    c.need(type == 5, "an index of names", type);
    const uint32_t node = c.u32();
    record_ = c.u16();
    const uint16_t depth = c.u16();
    c.skip(2);
    const uint64_t root = c.u64();
    const uint16_t records = c.u16();
    if (record_ != 4 + heap_.id_size() || depth > 16 || node < 10u + record_)
      c.fail("an index of links", format("records of {}, nodes of {}, {} levels", record_, node, depth));
    // How wide the counts beside a child are follows from how many records could lie below it.
    uint64_t most = (node - 10) / record_;
    leaf_count_ = bytes_for(most);
    below_count_.assign(1, 0);
    for (unsigned level = 1; level <= depth; ++level) {
      const uint64_t pointer = 8 + uint64_t(leaf_count_) + uint64_t(below_count_.back());
      c.need(node > 10 + pointer, "a node with room for a child", node);
      const uint64_t here = (node - 10 - pointer) / (record_ + pointer);
      if (most > (kNowhere >> 1) / (here + 2)) c.fail("a smaller index", "one of more than 2^63 links");
      most = (here + 1) * most + here;
      below_count_.push_back(bytes_for(most));
    }
    if (root != kNowhere) walk(root, records, depth);
  }

 private:
  void walk(uint64_t at, uint64_t records, unsigned level) {
    const uint64_t pointer = level == 0 ? 0 : 8 + uint64_t(leaf_count_) + uint64_t(below_count_[level - 1]);
    Cursor c(source_, at, 6 + records * record_ + (level ? (records + 1) * pointer : 0), "index of links");
    c.expect(level ? "BTIN" : "BTLF");
    c.skip(2);
    for (uint64_t i = 0; i < records; ++i) {
      Cursor record = c.part(record_, "index of links");
      record.skip(4);  // the hash of the name
      links_.push_back(parse_link(heap_.object(record)));
    }
    if (level == 0) return;
    for (uint64_t i = 0; i <= records; ++i) {
      const uint64_t child = c.u64(), n = c.number(leaf_count_);
      c.skip(uint64_t(below_count_[level - 1]));
      walk(child, n, level - 1);
    }
  }

  Source& source_;
  Heap& heap_;
  std::vector<Link>& links_;
  unsigned record_ = 0;
  int leaf_count_ = 0;
  std::vector<int> below_count_;
};
}  // namespace

std::vector<Link> dense_links(Source& source, uint64_t heap, uint64_t index) {
  std::vector<Link> links;
  Heap h(source, heap);
  Index(source, h, links).read(index);
  return links;
}

}  // namespace millpond::io::h5
