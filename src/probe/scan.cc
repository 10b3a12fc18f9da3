#include "probe/scan.h"

#include <string.h>

#include <algorithm>

#include "probe/apart.h"
#include "probe/cells.h"
#include "probe/file.h"
#include "probe/live.h"
#include "probe/lock.h"
#include "probe/pages.h"
#include "probe/pieces.h"
#include "probe/real.h"
#include "probe/ring.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/walk.h"

namespace millpond::probe::scan {
namespace {

constexpr size_t kMostRegions = 1 << 16, kMostThreads = 128, kMostFollowed = 1 << 24;
constexpr uint64_t kFirstRound = 1'500'000'000,
                   kLookEvery = 100'000'000;  // ns after the start; between two looks whether the child is done
constexpr double kShare = 0.01, kStartNs = 0.1e9, kNsPerByte = 1,
                 kApart = 4;  // of the time; for the first; a child works on a core that may be free
constexpr uint32_t kNone = Numbers::kNone;

struct Top {
  uint32_t thread;
  uint64_t pointer;  // where the used part of its stack begins
};
Top tops[kMostThreads];
size_t top_count = 0;
uint64_t registers[6];  // of the thread that begins: what its functions keep there for their callers
double spent_ns = 0;

// A thread of the program may have a small stack: what is larger lies here, for one at a time.
char line_buffer[8192];
alignas(8) char entry_buffer[4096];
unsigned char page_buffer[1024];

// A file of /proc, line by line; one at a time.
class Lines {
 public:
  explicit Lines(const char* path) : fd_(int(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC))) {}
  ~Lines() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }
  // The next one, without its end; null: no more. What is longer than the buffer is cut.
  char* next() {
    for (;;) {
      if (char* end = static_cast<char*>(memchr(text_ + at_, '\n', size_ - at_))) {
        char* const line = text_ + at_;
        *end = 0;
        at_ = size_t(end - text_) + 1;
        return line;
      }
      memmove(text_, text_ + at_, size_ - at_);
      size_ -= at_, at_ = 0;
      if (size_ == kRoom) size_ = 0;
      const long more = fd_ < 0 ? 0 : syscall(SYS_read, fd_, text_ + size_, kRoom - size_);
      if (more <= 0) return nullptr;
      size_ += size_t(more);
    }
  }

 private:
  int fd_;
  size_t at_ = 0, size_ = 0;
  char* const text_ = line_buffer;
  static constexpr size_t kRoom = sizeof line_buffer;
};

uint64_t hex(const char*& at) {
  uint64_t value = 0;
  if (at[0] == '0' && at[1] == 'x') at += 2;
  for (;; ++at) {
    const char c = *at;
    if (c >= '0' && c <= '9')
      value = value * 16 + uint64_t(c - '0');
    else if (c >= 'a' && c <= 'f')
      value = value * 16 + uint64_t(c - 'a' + 10);
    else
      return value;
  }
}

// "202 0x7f... 0x80 ... <stack pointer> <program counter>"; "running": nobody knows.
uint64_t stack_pointer_of(uint32_t thread) {
  char path[64] = "/proc/self/task/", digits[16];
  int count = 0;
  for (uint32_t n = thread; n; n /= 10) digits[count++] = char('0' + n % 10);
  char* to = path + strlen(path);
  while (count) *to++ = digits[--count];
  strcpy(to, "/syscall");
  Lines lines(path);
  const char* line = lines.next();
  if (!line) return 0;
  const char* last = strrchr(line, ' ');
  if (!last || last == line) return 0;
  const char* before = last - 1;
  while (before > line && *before != ' ') --before;
  ++before;
  return hex(before);
}

void find_stacks(uint64_t own_pointer) {
  top_count = 0;
  tops[top_count++] = {me.id ? me.id : uint32_t(syscall(SYS_gettid)), own_pointer};
  const int fd = int(syscall(SYS_openat, AT_FDCWD, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd < 0) return;
  char* const entries = entry_buffer;
  for (long size; (size = syscall(SYS_getdents64, fd, entries, sizeof entry_buffer)) > 0;)
    for (long at = 0; at < size;) {
      uint16_t length;
      memcpy(&length, entries + at + 16, sizeof length);
      uint32_t thread = 0;
      for (const char* name = entries + at + 19; *name >= '0' && *name <= '9'; ++name)
        thread = thread * 10 + uint32_t(*name - '0');
      if (thread && thread != tops[0].thread && top_count < kMostThreads)
        if (const uint64_t pointer = stack_pointer_of(thread)) tops[top_count++] = {thread, pointer};
      at += length;
    }
  syscall(SYS_close, fd);
}

enum class Way : uint8_t { kNobody, kStatic, kStack, kBlock, kOther };

struct Region {
  uint64_t begin, end;
  Way way;          // kOther: a heap or other memory
  uint32_t thread;  // of a stack
};

struct Block {
  uint64_t address, end, bytes;
  uint32_t stack, via;  // via: the sampled block that leads to it, or kNone
  bool asked;
  Way way;
  uint64_t root;  // address of the variable, or the thread
};

struct Found {  // a piece of memory to look into
  uint64_t begin, end;
  uint64_t root;
  uint32_t via;
  Way way;
};

class Scanner {
 public:
  Scanner(Scan& result, const Owned& owned) : result_(result), owned_(owned) {}

  bool run() {
    const uint64_t begin = busy_ns();
    if (!blocks_.take(kLiveSlots) || !regions_.take(kMostRegions) || !waiting_.take(kMostFollowed)) return false;
    read_blocks();
    if (asked_) {
      read_regions();
      if (!find_pieces()) return false;
      for (const uint64_t word : registers) meet(word, Way::kStack, tops[0].thread, kNone);
      follow();
      for (const Way way : {Way::kStatic, Way::kStack})
        for (size_t i = 0; i < region_count_; ++i)
          if (regions_[i].way == way) {
            each_word(regions_[i], [&](uint64_t at, uint64_t word) {
              meet(word, way, way == Way::kStatic ? at : regions_[i].thread, kNone);
            });
            follow();
          }
      const bool all_reached = std::none_of(blocks_.at, blocks_.at + block_count_,
                                            [](const Block& b) { return b.asked && b.way == Way::kNobody; });
      for (size_t i = 0; i < region_count_ && !all_reached; ++i)
        if (regions_[i].way == Way::kOther)
          each_word(regions_[i], [&](uint64_t at, uint64_t word) { meet_elsewhere(at, word); });
      gather();
    }
    result_.record.ns = busy_ns() - begin;
    return true;
  }

 private:
  void read_blocks() {
    const uint64_t now = file::since_start_ms(sys::now_ns()),
                   first = file::shared->first_period_ms ? file::shared->first_period_ms : now / 4 + 1;
    for (uint32_t i = 0; i < kLiveSlots; ++i) {
      Live entry;
      if (!live::read(i, entry) || !entry.size || entry.kind == kLivePython ||
          cells::holds(reinterpret_cast<void*>(entry.address)))
        continue;
      const bool asked = entry.born_ms >= first && !(owned_.is && owned_.is(owned_.context, entry.address));
      blocks_[block_count_++] = {
          entry.address, entry.address + entry.size, entry.bytes, entry.stack, kNone, asked, Way::kNobody, 0};
      if (asked) ++asked_, result_.record.alive += entry.bytes;
    }
    std::sort(blocks_.at, blocks_.at + block_count_,
              [](const Block& a, const Block& b) { return a.address < b.address; });
  }

  // Memory with a file behind it and what follows it without one is a module's: its variables. Memory of our own holds
  // addresses of all blocks and is left out.
  void read_regions() {
    Lines lines("/proc/self/maps");
    uint64_t module_end = 0;
    bool ours = false;
    for (char* line; (line = lines.next()) && region_count_ < kMostRegions;) {
      const char* at = line;
      const uint64_t begin = hex(at);
      const uint64_t end = hex(++at);
      const char* mode = ++at;
      const char* name = strchr(line, '/');
      if (!name) name = strchr(line, '[');
      if (name && *name == '/') ours = strstr(name, "/libmillpond_") != nullptr;
      const bool goes_on = !name && begin == module_end;
      if (name && *name == '/') module_end = end;
      if (mode[0] != 'r' || mode[1] != 'w' || mode[3] != 'p' || is_own(begin, end)) continue;
      Region r{begin, end, Way::kOther, 0};
      if ((name && *name == '/') || goes_on) {
        if (ours || (name && strncmp(name, "/dev/", 5) == 0)) continue;
        r.way = Way::kStatic;
      } else if (name && strncmp(name, "[heap]", 6) != 0 && strncmp(name, "[stack]", 7) != 0 &&
                 strncmp(name, "[anon", 5) != 0) {
        continue;
      }
      for (size_t i = 0; i < top_count; ++i)
        if (tops[i].pointer >= begin && tops[i].pointer < end)
          r = {tops[i].pointer & ~uint64_t{7}, end, Way::kStack, tops[i].thread};
      regions_[region_count_++] = r;
    }
  }
  // Both lists are sorted by address.
  bool find_pieces() {
    size_t most = 0;
    for (size_t i = 0; i < region_count_; ++i) most += Pieces::touched(regions_[i].begin, regions_[i].end);
    for (uint32_t i = 0; i < block_count_; ++i) most += Pieces::touched(blocks_[i].address, blocks_[i].end);
    if (!pieces_.start(most)) return false;
    for (size_t i = 0; i < region_count_; ++i) pieces_.add_region(regions_[i].begin, regions_[i].end, uint32_t(i));
    for (uint32_t i = 0; i < block_count_; ++i) pieces_.add_block(blocks_[i].address, blocks_[i].end, i);
    return !pieces_.is_full();
  }
  bool is_own(uint64_t begin, uint64_t end) const {
    const auto in = [&](const void* p) { return uint64_t(p) >= begin && uint64_t(p) < end; };
    return in(file::shared) || in(blocks_.at) || in(regions_.at) || in(waiting_.at) || in(&result_);
  }

  // Words of pages that are there: reading others would make them.
  template <class See>
  void each_word(const Region& r, See see) {
    constexpr uint64_t kPart = sizeof page_buffer * sys::kPageSize;
    const unsigned char* const there = page_buffer;
    for (uint64_t part = r.begin & ~uint64_t{sys::kPageSize - 1}; part < r.end; part += kPart) {
      const uint64_t size = std::min(kPart, r.end - part);
      if (syscall(SYS_mincore, part, size, page_buffer) != 0) continue;
      for (uint64_t page = 0; page * sys::kPageSize < size; ++page) {
        if (!(there[page] & 1)) continue;
        const uint64_t begin = std::max(part + page * sys::kPageSize, r.begin),
                       end = std::min(part + (page + 1) * sys::kPageSize, r.end);
        result_.record.scanned += end - begin;
        for (uint64_t at = begin; at < end; at += 8) see(at, *reinterpret_cast<const uint64_t*>(at));
      }
    }
  }

  // The sampled block that an address lies in, or kNone. piece: the one of the address.
  uint32_t block_of(uint64_t address, uint32_t piece) const {
    if (piece == Pieces::kNothing || !pieces_[piece].has_block) return kNone;
    uint32_t i = pieces_[piece].block;
    while (i + 1 < block_count_ && blocks_[i + 1].address <= address) ++i;
    return address >= blocks_[i].address && address < blocks_[i].end ? i : kNone;
  }
  const Region* region_of(uint64_t address, uint32_t piece) const {
    if (piece == Pieces::kNothing || !pieces_[piece].has_region) return nullptr;
    uint32_t i = pieces_[piece].region;
    while (i + 1 < region_count_ && regions_[i + 1].begin <= address) ++i;
    return address >= regions_[i].begin && address < regions_[i].end ? &regions_[i] : nullptr;
  }

  void meet(uint64_t word, Way way, uint64_t root, uint32_t via) {
    const uint32_t piece = pieces_.of(word);
    if (piece == Pieces::kNothing) return;
    if (const uint32_t found = block_of(word, piece); found != kNone) {
      Block& b = blocks_[found];
      if (b.way != Way::kNobody) return;
      b.way = way, b.root = root, b.via = via;
      // A mapped file may be shorter by now.
      if (region_of(b.address, pieces_.of(b.address))) wait({b.address, b.end, root, found, way});
    } else if (word % 16 == 0 && pieces_[piece].has_region && pieces_.is_new(piece, word)) {
      if (const uint64_t size = unsampled_size(word, piece)) wait({word, word + size, root, via, way});
    }
  }
  void wait(const Found& f) {
    if (waiting_count_ < kMostFollowed) waiting_[waiting_count_++] = f;
  }
  void follow() {
    while (waiting_count_) {
      const Found f = waiting_[--waiting_count_];
      const Region piece{(f.begin + 7) & ~uint64_t{7}, f.end & ~uint64_t{7}, f.way, 0};
      const auto see = [&](uint64_t, uint64_t word) { meet(word, f.way, f.root, f.via); };
      if (f.end - f.begin >= 4 * sys::kPageSize) {
        each_word(piece, see);
      } else {
        for (uint64_t at = piece.begin; at < piece.end; at += 8) see(at, *reinterpret_cast<const uint64_t*>(at));
        result_.record.scanned += piece.end > piece.begin ? piece.end - piece.begin : 0;
      }
    }
  }

  // Of a block of the C library that was not sampled, by the word in front of it; 0: this is no such block.
  uint64_t unsampled_size(uint64_t p, uint32_t piece) const {
    if (allocator_flags) return 0;
    const Region* r = region_of(p, piece);
    if (!r || r->way != Way::kOther || p - r->begin < 16) return 0;
    constexpr uint64_t kFlags = 7, kUsedBefore = 1, kMapped = 2;
    const uint64_t head = *reinterpret_cast<const uint64_t*>(p - 8), size = head & ~kFlags, chunk = p - 16;
    if (size < 32 || size % 16 || size > r->end - chunk) return 0;
    if (head & kMapped) return chunk % sys::kPageSize == 0 && size % sys::kPageSize == 0 ? size - 16 : 0;
    if (size + 16 > r->end - chunk) return 0;
    // Any word may look like a size: the next block, whose own size stands behind this one, must say that this one is
    // used, and end in the same memory.
    const uint64_t next = *reinterpret_cast<const uint64_t*>(chunk + size + 8), next_size = next & ~kFlags;
    const bool next_fits = next_size >= 16 && next_size % 16 == 0 && next_size <= r->end - chunk - size;
    return next & kUsedBefore && next_fits ? size - 8 : 0;
  }

  void meet_elsewhere(uint64_t at, uint64_t word) {
    const uint32_t found = block_of(word, pieces_.of(word));
    if (found == kNone || blocks_[found].way == Way::kStatic || blocks_[found].way == Way::kStack ||
        blocks_[found].way == Way::kBlock)
      return;
    const uint32_t from = block_of(at, pieces_.of(at));
    if (from == found) return;
    Block& b = blocks_[found];
    b.way = from == kNone ? Way::kOther : Way::kBlock;
    b.via = from;
  }

  void gather() {
    Pages<ScanGroup> all;
    Pages<uint32_t> of;  // by stack: one more than its number
    if (!all.take(kStacks) || !of.take(kStacks)) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < block_count_; ++i) {
      const Block& b = blocks_[i];
      if (!b.asked || b.stack >= kStacks) continue;
      if (!of[b.stack]) {
        of[b.stack] = ++count;
        all[count - 1].stack = b.stack;
        for (uint32_t& block : all[count - 1].blocks) block = kNone;
      }
      add(all[of[b.stack] - 1], b);
    }
    std::sort(all.at, all.at + count, [](const ScanGroup& a, const ScanGroup& b) { return a.bytes > b.bytes; });
    result_.record.groups = std::min<uint32_t>(count, kScanGroups);
    for (uint32_t i = 0; i < result_.record.groups; ++i) result_.group[i] = all[i];
  }
  void add(ScanGroup& g, const Block& b) {
    g.bytes += b.bytes;
    ++g.samples;
    switch (b.way) {
      case Way::kNobody:
        g.lost += b.bytes;
        break;
      case Way::kStatic:
        g.by_static += b.bytes;
        count(g.statics, g.static_bytes, kScanStatics, b.root, uint64_t{0}, b.bytes);
        break;
      case Way::kStack:
        g.by_stack += b.bytes;
        g.thread = uint32_t(b.root);
        break;
      case Way::kBlock:
        g.by_block += b.bytes;
        break;
      case Way::kOther:
        g.by_other += b.bytes;
        break;
    }
    if (b.via != kNone) count(g.blocks, g.block_bytes, kScanBlocks, blocks_[b.via].stack, kNone, b.bytes);
  }
  template <class Key>
  static void count(Key* keys, uint64_t* bytes, int room, Key key, Key none, uint64_t more) {
    for (int i = 0; i < room; ++i)
      if (keys[i] == key || keys[i] == none) {
        keys[i] = key, bytes[i] += more;
        return;
      }
  }

  Scan& result_;
  const Owned& owned_;
  Pages<Block> blocks_;
  uint32_t block_count_ = 0, asked_ = 0;
  Pages<Region> regions_;
  size_t region_count_ = 0;
  Pages<Found> waiting_;
  size_t waiting_count_ = 0;
  Pieces pieces_;
};

// Of programs without an agent.
apart::Child child;
Scan* result = nullptr;  // shared with it
uint64_t next_round = 0, next_look = 0;
bool at_work = false;

Lock changing;

bool run_in_child(void*) {
  result->done = Scanner(*result, {}).run() ? 1 : 2;
  return result->done == 1;
}

void by_the_clock(uint64_t passed) {
  if (at_work) {
    const int state = child.state();
    if (state == 0) return;
    at_work = false;
    if (state > 0)
      publish(*result);
    else
      died();
  }
  if (passed < std::max(next_round, kFirstRound)) return;
  next_round = passed + passed / 2;
  if (!may_begin()) return;
  if (!result)
    result =
        static_cast<Scan*>(sys::map(sizeof(Scan), sys::kRead | sys::kWrite, sys::kMapShared | sys::kMapAnonymous, -1));
  if (!result) return;
  *result = Scan{};
  at_work = child.start(run_in_child, nullptr);
}

}  // namespace

bool may_begin() {
  asm volatile(
      "mov %%rbx, 0(%0)\n\tmov %%rbp, 8(%0)\n\tmov %%r12, 16(%0)\n\tmov %%r13, 24(%0)\n\tmov %%r14, 32(%0)\n\tmov "
      "%%r15, 40(%0)"
      :
      : "r"(registers)
      : "memory");
  const sys::Resident now = sys::resident();
  const double estimate = double(now.all - std::min(now.all, now.shared)) * kNsPerByte / kApart,
               passed = double(sys::now_ns() - file::shared->start_ns);
  if (spent_ns + estimate > kStartNs + kShare * passed) {
    file::shared->no_scan = kNoScanTime;
    return false;
  }
  if (!apart::has_room()) {
    file::shared->no_scan = kNoScanTables;
    return false;
  }
  find_stacks(uint64_t(__builtin_frame_address(0)));
  return true;
}

bool run(Scan& found, const Owned& owned) { return Scanner(found, owned).run(); }

void publish(Scan& found) {
  if (found.done != 1) return;
  found.done = 2;
  spent_ns += double(found.record.ns) / kApart;
  if (!found.record.groups) return;
  file::shared->no_scan = kNoScanAsked;
  ring::write(kRecordScan, sys::now_ns(), {&found.record, sizeof found.record},
              {found.group, found.record.groups * sizeof(ScanGroup)});
}

void died() { file::shared->no_scan = kNoScanDied; }

void at_sample(uint64_t now) {
  uint64_t due = __atomic_load_n(&next_look, __ATOMIC_RELAXED);
  if (now < due ||
      !__atomic_compare_exchange_n(&next_look, &due, now + kLookEvery, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  if (file::shared->agent) return walk::look();  // its walks ask for it
  if (!changing.try_lock()) return;
  by_the_clock(now - file::shared->start_ns);
  changing.unlock();
}

void forget() {
  if (result) sys::unmap(result, sizeof(Scan));
  result = nullptr;
  child.forget();
  at_work = false;
  changing = {};
  next_round = next_look = 0;
  spent_ns = 0;
}

void release() {
  child.end();
  forget();
}

}  // namespace millpond::probe::scan
