#include "base/segment.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/format.h"
#include "base/process.h"
#include "millpond/error.h"

namespace millpond {

namespace {
#ifdef MILLPOND_CHECKS
constexpr Bytes kGuard = kPage;
#else
constexpr Bytes kGuard{0};
#endif

std::mutex holdings_lock;  // taken when memory is taken or given back, never in a step
Holding* first_holding = nullptr;

[[noreturn]] void refuse(Bytes size, const std::string& account, int why) {
  Error e(Code::kMemory,
          format("{} of address space asked for {}, and the system refused: {}", size, account, std::strerror(why)));
  e.add("asked", format("{} ({} bytes)", size, size.value));
  const FreeMemory free = memory_free_now();
  e.add("free", format("{} ({})", free.bytes, free.limited_by));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    e.add("limit", format("{} of address space for this process (ulimit -v)",
                          Bytes{int64_t(std::min<rlim_t>(limit.rlim_cur, INT64_MAX))}));
  throw e.hint("use a smaller batch or model, or raise the limit");
}
}  // namespace

Holding::Holding(std::string account, Bytes bytes, const void* begin)
    : account_(account.empty() ? "other/unnamed" : std::move(account)), bytes_(bytes.value), begin_(begin) {
  link();
}
Holding::~Holding() { unlink(); }
Holding::Holding(Holding&& o) noexcept { *this = std::move(o); }
Holding& Holding::operator=(Holding&& o) noexcept {
  if (this == &o) return *this;
  unlink();
  const bool live = o.unlink();
  account_ = std::exchange(o.account_, {});
  bytes_ = o.bytes_.exchange(0);
  begin_ = std::exchange(o.begin_, nullptr);
  if (live) link();
  return *this;
}
// The first of the list is its own `before_`, so that before_ != null means "in the list".
void Holding::link() {
  const std::lock_guard guard(holdings_lock);
  before_ = this;
  after_ = first_holding;
  if (after_) after_->before_ = this;
  first_holding = this;
}
bool Holding::unlink() {
  const std::lock_guard guard(holdings_lock);
  if (!before_) return false;
  if (before_ == this)
    first_holding = after_;
  else
    before_->after_ = after_;
  if (after_) after_->before_ = before_ == this ? after_ : before_;
  before_ = after_ = nullptr;
  return true;
}
void each_holding_at(const std::function<void(const std::string&, const void*, Bytes)>& f) {
  const std::lock_guard guard(holdings_lock);
  for (const Holding* h = first_holding; h; h = h->after_) f(h->account_, h->begin_, h->bytes());
}
void each_holding(const std::function<void(const std::string&, Bytes)>& f) {
  each_holding_at([&](const std::string& account, const void*, Bytes bytes) { f(account, bytes); });
}

Segment::Segment(Bytes size, std::string account) {
  if (size.value < 0 || size.value > INT64_MAX / 4) refuse(size, account, ENOMEM);
  if (size.value == 0) return;
  size_ = round_up(size, kPage);
  const bool large = size_ >= kHugePage;
  // Room to slide to a 2 MiB boundary; what is left over on both sides goes back at once.
  const size_t whole = size_t((size_ + kGuard + (large ? kHugePage - kPage : Bytes{0})).value);
  void* base = mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) refuse(size_, account, errno);
  auto* begin = static_cast<std::byte*>(base);
  std::byte* const end = begin + whole;
  if (large) {
    const size_t head = size_t(-reinterpret_cast<uintptr_t>(begin)) % size_t(kHugePage.value);
    if (head) munmap(begin, head);
    begin += head;
    std::byte* const stop = begin + (size_ + kGuard).value;
    if (stop < end) munmap(stop, size_t(end - stop));
  }
  data_ = begin;
  // A kernel without huge pages refuses the advice, which is fine. The rest is told "no huge pages", because with the
  // system's setting "always" a neighbour that merges with it would let one reach past the end.
  const size_t huge = large ? size_t(size_.value / kHugePage.value * kHugePage.value) : 0;
  if (huge) madvise(data_, huge, MADV_HUGEPAGE);
  if (huge < size_t(size_.value)) madvise(data_ + huge, size_t(size_.value) - huge, MADV_NOHUGEPAGE);
  if (kGuard.value) mprotect(data_ + size_.value, size_t(kGuard.value), PROT_NONE);
  holding_ = Holding(std::move(account), size_, data_);
}

Segment::~Segment() {
  if (data_) munmap(data_, size_t((size_ + kGuard).value));
}
Segment::Segment(Segment&& o) noexcept { *this = std::move(o); }
Segment& Segment::operator=(Segment&& o) noexcept {
  if (this == &o) return *this;
  if (data_) munmap(data_, size_t((size_ + kGuard).value));
  data_ = std::exchange(o.data_, nullptr);
  size_ = std::exchange(o.size_, Bytes{0});
  holding_ = std::move(o.holding_);
  return *this;
}

Bytes Segment::touched() const {
  unsigned char in[4096];  // 16 MiB of pages at a time
  int64_t pages = 0;
  const int64_t all = size_.value / kPage.value;
  for (int64_t from = 0; from < all; from += int64_t(sizeof in)) {
    const int64_t n = std::min<int64_t>(all - from, sizeof in);
    if (mincore(data_ + from * kPage.value, size_t(n * kPage.value), in) != 0) continue;
    for (int64_t i = 0; i < n; ++i) pages += in[i] & 1;
  }
  return kPage * pages;
}

void Segment::forget(Bytes from, Bytes size) {
  MP_ASSERT(from.value >= 0 && size.value >= 0 && from + size <= size_);
  const int64_t begin = round_up(from, kPage).value, end = (from + size).value / kPage.value * kPage.value;
  if (begin < end) madvise(data_ + begin, size_t(end - begin), MADV_DONTNEED);
}

}  // namespace millpond
