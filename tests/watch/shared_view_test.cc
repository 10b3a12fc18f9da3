#include "watch/shared_view.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "probe/shared.h"

using namespace millpond::watch;

namespace {

/// The file of a process that allocated at one place, drew one mark and wrote one note.
class Writer {
 public:
  Writer() : bytes_(kSharedBytes) {
    char name[] = "/tmp/millpond_view_XXXXXX";
    const int fd = mkstemp(name);
    if (fd >= 0) path_ = name;
    Shared& h = at<Shared>(0);
    h.version = kProbeVersion, h.bytes = kSharedBytes, h.pid = 7, h.start_ns = 1000000000, h.stacks = 1, h.frames = 2,
    h.codes = 1;
    std::memcpy(&bytes_[kTextAt], "train.pymain", 12);
    Code& c = at<Code>(kCodesAt);
    c.object = 99, c.first_line = 3, c.file = {0, 8}, c.name = {8, 4};
    at<Frame>(kFramesAt) = 0x7f0000001234;
    at<Frame>(kFramesAt + 8) = kFramePython | 0ull << 32 | 41;
    Stack& s = at<Stack>(kStacksAt);
    s.hash = 5, s.first = 0, s.frames = 2, s.total_bytes = 4096, s.total_blocks = 2;
    Live& l = at<Live>(kLiveAt + 48 * 17);
    l.address = 0x1000, l.size = 100, l.bytes = 65536, l.blocks = 655, l.stack = 0, l.born_ms = 10,
    l.kind = kLiveMalloc;
  }
  ~Writer() { std::remove(path_.c_str()); }

  template <class T>
  T& at(size_t place) {
    return *reinterpret_cast<T*>(&bytes_[place]);
  }
  void add(const void* record, size_t size) {
    Shared& h = at<Shared>(0);
    std::memcpy(&bytes_[kRingAt + h.write % kRingBytes], record, size);
    h.write += size;
  }
  void add_mark(uint32_t sites) {
    struct {
      MarkRecord m{};
      SiteBytes s{};
      char name[8] = "fit";
    } r;
    r.m.header = {uint32_t(sizeof r), kRecordMark, 3000000000};
    std::strcpy(r.m.kind, "epoch");
    r.m.index = 4, r.m.flags = kMarkPeriod | kMarkSnapshot, r.m.sites = sites, r.m.name_size = 3, r.m.rss = 1 << 20;
    r.m.heap_free = ~0ull;
    r.m.units[kUnitEpoch] = 5;
    r.s.stack = 0, r.s.bytes = 4096, r.s.blocks = 2, r.s.age_kib[3] = 4;
    add(&r, sizeof r);
    mark_size = sizeof r;
  }
  size_t mark_size = 0;  // of the last one
  const std::string& save() {
    std::ofstream(path_, std::ios::binary).write(bytes_.data(), std::streamsize(bytes_.size()));
    return path_;
  }
  std::vector<char> bytes_;

 private:
  std::string path_;
};

void read_everything(const std::string& path) {
  std::optional<SharedView> v = SharedView::open(path);
  if (!v) return;
  for (int i = 0; i < 50 && v->next(); ++i) {
  }
  for (const RawSite& s : v->live(5000000000)) v->frames(s.stack), v->stack(s.stack);
  for (uint32_t i = 0; i < 20; ++i) v->frames(i * 1000003);
}

}  // namespace

TEST_CASE("SharedView: a mark, its sites and their frames come out as they were written") {
  Writer w;
  w.add_mark(1);
  std::optional<SharedView> v = SharedView::open(w.save());
  REQUIRE(v);
  std::optional<RawRecord> r = v->next();
  REQUIRE(r);
  CHECK(r->mark.kind == "epoch");
  CHECK(r->mark.name == "fit");
  CHECK(r->mark.seconds == doctest::Approx(2.0));
  CHECK(r->mark.units[kUnitEpoch] == 5);
  CHECK(r->mark.heap_free == ~0ull);
  REQUIRE(r->mark.sites.size() == 1);
  CHECK(r->mark.sites[0].ages_kib[3] == 4);
  const std::vector<RawFrame> frames = v->frames(r->mark.sites[0].stack);
  REQUIRE(frames.size() == 2);
  CHECK(frames[0].address == 0x7f0000001234);
  CHECK(frames[1].file == "train.py");
  CHECK(frames[1].function == "main");
  CHECK(frames[1].line == 41);
  CHECK_FALSE(v->next());  // taken out of the ring, for the next reader too
}

TEST_CASE("SharedView: what is alive is summed by stack and age") {
  Writer w;
  std::optional<SharedView> v = SharedView::open(w.save());
  REQUIRE(v);
  const std::vector<RawSite> live = v->live(1800000000);  // 800 ms after the start
  REQUIRE(live.size() == 1);
  CHECK(live[0].bytes == 65536);
  CHECK(live[0].ages_kib[0] == 64);
}

TEST_CASE("SharedView: what is no number, or one that no run can have, does not get as far as the run file") {
  Writer w;
  for (const float odd : {NAN, -1.0f, INFINITY}) {
    w.add_mark(1);
    MarkRecord& m = w.at<MarkRecord>(kRingAt + w.at<Shared>(0).write - w.mark_size);
    m.index = INT64_MIN;
    w.at<SiteBytes>(kRingAt + w.at<Shared>(0).write - w.mark_size + sizeof m).blocks = odd;
  }
  w.at<Live>(kLiveAt + 48 * 17).blocks = NAN;
  std::optional<SharedView> v = SharedView::open(w.save());
  REQUIRE(v);
  for (int i = 0; i < 3; ++i) {
    const std::optional<RawRecord> r = v->next();
    REQUIRE(r);
    CHECK(r->mark.index == -(int64_t{1} << 53));
    REQUIRE(r->mark.sites.size() == 1);
    CHECK(r->mark.sites[0].blocks == 0);
  }
  CHECK(v->live(1800000000)[0].blocks == 0);
}

TEST_CASE("SharedView: records of a later version and the filling at the end of the ring are passed over") {
  Writer w;
  Shared& h = w.at<Shared>(0);
  h.read = h.write = kRingBytes - 64;
  RecordHeader fill{64, 0, 0};
  std::memcpy(&w.bytes_[kRingAt + kRingBytes - 64], &fill, sizeof fill);
  h.write += 64;
  RecordHeader later{16, 77, 0};
  w.add(&later, sizeof later);
  w.add_mark(1);
  std::optional<SharedView> v = SharedView::open(w.save());
  const std::optional<RawRecord> r = v->next();
  REQUIRE(r);
  CHECK(r->mark.index == 4);
}

TEST_CASE("SharedView: counts that cannot be, wild references and any changed bytes are survived") {
  {
    Writer w;
    w.add_mark(0xffffffff);
    std::optional<SharedView> v = SharedView::open(w.save());
    CHECK(v->next()->mark.sites.empty());
  }
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    Writer w;
    w.add_mark(1);
    for (int k = 0; k < 200; ++k) {
      static const size_t parts[] = {8, kLiveAt + 48 * 17, kStacksAt, kFramesAt, kCodesAt, kRingAt};
      w.bytes_[parts[random() % 6] + random() % 256] = char(random());
    }
    w.at<Shared>(0).version = kProbeVersion, w.at<Shared>(0).bytes = kSharedBytes;
    read_everything(w.save());
  }
  Writer w;
  w.bytes_.resize(kFramesAt + 4);  // cut short after it was opened
  read_everything(w.save());
  CHECK(true);
}
