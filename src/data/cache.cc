// cache: elements of the first round are kept, in memory up to its bytes and behind that in a file without a name;
// later rounds read them from there. The file holds what this process wrote and nobody else can open it, so it is read
// back without suspicion; a short read is an error.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "data/node.h"

namespace millpond::data {
namespace {

class SpillFile {
 public:
  explicit SpillFile(std::string folder) : folder_(std::move(folder)) {
    if (folder_.empty()) {
      const char* tmp = std::getenv("TMPDIR");
      folder_ = tmp && *tmp ? tmp : "/tmp";
    }
  }
  ~SpillFile() {
    if (fd_ >= 0) close(fd_);
  }
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  int64_t size() const { return size_; }
  void clear() {
    if (fd_ >= 0 && size_ > 0 && ftruncate(fd_, 0) != 0) fail("emptied");
    size_ = 0;
  }
  void append(const void* data, int64_t n) {
    if (fd_ < 0) make();
    for (int64_t done = 0; done < n;) {
      const ssize_t k = pwrite(fd_, static_cast<const char*>(data) + done, size_t(n - done), size_ + done);
      if (k < 0 && errno == EINTR) continue;
      if (k <= 0) fail("written");
      done += k;
    }
    size_ += n;
  }
  void read(int64_t at, void* data, int64_t n) const {
    for (int64_t done = 0; done < n;) {
      const ssize_t k = pread(fd_, static_cast<char*>(data) + done, size_t(n - done), at + done);
      if (k < 0 && errno == EINTR) continue;
      if (k == 0) errno = EIO;
      if (k <= 0) fail("read");
      done += k;
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw Error(Code::kFile, format("the cache's file in {} cannot be {}: {}", folder_, what, std::strerror(errno)))
        .hint("cache({.folder = ...}) puts it elsewhere");
  }
  void make() {
    fd_ = open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd_ >= 0) return;
    std::string name = folder_ + "/millpond-cache-XXXXXX";  // a file system without nameless files
    fd_ = mkostemp(name.data(), O_CLOEXEC);
    if (fd_ < 0) fail("made");
    unlink(name.c_str());
  }
  std::string folder_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// Elements that all look alike, value behind value in a few large blocks: a row of 88 bytes costs 96, where an element
// by itself would cost a header, a class of sizes and the bookkeeping of its tensors besides.
class PackedRows {
 public:
  static constexpr int64_t kBlock = 256 << 10;

  PackedRows(Pool& pool, Stage& stage) : pool_(pool), stage_(stage) {}
  int64_t size() const { return size_; }
  bool fits(const Element& e) const { return size_ == 0 || spec_of(e) == spec_; }
  /// What taking this one in would cost: nothing while its block has room.
  Bytes cost(const Element& e, Bytes most) const {
    if (size_ > 0) return size_ % rows_ ? Bytes{} : Pool::cost(Bytes{rows_ * row_});
    const int64_t row = row_of(e);
    return Pool::cost(Bytes{rows_in_block(row, most) * row});
  }
  void add(const Element& e, Bytes most) {
    if (size_ == 0) {
      spec_ = spec_of(e);
      row_ = row_of(e);
      rows_ = rows_in_block(row_, most);
    }
    if (size_ % rows_ == 0) blocks_.push_back(pool_.take(Bytes{rows_ * row_}, stage_));
    std::byte* to = blocks_.back().get() + size_ % rows_ * row_;
    for (const Tensor& t : e) {
      if (t.bytes().value) std::memcpy(to, t.data(), size_t(t.bytes().value));
      to += aligned(t.bytes().value);
    }
    ++size_;
  }
  void get(int64_t i, Element& e) const {
    e.clear();
    const std::shared_ptr<std::byte>& block = blocks_[size_t(i / rows_)];
    std::byte* from = block.get() + i % rows_ * row_;
    for (const TensorSpec& t : spec_) {
      e.push_back(Tensor::view(from, t.dtype, to_shape(t), block));
      from += aligned(e.back().bytes().value);
    }
  }
  void clear() {
    blocks_.clear();
    size_ = 0;
  }

 private:
  static int64_t aligned(int64_t bytes) { return (bytes + 15) / 16 * 16; }
  static int64_t row_of(const Element& e) {
    int64_t sum = 0;
    for (const Tensor& t : e) sum += aligned(t.bytes().value);
    return std::max<int64_t>(sum, 16);
  }
  // Of a small bound no block takes more than an eighth.
  static int64_t rows_in_block(int64_t row, Bytes most) {
    return std::max<int64_t>(1, std::min(kBlock, most.value / 8) / row);
  }

  Pool& pool_;
  Stage& stage_;
  ElementSpec spec_;
  int64_t row_ = 0, rows_ = 1;  // bytes of a row, rows of a block
  std::vector<std::shared_ptr<std::byte>> blocks_;
  int64_t size_ = 0;
};

class CacheIterator final : public Unary {
 public:
  CacheIterator(Run& run, Stage& stage, std::unique_ptr<Iterator> input, Bytes memory, const CacheOptions& o)
      : Unary(run, stage, std::move(input)), memory_(memory), file_(o.folder), packed_(pool(), stage) {
    stage.keeps = true;
  }
  ~CacheIterator() override { drop(); }

 protected:
  void begin(uint64_t key) override {
    at_ = 0;
    offset_ = 0;
    if (complete_) return;
    drop();  // half a round is no round
    Unary::begin(key);
  }
  bool get(Element& e) override {
    if (!complete_) {
      if (!input_->next(e)) {
        complete_ = true;
        tell();
        at_ = count();
        return false;
      }
      put(e);
      return true;
    }
    if (at_ >= count()) return false;
    if (at_ < packed_.size())
      packed_.get(at_, e);
    else if (at_ < in_memory())
      e = kept_[size_t(at_ - packed_.size())];
    else
      load(e);
    ++at_;
    return true;
  }

 private:
  int64_t in_memory() const { return packed_.size() + int64_t(kept_.size()); }
  int64_t count() const { return in_memory() + spilled_; }
  // Packed ones first, then those that look different, then those in the file: the order must stay.
  void put(Element& e) {
    if (spilled_ == 0 && kept_.empty() && e.bytes().value <= PackedRows::kBlock / 4 && packed_.fits(e)) {
      const Bytes cost = packed_.cost(e, memory_);
      if (held_ + cost <= memory_ && (cost.value == 0 || pool().has_room(cost + Bytes{pool().limit().value / 8}))) {
        packed_.add(e, memory_);
        held_ += cost;
        return;
      }
    } else if (spilled_ == 0) {
      Bytes cost = overhead(e);
      for (const Tensor& t : e) cost += Pool::cost(t.bytes());
      if (held_ + cost <= memory_ && pool().has_room(overhead(e) + Bytes{pool().limit().value / 8})) {
        if (kept_.size() == kept_.capacity()) kept_.reserve(std::max<size_t>(16, 2 * kept_.capacity()));
        keep_apart(e, pool(), stage_);
        hand_over(e, stage_);
        kept_.push_back(e);
        pool().count(overhead(e), stage_);
        held_ += cost;
        return;
      }
    }
    spill(e);
  }
  void spill(const Element& e) {
    ++spilled_;
    const int64_t n = int64_t(e.size());
    file_.append(&n, sizeof n);
    for (const Tensor& t : e) {
      const int64_t head[2] = {int64_t(t.dtype()), t.shape().rank()};
      file_.append(head, sizeof head);
      file_.append(t.shape().begin(), int64_t(sizeof(int64_t)) * t.shape().rank());
      if (t.bytes().value) file_.append(t.data(), t.bytes().value);
    }
  }
  void load(Element& e) {
    e.clear();
    const auto read = [&](void* to, int64_t n) {
      file_.read(offset_, to, n);
      offset_ += n;
    };
    int64_t n = 0;
    read(&n, sizeof n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t head[2], dims[Shape::kMaxRank];
      read(head, sizeof head);
      read(dims, head[1] * int64_t(sizeof(int64_t)));
      e.push_back(pool().tensor(DType(head[0]), Shape(std::span<const int64_t>(dims, size_t(head[1]))), stage_));
      if (e.back().bytes().value) read(e.back().data(), e.back().bytes().value);
    }
  }
  void drop() {
    for (const Element& e : kept_) pool().count(Bytes{} - overhead(e), stage_);
    kept_.clear();
    packed_.clear();
    file_.clear();
    held_ = {};
    spilled_ = 0;
    complete_ = false;
  }
  void tell() {
    stage_.decide(spilled_ == 0 ? format("{} elements, all in memory", in_memory())
                                : format("{} elements in memory, {} ({}) in a file, because {} is the bound",
                                         in_memory(), spilled_, Bytes{file_.size()}, memory_));
  }

  Bytes memory_, held_;
  SpillFile file_;
  PackedRows packed_;
  std::vector<Element> kept_;
  int64_t spilled_ = 0, at_ = 0, offset_ = 0;
  bool complete_ = false;
};

class CacheNode final : public Node {
 public:
  CacheNode(NodePtr input, CacheOptions o) : Node({std::move(input)}), o_(std::move(o)) {
    if (o_.memory.value < 0) throw Error(Code::kUsage, format("cache: {} bytes of memory", o_.memory.value));
  }
  std::string name() const override { return "cache"; }
  std::string text() const override {
    return o_.file_only ? "cache(file)" : o_.memory.value ? format("cache({}, then a file)", o_.memory) : "cache()";
  }
  const ElementSpec& spec() const override { return input().spec(); }
  int64_t cardinality() const override { return input().cardinality(); }
  Need need() const override {
    if (o_.file_only) return {.working = most()};
    Bytes ask = o_.memory;
    // What it would hold in all, where that is known, is all it wants.
    const Bytes one = most();
    const int64_t n = cardinality();
    if (one.value && n >= 0 && n < INT64_MAX / (2 * one.value + 1024)) {
      const Bytes all = (one + Bytes{int64_t(sizeof(Element) + spec().size() * sizeof(Tensor) + 16)}) * n;
      ask = ask.value ? std::min(ask, all) : all;
    }
    return {.working = one, .holds = true, .least = {}, .ask = ask};
  }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const override {
    return std::make_unique<CacheIterator>(run, stage, input().start(run, scope),
                                           o_.file_only ? Bytes{} : ceiling(scope), o_);
  }

 private:
  CacheOptions o_;
};

}  // namespace

NodePtr cache_node(NodePtr input, CacheOptions o) {
  return std::make_shared<CacheNode>(std::move(input), std::move(o));
}

}  // namespace millpond::data
