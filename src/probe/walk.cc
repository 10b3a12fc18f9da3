#include "probe/walk.h"

#include <string.h>

#include <algorithm>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/python_layout.h"
#include "probe/system.h"

namespace millpond::probe::walk {
namespace {

using python::at;
using python::plausible;

// PyTypeObject; the same in every version that has a GIL.
constexpr size_t kObjectType = 8;
constexpr size_t kTypeName = 24, kTypeSize = 32, kTypeFlags = 168, kTypeTraverse = 184, kTypeBase = 256, kTypeIsGc = 328;
constexpr uint64_t kHasGc = 1 << 14;
constexpr uint32_t kNone = ~uint32_t{0};
constexpr uint32_t kHidden = kNone - 1;
constexpr size_t kWordsLooked = 32;  // of an object's body, for pointers to blocks of its own

// Memory that is not there until it is written.
template <class T>
struct Pages {
  T* at = nullptr;
  size_t count = 0;
  Pages() = default;
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  bool take(size_t n) {
    constexpr int kNoReserve = 0x4000;
    at = static_cast<T*>(sys::map(n * sizeof(T), sys::kRead | sys::kWrite, sys::kMapPrivate | sys::kMapAnonymous | kNoReserve, -1));
    count = n;
    return at != nullptr;
  }
  ~Pages() {
    if (at) sys::unmap(at, count * sizeof(T));
  }
  T& operator[](size_t i) { return at[i]; }
};

// Addresses to numbers, open addressing, twice as large when half full.
class Numbers {
 public:
  bool start(size_t capacity) { return table_.take(capacity); }
  // The number of `p`; a new one if `number` is not kNone and there was none.
  uint32_t find(const void* p, uint32_t number = kNone) {
    if (number != kNone && used_ * 2 > table_.count && !grow()) return kNone;
    for (size_t i = place(p);; i = (i + 1) & (table_.count - 1)) {
      Entry& e = table_[i];
      if (e.key == p) return e.number;
      if (e.key) continue;
      if (number == kNone) return kNone;
      e = {p, number};
      ++used_;
      return number;
    }
  }

 private:
  struct Entry {
    const void* key;
    uint32_t number;
  };
  size_t place(const void* p) const { return (uint64_t(p) * 0x9e3779b97f4a7c15u >> 20) & (table_.count - 1); }
  bool grow() {
    Pages<Entry> old;
    old.at = table_.at, old.count = table_.count;
    if (!table_.take(old.count * 2)) {
      table_.at = old.at, table_.count = old.count;
      old.at = nullptr;
      return false;
    }
    for (size_t i = 0; i < old.count; ++i) {
      if (!old[i].key) continue;
      size_t to = place(old[i].key);
      while (table_[to].key) to = (to + 1) & (table_.count - 1);
      table_[to] = old[i];
    }
    return true;
  }
  Pages<Entry> table_;
  size_t used_ = 0;
};

struct Survivor {
  uint64_t address, bytes;
  float blocks;
  uint32_t stack, born_ms, birth;
  uint32_t owner;  // number of the object, or kNone
};

// An object above survivors.
struct Node {
  uint32_t object, parent;         // number of the object; number of the node above, kNone: a root
  uint32_t first_below, next;      // its children
  uint32_t own;                    // first of its own survivors
  uint64_t bytes;                  // of all below and its own
  uint32_t first_born, last_born;  // of these, in milliseconds
  uint32_t span() const { return last_born - first_born; }
};

class Walker {
 public:
  Walker(const Request& request, Walk& result) : request_(request), result_(result) {}

  bool run() {
    const uint64_t begin = busy_ns();
    result_.now_ms = file::since_start_ms(sys::now_ns());
    // A program that says nothing of its rounds: its first quarter is start-up.
    result_.first_ms = file::shared->first_period_ms ? file::shared->first_period_ms : result_.now_ms / 4 + 1;
    if (!objects_.take(request_.room) || !parents_.take(request_.room) || !seen_.start(1 << 16) || !read_survivors() || !read_links()) return false;
    for (size_t i = 0; i < request_.hidden_count; ++i) seen_.find(request_.hidden[i], kHidden);
    for (size_t i = 0; i < request_.root_count; ++i) meet(request_.roots[i]);
    drain(0);
    native_from_ = garbage_from_ = count_;
    if (request_.all && !full_) split_unreached();
    for (size_t i = 0; i < request_.owned_count; ++i) own(reinterpret_cast<const void*>(request_.owned[i].data), seen_.find(reinterpret_cast<const void*>(request_.owned[i].object)), true);
    result_.objects = count_;
    if (!make_tree()) return false;
    find_holders();
    result_.ns = busy_ns() - begin;
    return true;
  }

 private:
  // Of the processor: on a busy machine the clock runs on without us.
  static uint64_t busy_ns() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return uint64_t(t.tv_sec) * 1000000000u + uint64_t(t.tv_nsec);
  }
  // What is alive and was born since the rounds began: earlier blocks are no growth.
  bool read_survivors() {
    if (!survivors_.take(kLiveSlots) || !by_address_.start(1 << 12)) return false;
    const uint64_t span = result_.now_ms > result_.first_ms ? result_.now_ms - result_.first_ms : 1;
    for (uint32_t i = 0; i < kLiveSlots; ++i) {
      Live entry;
      if (!live::read(i, entry) || entry.born_ms < result_.first_ms) continue;
      const auto birth = uint32_t(std::min<uint64_t>((entry.born_ms - result_.first_ms) * kWalkBirths / span, kWalkBirths - 1));
      survivors_[survivor_count_] = {entry.address, entry.bytes, entry.blocks, entry.stack, entry.born_ms, birth, kNone};
      by_address_.find(reinterpret_cast<const void*>(entry.address), survivor_count_++);
      result_.alive += entry.bytes;
    }
    return true;
  }

  // The links of one parent stand one behind another from the number on that its address leads to.
  bool read_links() {
    if (!request_.link_count) return true;
    if (!links_.take(request_.link_count) || !first_link_.start(1 << 10)) return false;
    for (size_t i = 0; i < links_.count; ++i) links_[i] = request_.links[i];
    std::sort(links_.at, links_.at + links_.count, [](const Link& a, const Link& b) { return a.parent < b.parent; });
    for (size_t i = 0; i < links_.count; ++i)
      if (i == 0 || links_[i].parent != links_[i - 1].parent) first_link_.find(reinterpret_cast<const void*>(links_[i].parent), uint32_t(i));
    return true;
  }
  void meet_linked(const void* parent) {
    if (!links_.count) return;
    for (size_t i = first_link_.find(parent); i < links_.count && links_[i].parent == uint64_t(parent); ++i) meet(reinterpret_cast<void*>(links_[i].child));
  }

  static int visit(void* object, void* walker) {
    static_cast<Walker*>(walker)->meet(object);
    return 0;
  }
  void meet(void* object) {
    ++result_.edges;
    if (!plausible(object) || full_) return;
    if (seen_.find(object, count_) != count_) return;  // known
    objects_[count_] = object;
    parents_[count_] = at_;
    if (++count_ == objects_.count) full_ = true;
  }
  void drain(uint32_t from) {
    for (uint32_t i = from; i < count_; ++i) {
      at_ = i;
      char* object = static_cast<char*>(objects_[i]);
      const char* type = at<const char*>(object, kObjectType);
      claim(object, type, i);
      if (is_array(type)) meet_array(object);
      else if (is_gc(object, type)) traverse(object, type, visit, this);
      meet_linked(object);
    }
  }
  static void traverse(void* object, const char* type, int (*visit)(void*, void*), void* argument) {
    at<int (*)(void*, int (*)(void*, void*), void*)>(type, kTypeTraverse)(object, visit, argument);
  }
  static bool is_gc(void* object, const char* type) {
    if (!(at<uint64_t>(type, kTypeFlags) & kHasGc) || !at<void*>(type, kTypeTraverse)) return false;
    const auto ask = at<int (*)(void*)>(type, kTypeIsGc);
    return !ask || ask(object);
  }

  // NumPy's arrays do not say what they refer to: the array that a view is of, and the items of an array of objects.
  static constexpr size_t kArrayData = 16, kArrayDimensions = 24, kArrayShape = 32, kArrayBase = 48, kArrayKind = 56, kArrayFlags = 64, kKindLetter = 24;
  bool is_array(const char* type) {
    for (int i = 0; i < 4 && type; ++i, type = at<const char*>(type, kTypeBase)) {
      if (type == array_type_) return true;
      if (!array_type_ && strcmp(at<const char*>(type, kTypeName), "numpy.ndarray") == 0) {
        array_type_ = type;
        return true;
      }
    }
    return false;
  }
  void meet_array(char* array) {
    if (void* base = at<void*>(array, kArrayBase)) meet(base);
    const char* kind = at<const char*>(array, kArrayKind);
    if (!kind || at<char>(kind, kKindLetter) != 'O' || !(at<int>(array, kArrayFlags) & 3)) return;  // of objects, without gaps
    int64_t count = 1;
    const int64_t* shape = at<const int64_t*>(array, kArrayShape);
    for (int i = 0; i < at<int>(array, kArrayDimensions); ++i) count *= shape[i];
    void** items = at<void**>(array, kArrayData);
    for (int64_t i = 0; i < count && items; ++i)
      if (items[i]) meet(items[i]);
  }

  // The object's own block, behind what the interpreter keeps in front of it, and blocks that its body points to: the items of a list, the table of a
  // dictionary, the numbers of an array.
  void claim(char* object, const char* type, uint32_t number) {
    for (int before : {0, 16, 32}) own(object - before, number);
    const size_t size = at<size_t>(type, kTypeSize);
    const size_t words = std::min(size / 8, kWordsLooked);
    for (size_t i = 2; i < words; ++i) own(at<const void*>(object, i * 8), number);
    // The attributes of an object without a dictionary of its own: an array that a word in front of the object points into, behind a few bytes of the array's (3.11, 3.12).
    constexpr uint64_t kManagedDictionary = 1 << 4;
    if ((python::layout.version != 311 && python::layout.version != 312) || !(at<uint64_t>(type, kTypeFlags) & kManagedDictionary)) return;
    const int64_t place = python::layout.version == 311 ? -32 : -24;
    const uint64_t values = *reinterpret_cast<const uint64_t*>(object + place) & ~uint64_t{1};
    for (uint64_t before = 8; values && before <= 64; before += 8) own(reinterpret_cast<const void*>(values - before), number);
  }
  // nearest: of several tensors that share their data, the one nearest to a root keeps it.
  void own(const void* block, uint32_t number, bool nearest = false) {
    if (!live::may_hold(block) || number >= kHidden) return;
    const uint32_t found = by_address_.find(block);
    if (found != kNone && (survivors_[found].owner == kNone || (nearest && number < survivors_[found].owner))) survivors_[found].owner = number;
  }

  // As the collector does it: references that come from within the set are taken off each count; what has some left is held from elsewhere. Dictionaries
  // that were made since the list was are a part of the set too.
  struct Unreached {
    Walker* walker;
    Numbers numbers;
    Pages<void*> objects;
    Pages<int64_t> counts;
    uint32_t count = 0;

    void add(void* object, int64_t references) {
      if (count == objects.count || walker->seen_.find(object) != kNone || numbers.find(object, count) != count) return;
      objects[count] = object;
      counts[count++] = references;
    }
    static int add_referent(void* object, void* set) {
      if (is_gc(object, at<const char*>(object, kObjectType))) static_cast<Unreached*>(set)->add(object, references(object));
      return 0;
    }
    static int take_off(void* object, void* set) {
      const uint32_t i = static_cast<Unreached*>(set)->numbers.find(object);
      if (i != kNone) --static_cast<Unreached*>(set)->counts[i];
      return 0;
    }
    void each(int (*visit)(void*, void*)) {
      for (uint32_t i = 0; i < count; ++i) traverse(objects[i], at<const char*>(objects[i], kObjectType), visit, this);
    }
  };
  void split_unreached() {
    Unreached set{this, {}, {}, {}};
    if (!set.objects.take(request_.room) || !set.counts.take(request_.room) || !set.numbers.start(1 << 12)) return;
    for (size_t i = 0; i < request_.all_count; ++i) set.add(request_.all[i], references(request_.all[i]) - 1);  // one is the list's
    set.each(Unreached::add_referent);
    set.each(Unreached::take_off);
    result_.unreached_objects = set.count;
    for (uint32_t i = 0; i < set.count; ++i)
      if (set.counts[i] > 0) at_ = kNone, meet(set.objects[i]);
    drain(native_from_);
    garbage_from_ = count_;
    for (uint32_t i = 0; i < set.count; ++i) at_ = kNone, meet(set.objects[i]);
    drain(garbage_from_);
  }
  // Objects that live for ever (3.12) have a count that says so, and it is large.
  static int64_t references(void* object) { return python::layout.version >= 312 ? int64_t(at<uint32_t>(object, 0)) : at<int64_t>(object, 0); }

  bool make_tree() {
    if (!nodes_.take(size_t(kLiveSlots) * 24) || !next_survivor_.take(kLiveSlots) || !node_of_.start(1 << 12)) return false;
    for (uint32_t i = 0; i < survivor_count_; ++i) {
      Survivor& s = survivors_[i];
      if (s.owner == kNone) continue;
      (s.owner < native_from_ ? result_.reached : s.owner < garbage_from_ ? result_.native : result_.garbage) += s.bytes;
      const uint32_t owner = node(s.owner);
      if (owner == kNone) continue;
      next_survivor_[i] = nodes_[owner].own;
      nodes_[owner].own = i;
      for (uint32_t n = owner; n != kNone; n = nodes_[n].parent) {
        nodes_[n].bytes += s.bytes;
        nodes_[n].first_born = std::min(nodes_[n].first_born, s.born_ms);
        nodes_[n].last_born = std::max(nodes_[n].last_born, s.born_ms);
      }
    }
    return true;
  }
  uint32_t node(uint32_t object) {
    uint32_t made = node_of_.find(objects_[object], node_count_);
    if (made != node_count_ || node_count_ >= nodes_.count) return made == node_count_ ? kNone : made;
    Node& n = nodes_[node_count_++];
    n = {object, kNone, kNone, kNone, kNone, 0, kNone, 0};
    if (parents_[object] != kNone) {
      const uint32_t parent = node(parents_[object]);
      nodes_[made].parent = parent;
      if (parent != kNone) nodes_[made].next = nodes_[parent].first_below, nodes_[parent].first_below = made;
    }
    return made;
  }

  void find_holders() {
    const uint64_t least = std::max<uint64_t>(result_.alive / 100, 1 << 12);
    for (uint32_t i = 0; i < node_count_; ++i) {
      if (nodes_[i].parent != kNone) continue;
      if (nodes_[i].object < native_from_) descend(i, least);
      else gather_alike(i);
    }
    for (uint32_t i = 0; i < alike_count_; ++i)
      if (alike_[i].holder.bytes >= least) keep(alike_[i].node, alike_[i].holder);
    std::sort(result_.holder, result_.holder + result_.holders, [](const WalkHolder& a, const WalkHolder& b) { return a.bytes > b.bytes; });
  }
  bool fills_as_long(uint32_t below, uint32_t n, uint64_t least) {
    const Node& b = nodes_[below];
    return b.bytes >= least && b.span() > 0 && (b.span() >= nodes_[n].span() / 2 || still_fills(b));
  }
  // It began later than others below the same node, and has been filled ever since: not in one round, and not until some time ago.
  bool still_fills(const Node& b) const {
    const uint64_t age = result_.now_ms - std::min<uint64_t>(b.first_born, result_.now_ms), time = result_.now_ms - std::min(result_.first_ms, result_.now_ms);
    return age >= time / 8 && b.span() >= age / 2 && result_.now_ms - std::min<uint64_t>(b.last_born, result_.now_ms) <= age / 4;
  }
  // Below a node, what is itself filled over a time as long as the node's is looked into; the rest is the node's.
  void descend(uint32_t top, uint64_t least) {
    Pages<uint32_t> waiting;
    if (!waiting.take(node_count_ + 1)) return;
    size_t count = 0;
    waiting[count++] = top;
    while (count) {
      const uint32_t n = waiting[--count];
      WalkHolder h{};
      for (uint32_t& stack : h.stacks) stack = kNone;
      const uint32_t links = repeats(n);
      if (links >= kChain) {
        h.repeats = links;
        gather(n, h);
      } else {
        uint32_t only = kNone;
        for (uint32_t c = nodes_[n].first_below; c != kNone; c = nodes_[c].next) {
          if (fills_as_long(c, n, least)) waiting[count++] = c;
          else only = c, ++h.items;
        }
        if (h.items == 1 && nodes_[n].own == kNone) {  // what has one thing below it is a step on the way
          waiting[count++] = only;
          continue;
        }
        for (uint32_t c = nodes_[n].first_below; c != kNone; c = nodes_[c].next)
          if (!fills_as_long(c, n, least)) gather(c, h);
        gather_own(n, h);
      }
      if (h.bytes >= least) keep(n, h);
    }
  }
  // What no root reaches has no object above it that could be its holder: all of one type are told together.
  void gather_alike(uint32_t root) {
    const void* type = type_of(root);
    const bool garbage = nodes_[root].object >= garbage_from_;
    Alike* same = std::find_if(alike_, alike_ + alike_count_, [&](const Alike& a) { return a.type == type && a.garbage == garbage; });
    if (same == alike_ + kMostAlike) --same;  // the last one stands for all types that are left
    if (same == alike_ + alike_count_) {
      *same = {type, root, garbage, {}};
      for (uint32_t& stack : same->holder.stacks) stack = kNone;
      ++alike_count_;
    }
    ++same->holder.items;
    gather(root, same->holder);
  }
  const void* type_of(uint32_t n) { return at<const void*>(objects_[nodes_[n].object], kObjectType); }

  // Objects of one type, each of which holds the next: a linked list has no object whose parts are filled in short times.
  static constexpr uint32_t kChain = 8;
  uint32_t repeats(uint32_t n) {
    const void* type = type_of(n);
    uint32_t links = 0, steps = 0;
    for (uint32_t c = n; c != kNone && steps < 4096; ++steps) {
      if (type_of(c) == type) ++links;
      uint32_t heaviest = kNone;
      for (uint32_t b = nodes_[c].first_below; b != kNone; b = nodes_[b].next)
        if (heaviest == kNone || nodes_[b].bytes > nodes_[heaviest].bytes) heaviest = b;
      if (heaviest == kNone || nodes_[heaviest].bytes * 2 < nodes_[c].bytes) break;
      c = heaviest;
    }
    return links * 3 > steps ? links : 0;  // an object and its dictionary take turns
  }
  void gather(uint32_t top, WalkHolder& h) {
    for (uint32_t n = top;;) {  // all below, without a stack: down first, then beside, then up
      gather_own(n, h);
      if (nodes_[n].first_below != kNone) {
        n = nodes_[n].first_below;
        continue;
      }
      while (n != top && nodes_[n].next == kNone) n = nodes_[n].parent;
      if (n == top) return;
      n = nodes_[n].next;
    }
  }
  void gather_own(uint32_t n, WalkHolder& h) {
    for (uint32_t i = nodes_[n].own; i != kNone; i = next_survivor_[i]) {
      const Survivor& s = survivors_[i];
      h.bytes += s.bytes;
      h.blocks += s.blocks;
      ++h.samples;
      h.births[s.birth] += s.bytes;
      add_stack(h, s);
    }
  }
  // The most frequent few, as far as few places can know them: a new stack takes the place of the least.
  static void add_stack(WalkHolder& h, const Survivor& s) {
    int least = 0;
    for (int i = 0; i < kWalkStacks; ++i) {
      if (h.stacks[i] == s.stack || h.stacks[i] == kNone) {
        h.stacks[i] = s.stack;
        h.stack_bytes[i] += s.bytes;
        return;
      }
      if (h.stack_bytes[i] < h.stack_bytes[least]) least = i;
    }
    if (h.stack_bytes[least] < s.bytes) h.stacks[least] = s.stack, h.stack_bytes[least] = s.bytes;
  }
  void keep(uint32_t n, WalkHolder& h) {
    const uint32_t object = nodes_[n].object;
    h.how = object < native_from_ ? kWalkReached : object < garbage_from_ ? kWalkNative : kWalkGarbage;
    for (uint32_t o = object; o != kNone && h.depth < kWalkDepth; o = parents_[o]) {
      WalkStep& step = h.steps[h.depth++];
      step.object = uint64_t(objects_[o]);
      const char* type = at<const char*>(objects_[o], kObjectType);
      strncpy(step.type, at<const char*>(type, kTypeName), kWalkType - 1);
    }
    if (result_.holders < kWalkHolders) {
      result_.holder[result_.holders++] = h;
      return;
    }
    WalkHolder* least = std::min_element(result_.holder, result_.holder + kWalkHolders, [](const WalkHolder& a, const WalkHolder& b) { return a.bytes < b.bytes; });
    if (least->bytes < h.bytes) *least = h;
  }

  const Request& request_;
  Walk& result_;
  Pages<void*> objects_;
  Pages<uint32_t> parents_;
  uint32_t count_ = 0, at_ = kNone, native_from_ = kNone, garbage_from_ = kNone;
  bool full_ = false;
  Numbers seen_, by_address_, node_of_, first_link_;
  Pages<Link> links_;
  Pages<Survivor> survivors_;
  uint32_t survivor_count_ = 0;
  Pages<uint32_t> next_survivor_;
  Pages<Node> nodes_;
  uint32_t node_count_ = 0;
  const char* array_type_ = nullptr;
  struct Alike {
    const void* type;
    uint32_t node;  // the first of them
    bool garbage;
    WalkHolder holder;
  };
  static constexpr uint32_t kMostAlike = 24;
  Alike alike_[kMostAlike] = {};
  uint32_t alike_count_ = 0;
};

}  // namespace

bool run(const Request& request, Walk& result) { return Walker(request, result).run(); }

}  // namespace millpond::probe::walk
