// Any bytes over the shared memory of a watched process, before it is opened and while it is read: what comes out is
// within its bounds, and fit to be written.
//
//   input = change...
//   change = part, place (2 or 3 bytes), size, bytes     part & 8: only after the reader has begun; part % 8 == 7: the
//   file is cut there
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fuzz/input_file.h"
#include "probe/shared.h"
#include "watch/shared_view.h"
#include "watch/symbols.h"

using namespace millpond;

namespace {

/// The file of a process that allocated at two places and said a little, as the probe would have left it.
class Region {
 public:
  Region() : bytes_(kSharedBytes), file_(reinterpret_cast<const uint8_t*>(bytes_.data()), 0) {
    Shared& h = at<Shared>(0);
    h.version = kProbeVersion, h.bytes = kSharedBytes, h.pid = 7, h.start_ns = 1000000000, h.stacks = 2, h.frames = 4,
    h.codes = 2;
    h.first_period_ms = 20, h.interval = 524288;
    std::memcpy(&bytes_[kTextAt], "train.pymainkeep", 16);
    const auto code = [](uint64_t object, uint64_t name_object, uint32_t line, Text name) {
      return Code{.object = object,
                  .file_object = 1,
                  .name_object = name_object,
                  .first_line = line,
                  .file = {0, 8},
                  .name = name,
                  .unused = 0};
    };
    at<Code>(kCodesAt) = code(99, 2, 3, {8, 4});
    at<Code>(kCodesAt + sizeof(Code)) = code(98, 3, 9, {12, 4});
    const Frame frames[] = {0x7f0000001234, kFramePython | 41, kFramePython | 1ull << 32 | 12, kFramePython | 44};
    std::memcpy(&bytes_[kFramesAt], frames, sizeof frames);
    for (uint32_t i = 0; i < 2; ++i)
      at<Stack>(kStacksAt + sizeof(Stack) * i) = {.hash = 5 + i,
                                                  .first = 2 * i,
                                                  .frames = 2,
                                                  .flags = 0,
                                                  .total_bytes = 4096,
                                                  .total_blocks = 2,
                                                  .freed_bytes = 0,
                                                  .thread = 1,
                                                  .soon_kib = 0};
    for (uint32_t i = 0; i < 4; ++i)
      at<Live>(kLiveAt + sizeof(Live) * i) = {.address = 0x1000 + i,
                                              .size = 100,
                                              .bytes = 65536,
                                              .blocks = 655,
                                              .stack = i % 2,
                                              .born_ms = 10 * i,
                                              .kind = kLiveMalloc,
                                              .unused = 0};
    for (int i = 0; i < 3; ++i) add_mark(i);
    add_text<NoteRecord>(kRecordNote, R"({"note": "start"})", [](NoteRecord& n, uint32_t size) { n.text_size = size; });
    add_text<ModuleRecord>(kRecordModule, "/lib/libm.so.6", [](ModuleRecord& m, uint32_t size) {
      m.begin = 0x7f0000000000, m.end = 0x7f0000100000, m.path_size = size;
    });
    add_mark(4);
    RecordHeader filling{24, 0, 0};
    add(&filling, sizeof filling, 24);
    add_mark(5);
    fd_ = ::open(file_.path().c_str(), O_RDWR | O_CLOEXEC);
    put(0, kSharedBytes);
  }
  const std::string& path() const { return file_.path(); }

  void change(uint64_t place, const uint8_t* data, size_t size) {
    place = std::min<uint64_t>(place, kSharedBytes - size);
    if (pwrite(fd_, data, size, off_t(place)) != ssize_t(size)) std::abort();
    changed_.emplace_back(place, size);
  }
  void cut(uint64_t size) {
    if (ftruncate(fd_, off_t(size)) != 0) std::abort();
    cut_ = true;
  }
  void restore() {
    if (cut_) put(0, kSharedBytes);
    for (const auto& [place, size] : changed_) put(place, size);
    put(0, sizeof(Shared));
    changed_.clear();
    cut_ = false;
  }

 private:
  template <class T>
  T& at(size_t place) {
    return *reinterpret_cast<T*>(&bytes_[place]);
  }
  void add(const void* record, size_t given, uint32_t size) {
    Shared& h = at<Shared>(0);
    std::memcpy(&bytes_[kRingAt + h.write], record, given);
    h.write += size;
  }
  void add_mark(int64_t index) {
    struct {
      MarkRecord m{};
      SiteBytes s[2]{};
      char name[8] = "fit";
    } r;
    r.m.header = {uint32_t(sizeof r), kRecordMark, 2000000000 + uint64_t(index) * 1000000000};
    std::strcpy(r.m.kind, "epoch");
    r.m.index = index, r.m.flags = kMarkPeriod | kMarkSnapshot, r.m.sites = 2, r.m.name_size = 3, r.m.rss = 1 << 28;
    for (uint32_t i = 0; i < 2; ++i) r.s[i].stack = i, r.s[i].bytes = 4096, r.s[i].blocks = 2;
    add(&r, sizeof r, sizeof r);
  }
  template <class Record, class Fill>
  void add_text(RecordKind kind, const char* text, Fill fill) {
    const uint32_t length = uint32_t(std::strlen(text)), size = (uint32_t(sizeof(Record)) + length + 7) / 8 * 8;
    Record r{};
    r.header = {size, kind, 2500000000};
    fill(r, length);
    std::vector<char> whole(size);
    std::memcpy(whole.data(), &r, sizeof r);
    std::memcpy(whole.data() + sizeof r, text, length);
    add(whole.data(), size, size);
  }
  /// Bytes of the region as they were made. Zeros at the end stay a hole: the whole file takes little memory.
  void put(uint64_t place, size_t size) {
    if (place == 0 && size == kSharedBytes) {
      if (ftruncate(fd_, 0) != 0 || ftruncate(fd_, kSharedBytes) != 0) std::abort();
      for (const uint64_t part : {uint64_t{0}, uint64_t{kLiveAt}, uint64_t{kStacksAt}, uint64_t{kFramesAt},
                                  uint64_t{kCodesAt}, uint64_t{kTextAt}, uint64_t{kRingAt}})
        put(part, 4096);
      return;
    }
    if (pwrite(fd_, &bytes_[place], size, off_t(place)) != ssize_t(size)) std::abort();
  }

  std::vector<char> bytes_;
  fuzz::InputFile file_;
  int fd_ = -1;
  std::vector<std::pair<uint64_t, size_t>> changed_;
  bool cut_ = false;
};

void demand(bool what) {
  if (!what) std::abort();
}

void look_at(const watch::SharedView& view, const std::vector<watch::RawSite>& sites, const watch::Symbols& symbols) {
  size_t seen = 0;
  for (const watch::RawSite& s : sites) {
    demand(std::isfinite(s.blocks) && s.blocks >= 0);  // SQLite has no NaN: the row would be refused
    if (++seen > 50) continue;
    const std::vector<watch::RawFrame> frames = view.frames(s.stack);
    demand(frames.size() <= kMaxDepth);
    for (const watch::RawFrame& f : frames) {
      demand(f.file.size() <= 4096 && f.function.size() <= 4096 && (f.python || f.file.empty()));
      if (!f.python) symbols.place(f.address);
    }
    view.stack(s.stack);
  }
}

struct Change {
  uint8_t part;
  uint64_t place;
  const uint8_t* data;
  size_t size;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Region region;
  static constexpr uint64_t kParts[] = {0, kLiveAt, kStacksAt, kFramesAt, kCodesAt, kTextAt, kRingAt, 0};
  std::vector<Change> changes;
  for (size_t at = 0; at + 4 <= size && changes.size() < 200;) {
    const uint8_t part = data[at];
    uint64_t place = data[at + 1] | data[at + 2] << 8;
    if (part & 16) place *= 257;  // far into a part
    const size_t length = std::min<size_t>(data[at + 3] % 64, size - at - 4);
    changes.push_back({part, kParts[part % 8] + place, data + at + 4, length});
    at += 4 + length;
  }
  const auto apply = [&](bool late) {
    for (const Change& c : changes) {
      if (bool(c.part & 8) != late) continue;
      if (c.part % 8 == 7)
        region.cut(std::min<uint64_t>(c.place * 389, kSharedBytes));
      else if (c.size)
        region.change(c.place, c.data, c.size);
    }
  };
  apply(false);
  if (std::optional<watch::SharedView> view = watch::SharedView::open(region.path())) {
    watch::Symbols symbols;
    int records = 0;
    for (; records < 100; ++records) {
      const std::optional<watch::RawRecord> r = view->next();
      if (!r) break;
      if (records == 1) apply(true);
      demand(r->mark.kind.size() <= 16 && r->mark.name.size() <= 4096 && r->mark.sites.size() <= 4096 &&
             r->note.size() <= kRingBytes && r->module.path.size() <= 4096);
      demand(std::isfinite(r->mark.seconds));
      look_at(*view, r->mark.sites, symbols);
      if (r->kind == kRecordModule) symbols.add(r->module);
    }
    if (records < 2) apply(true);
    look_at(*view, view->live(5000000000), symbols);
    for (uint32_t id : {0u, 1u, 2u, unsigned{kStacks} - 1, unsigned{kStacks}, ~0u}) view->frames(id), view->stack(id);
    fuzz::accepted += records > 5;
  }
  region.restore();
  return 0;
}
