#include "watch/shared_view.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>

namespace millpond::watch {
namespace {

constexpr uint32_t kMostText = 4096;  // of a file or function name
constexpr uint32_t kMostSites = 4096;
constexpr int64_t kMostIndex = int64_t{1} << 53;

/// How many blocks a sample stands for. A run file has no place for what is no number.
double blocks(float given) { return given >= 0 && given < 1e18f ? double(given) : 0; }

}  // namespace

std::optional<SharedView> SharedView::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return {};
  SharedView view(fd);
  const Shared h = view.header();
  if (h.version != kProbeVersion || h.bytes < kSharedBytes) return {};
  return view;
}

SharedView::SharedView(SharedView&& o) noexcept : fd_(std::exchange(o.fd_, -1)), table_(std::move(o.table_)) {}
SharedView::~SharedView() {
  if (fd_ >= 0) close(fd_);
}

bool SharedView::read(void* to, size_t size, uint64_t at) const {
  return pread(fd_, to, size, off_t(at)) == ssize_t(size);
}

Shared SharedView::header() const {
  Shared h{};
  if (!read(&h, sizeof h, 0)) h.version = 0;
  return h;
}

std::string SharedView::text(Text t) const {
  if (t.size > kMostText || t.at > kTextBytes || t.size > kTextBytes - t.at) return {};
  std::string s(t.size, '\0');
  return read(s.data(), s.size(), kTextAt + t.at) ? s : std::string();
}

std::optional<Stack> SharedView::stack(uint32_t id) const {
  Stack s{};
  if (id >= kStacks || !read(&s, sizeof s, kStacksAt + sizeof s * id) || s.hash == 0) return {};
  return s;
}

std::vector<std::pair<uint32_t, Stack>> SharedView::largest_stacks(size_t most) const {
  std::vector<Stack> table(kStacks);
  std::vector<std::pair<uint32_t, Stack>> list;
  if (!read(table.data(), table.size() * sizeof(Stack), kStacksAt)) return list;
  for (uint32_t id = 0; id < kStacks; ++id)
    if (table[id].hash != 0) list.emplace_back(id, table[id]);
  std::ranges::stable_sort(list, std::ranges::greater{}, [](const auto& s) { return s.second.total_bytes; });
  if (list.size() > most) list.resize(most);
  return list;
}

std::vector<RawFrame> SharedView::frames(uint32_t id) const {
  const std::optional<Stack> s = stack(id);
  if (!s || s->frames > kMaxDepth || s->first > uint32_t(kFrames) - s->frames) return {};
  std::vector<Frame> raw(s->frames);
  if (!read(raw.data(), raw.size() * sizeof(Frame), kFramesAt + sizeof(Frame) * s->first)) return {};
  std::vector<RawFrame> list;
  for (const Frame f : raw) {
    RawFrame frame;
    if (f & kFramePython) {
      const uint32_t code = uint32_t(f >> 32) & 0x7fffffff;
      Code c{};
      if (code >= kCodes || !read(&c, sizeof c, kCodesAt + sizeof c * code)) continue;
      frame.python = true;
      frame.file = text(c.file), frame.function = text(c.name), frame.line = int(f & 0xffffffff);
      if (frame.file.empty()) continue;
    } else {
      frame.address = f;
    }
    list.push_back(std::move(frame));
  }
  return list;
}

RawMark SharedView::mark(const std::vector<char>& record) const {
  RawMark m;
  MarkRecord r{};
  if (record.size() < sizeof r) return m;
  std::memcpy(&r, record.data(), sizeof r);
  m.kind.assign(r.kind, strnlen(r.kind, sizeof r.kind));
  m.index = std::clamp(r.index, -kMostIndex, kMostIndex), m.flags = r.flags, m.rss = r.rss;
  m.heap_in_use = r.heap_in_use, m.heap_free = r.heap_free, m.heap_mapped = r.heap_mapped,
  m.python_arenas = r.python_arenas;
  std::copy(std::begin(r.units), std::end(r.units), m.units);
  size_t at = sizeof r;
  const uint32_t sites = std::min(r.sites, kMostSites);
  if (r.sites <= kMostSites && record.size() - at >= sites * sizeof(SiteBytes)) {
    for (uint32_t i = 0; i < sites; ++i, at += sizeof(SiteBytes)) {
      SiteBytes s{};
      std::memcpy(&s, record.data() + at, sizeof s);
      RawSite site{s.stack, s.bytes, blocks(s.blocks), {}};
      std::copy(std::begin(s.age_kib), std::end(s.age_kib), site.ages_kib);
      m.sites.push_back(site);
    }
    if (record.size() - at >= r.name_size && r.name_size <= kMostText) m.name.assign(record.data() + at, r.name_size);
  }
  return m;
}

std::optional<RawRecord> SharedView::next() {
  for (int skipped = 0; skipped < 4; ++skipped) {
    const Shared h = header();
    if (h.version == 0 || h.write == h.read) return {};
    const auto move_to = [&](uint64_t value) {
      return pwrite(fd_, &value, sizeof value, offsetof(Shared, read)) == sizeof value;
    };
    const uint64_t used = h.write - h.read, place = h.read % kRingBytes;
    RecordHeader head{};
    const bool sane = used <= kRingBytes && kRingBytes - place >= sizeof head &&
                      read(&head, sizeof head, kRingAt + place) && head.size >= sizeof head && head.size % 8 == 0 &&
                      head.size <= used && head.size <= kRingBytes - place;
    if (!sane) {  // nothing that follows can be trusted either
      move_to(h.write);
      return {};
    }
    std::vector<char> record(head.size);
    const bool got = head.kind == 0 || read(record.data(), record.size(), kRingAt + place);
    if (!move_to(h.read + head.size) || !got) return {};
    RawRecord out{RecordKind(head.kind), head.t_ns, {}, {}, {}, {}};
    switch (head.kind) {
      case kRecordMark:
        out.mark = mark(record);
        out.mark.seconds = double(int64_t(head.t_ns - h.start_ns)) * 1e-9;
        return out;
      case kRecordNote: {
        NoteRecord n{};
        if (record.size() < sizeof n) continue;
        std::memcpy(&n, record.data(), sizeof n);
        if (n.text_size > record.size() - sizeof n) continue;
        out.note.assign(record.data() + sizeof n, n.text_size);
        return out;
      }
      case kRecordModule: {
        ModuleRecord m{};
        if (record.size() < sizeof m) continue;
        std::memcpy(&m, record.data(), sizeof m);
        if (m.path_size > record.size() - sizeof m || m.path_size > kMostText) continue;
        out.module = {m.begin, m.end, m.offset, std::string(record.data() + sizeof m, m.path_size)};
        return out;
      }
      case kRecordScan: {
        ScanRecord r{};
        if (record.size() < sizeof r) continue;
        std::memcpy(&r, record.data(), sizeof r);
        if (r.groups > kScanGroups || record.size() - sizeof r < r.groups * sizeof(ScanGroup)) continue;
        out.scan.record = r;
        out.scan.groups.resize(r.groups);
        std::memcpy(out.scan.groups.data(), record.data() + sizeof r, r.groups * sizeof(ScanGroup));
        return out;
      }
      default:
        continue;  // filling, or a kind of a later version
    }
  }
  return {};
}

std::vector<RawSite> SharedView::live(uint64_t now_ns) const {
  const Shared h = header();
  table_.resize(kLiveSlots);
  std::vector<RawSite> list;
  if (h.version == 0 || !read(table_.data(), table_.size() * sizeof(Live), kLiveAt)) return list;
  const uint64_t now = now_ns > h.start_ns ? (now_ns - h.start_ns) / 1000000 : 0;
  const uint64_t first = std::min(h.first_period_ms, now), span = std::max<uint64_t>(1, now - first);
  std::unordered_map<uint32_t, size_t> place;
  for (const Live& l : table_) {
    if (l.address <= 1 || l.stack >= kStacks) continue;
    const auto [at, fresh] = place.try_emplace(l.stack, list.size());
    if (fresh) list.push_back({l.stack, 0, 0, {}});
    RawSite& s = list[at->second];
    s.bytes += l.bytes, s.blocks += blocks(l.blocks);
    const uint64_t bin =
        l.born_ms <= first ? 0 : std::min<uint64_t>(kAgeBins - 1, (l.born_ms - first) * kAgeBins / span);
    s.ages_kib[bin] += l.bytes / 1024;
  }
  std::sort(list.begin(), list.end(), [](const RawSite& a, const RawSite& b) { return a.bytes > b.bytes; });
  return list;
}

}  // namespace millpond::watch
