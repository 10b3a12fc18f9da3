#include "io/h5_object.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/format.h"

namespace millpond::io::h5 {

namespace {
constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

void need_eight_bytes(const Cursor& c, int offsets, int lengths) {
  if (offsets != 8 || lengths != 8) c.fail("addresses and lengths of 8 bytes", format("{} and {}", offsets, lengths));
}
}  // namespace

uint64_t root_of(Source& source) {
  if (source.size() < 48) throw source.wrong(0, "the beginning", "an HDF5 file", format("{} bytes", source.size()));
  Cursor c(source, 0, std::min<uint64_t>(source.size(), 100), "superblock");
  if (c.text(8) != kSignature) throw source.wrong(0, "the beginning", "an HDF5 file", "something else");
  const uint8_t version = c.u8();
  c.need(version <= 3, "a version up to 3", version);
  uint64_t root = 0;
  if (version <= 1) {
    c.skip(4);
    const int offsets = c.u8(), lengths = c.u8();
    need_eight_bytes(c, offsets, lengths);
    c.skip(version == 0 ? 9 : 13);
  } else {
    const int offsets = c.u8(), lengths = c.u8();
    need_eight_bytes(c, offsets, lengths);
    c.skip(1);
  }
  const uint64_t base = c.u64();
  c.need(base == 0, "a file that begins at byte 0", base);
  c.skip(8);
  const uint64_t end = c.u64();
  if (end > source.size()) c.fail(format("a file of {} bytes", end), format("{}: it was cut short", source.size()));
  if (version <= 1) c.skip(16);  // the driver's address; the root's name
  root = c.u64();
  return root;
}

namespace {
class HeaderReader {
 public:
  explicit HeaderReader(Source& source) : source_(source) {}

  std::vector<Message> read(uint64_t address) {
    Cursor start(source_, address, std::min<uint64_t>(source_.size() - std::min(address, source_.size()), 44),
                 "object header");
    if (start.left() >= 4 && start.text(4) == "OHDR") {
      new_header(address, start);
    } else {
      start.seek(0);
      old_header(address, start);
    }
    for (size_t i = 0; i < more_.size(); ++i) {
      const auto [at, n] = more_[i];
      Cursor c(source_, at, n, "more of an object header");
      if (new_) {
        c.expect("OCHK");
        if (c.left() < 4) c.fail("a checksum", "the end");
        block(c.part(c.left() - 4, "more of an object header"));
      } else
        block(c);
    }
    return std::move(messages_);
  }

 private:
  void old_header(uint64_t address, Cursor& start) {
    const uint8_t version = start.u8();
    start.need(version == 1, "an object header of version 1 or 2", version);
    start.skip(7);
    const uint32_t size = start.u32();
    block(Cursor(source_, address + 16, size, "object header"));
  }
  void new_header(uint64_t address, Cursor& c) {
    new_ = true;
    const uint8_t version = c.u8();
    c.need(version == 2, "an object header of version 1 or 2", version);
    const uint8_t flags = c.u8();
    ordered_ = flags & 4;
    if (flags & 0x20) c.skip(16);  // times
    if (flags & 0x10) c.skip(4);   // when to change the storage of attributes
    const uint64_t size = c.number(1 << (flags & 3));
    block(Cursor(source_, c.position(), size, "object header"));
    (void)address;
  }
  void block(Cursor c) {
    const uint64_t head = new_ ? 4 + (ordered_ ? 2 : 0) : 8;
    while (c.left() >= head) {
      const uint16_t type = new_ ? c.u8() : c.u16();
      const uint16_t size = c.u16();
      const uint8_t flags = c.u8();
      c.skip(new_ ? (ordered_ ? 2 : 0) : 3);
      Cursor data = c.part(size, "message of an object header");
      if (type == kContinuation) {
        const uint64_t at = data.u64(), n = data.u64();
        // Blocks are read later, so that no chain of them can exhaust the stack.
        if (!seen_.insert(at).second || seen_.size() > 4096) data.fail("each block once", "a circle of blocks");
        more_.emplace_back(at, n);
      } else if (type != 0) {
        messages_.push_back({type, bool(flags & 2), data});
      }
    }
  }

  Source& source_;
  bool new_ = false, ordered_ = false;
  std::vector<Message> messages_;
  std::vector<std::pair<uint64_t, uint64_t>> more_;
  std::set<uint64_t> seen_;
};

// A group of the old way: a B-tree of symbol nodes, whose names lie in a local heap.
class SymbolTable {
 public:
  explicit SymbolTable(Source& source) : source_(source) {}

  std::vector<Link> read(Cursor message) {
    const uint64_t tree = message.u64(), heap = message.u64();
    Cursor h(source_, heap, 32, "local heap");
    h.expect("HEAP");
    h.skip(4);
    const uint64_t size = h.u64();
    h.skip(8);
    names_.emplace(source_, h.u64(), size, "names of a group");
    node(tree, -1);
    return std::move(links_);
  }

 private:
  void node(uint64_t at, int parent_level) {
    Cursor c(source_, at, 24, "B-tree of a group");
    c.expect("TREE");
    const int type = c.u8(), level = c.u8();
    c.need(type == 0, "a node for groups", uint64_t(type));
    c.need(parent_level < 0 || level == parent_level - 1, "a node one level down", uint64_t(level));
    const uint16_t used = c.u16();
    Cursor entries(source_, at + 24, uint64_t(used) * 16, "B-tree of a group");
    for (int i = 0; i < used; ++i) {
      entries.skip(8);
      const uint64_t child = entries.u64();
      if (level > 0)
        node(child, level);
      else
        symbols(child);
    }
  }
  void symbols(uint64_t at) {
    Cursor c(source_, at, 8, "symbols of a group");
    c.expect("SNOD");
    c.skip(2);
    const uint16_t n = c.u16();
    Cursor entries(source_, at + 8, uint64_t(n) * 40, "symbols of a group");
    for (int i = 0; i < n; ++i) {
      const uint64_t name = entries.u64(), address = entries.u64();
      const uint32_t kind = entries.u32();
      entries.skip(20);
      entries.need(kind <= 2, "a link of kind 0, 1 or 2", kind);
      names_->seek(name);
      links_.push_back({kind == 2 ? Link::kSoft : Link::kHard, names_->word(), address});
    }
  }

  Source& source_;
  std::optional<Cursor> names_;
  std::vector<Link> links_;
};
}  // namespace

std::vector<Message> messages_at(Source& source, uint64_t address) { return HeaderReader(source).read(address); }

const Message* find(const std::vector<Message>& messages, MessageType type) {
  const auto it = std::find_if(messages.begin(), messages.end(), [&](const Message& m) { return m.type == type; });
  return it == messages.end() ? nullptr : &*it;
}

Link parse_link(Cursor c) {
  const uint8_t version = c.u8();
  c.need(version == 1, "a link of version 1", version);
  const uint8_t flags = c.u8();
  const uint8_t kind = flags & 8 ? c.u8() : 0;
  if (flags & 4) c.skip(8);   // creation order
  if (flags & 16) c.skip(1);  // character set
  const uint64_t length = c.number(1 << (flags & 3));
  Link link{kind == 0 ? Link::kHard : kind == 1 ? Link::kSoft : Link::kExternal, c.text(length), kNowhere};
  if (kind == 0) link.address = c.u64();
  return link;
}

std::optional<std::vector<Link>> links_of(Source& source, const std::vector<Message>& messages) {
  if (const Message* table = find(messages, kSymbolTable)) return SymbolTable(source).read(table->data);
  const Message* info = find(messages, kLinkInfo);
  if (!info && !find(messages, kLink)) return std::nullopt;
  std::vector<Link> links;
  for (const Message& m : messages)
    if (m.type == kLink) links.push_back(parse_link(m.data));
  if (!info) return links;
  Cursor c = info->data;
  const uint8_t version = c.u8(), flags = c.u8();
  c.need(version == 0, "link info of version 0", version);
  if (flags & 1) c.skip(8);
  const uint64_t heap = c.u64(), index = c.u64();
  if (heap == kNowhere) return links;
  for (Link& l : dense_links(source, heap, index)) links.push_back(std::move(l));
  return links;
}

namespace {
// A string type in an attribute: fixed (its size) or variable (0); nothing when it is no string.
std::optional<uint32_t> string_size(Cursor type) {
  const int kind = type.u8() & 15;
  const uint8_t bits = type.u8();
  type.skip(2);
  const uint32_t size = type.u32();
  if (kind == 3) return size;
  return kind == 9 && (bits & 15) == 1 ? std::optional<uint32_t>(0) : std::nullopt;
}

std::string in_global_heap(Source& source, uint64_t collection, uint32_t index, uint32_t length) {
  Cursor head(source, collection, 16, "global heap");
  head.expect("GCOL");
  head.skip(4);
  const uint64_t size = head.u64();
  if (size < 16) head.fail("a heap of at least 16 bytes", format("{}", size));
  Cursor c(source, collection + 16, size - 16, "global heap");
  while (c.left() >= 16) {
    const uint16_t here = c.u16();
    c.skip(6);
    const uint64_t n = c.u64();
    if (here == 0) break;  // the rest is free
    Cursor object = c.part(n, "global heap");
    if (here == index) return object.text(std::min<uint64_t>(length, n));
    c.align();
  }
  return {};
}

std::string text_of(Source& source, Cursor c, std::string_view wanted) {
  const uint8_t version = c.u8(), flags = c.u8();
  const uint16_t name_size = c.u16(), type_size = c.u16(), space_size = c.u16();
  if (version < 1 || version > 3 || (version > 1 && flags != 0)) return {};
  if (version == 3) c.skip(1);  // the name's character set
  const auto padded = [&](uint16_t n) { return version == 1 ? uint64_t(n + 7) / 8 * 8 : n; };
  Cursor name = c.part(padded(name_size), "attribute");
  if (name.left() == 0 || name.word() != wanted) return {};
  const std::optional<uint32_t> fixed = string_size(c.part(padded(type_size), "attribute"));
  Cursor space = c.part(padded(space_size), "attribute");
  space.skip(1);
  if (!fixed || space.u8() != 0) return {};  // not one text
  if (*fixed > 0) {
    const std::string text = c.text(*fixed);
    return text.substr(0, text.find('\0'));
  }
  const uint32_t length = c.u32();
  const uint64_t collection = c.u64();
  return in_global_heap(source, collection, c.u32(), length);
}
}  // namespace

std::string text_attribute(Source& source, const std::vector<Message>& messages, std::string_view name) {
  for (const Message& m : messages) {
    if (m.type != kAttribute || m.shared) continue;
    try {
      std::string text = text_of(source, m.data, name);
      if (!text.empty()) return text;
    } catch (const Error& e) {
      if (e.code() != Code::kFormat) throw;
    }
  }
  return {};
}

}  // namespace millpond::io::h5
