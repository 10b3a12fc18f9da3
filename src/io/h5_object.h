// An object of an HDF5 file: its header is a list of messages, and what it is follows from them.
//   a group     has links: a symbol table (the old way) or link messages, in its header or in a heap (since HDF5 1.8)
//   a dataset   has a type, a space, a layout
// Both versions of headers and groups are read, so files of every HDF5 library; what no weight file uses is refused.
// Memory: the messages of one object while it is looked at.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/h5_source.h"

namespace millpond::io::h5 {

enum MessageType : uint16_t {
  kDataspace = 0x01,
  kLinkInfo = 0x02,
  kDatatype = 0x03,
  kLink = 0x06,
  kExternalFiles = 0x07,
  kLayout = 0x08,
  kFilters = 0x0b,
  kAttribute = 0x0c,
  kContinuation = 0x10,
  kSymbolTable = 0x11,
};

struct Message {
  uint16_t type;
  bool shared;  // it only says where the real one is
  Cursor data;
};

/// The address of the root's header. Throws Error(kFormat) when this is no HDF5 file, or not all of one.
uint64_t root_of(Source& source);

std::vector<Message> messages_at(Source& source, uint64_t address);
const Message* find(const std::vector<Message>& messages, MessageType type);

struct Link {
  enum Kind { kHard, kSoft, kExternal } kind;
  std::string name;
  uint64_t address;  // of a hard one
};
/// The links of a group, in no order; nothing when the object is no group.
std::optional<std::vector<Link>> links_of(Source& source, const std::vector<Message>& messages);
/// A link as it lies in a header or heap.
Link parse_link(Cursor c);
/// Links in a heap: a B-tree of their places (`index`), in the heap at `heap`.
std::vector<Link> dense_links(Source& source, uint64_t heap, uint64_t index);

/// A text attribute, or "" when it is missing or something else: no attribute decides whether a file is good.
std::string text_attribute(Source& source, const std::vector<Message>& messages, std::string_view name);

}  // namespace millpond::io::h5
