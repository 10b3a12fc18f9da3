#include "probe/walk.h"

#include <string.h>

#include <algorithm>

#include "probe/file.h"
#include "probe/live.h"
#include "probe/pages.h"
#include "probe/python_layout.h"
#include "probe/scan.h"
#include "probe/system.h"

namespace millpond::probe::walk {
namespace {

using python::at;
using python::plausible;

// PyTypeObject; the same in every version that has a GIL.
constexpr size_t kObjectType = 8;
constexpr size_t kTypeName = 24, kTypeSize = 32, kTypeFlags = 168, kTypeTraverse = 184, kTypeBase = 256,
                 kTypeDictOffset = 288, kTypeIsGc = 328;
constexpr uint64_t kHasGc = 1 << 14, kManagedDictionary = 1 << 4;
constexpr uint32_t kNone = ~uint32_t{0};
constexpr uint32_t kHidden = kNone - 1, kLater = kNone - 2;  // numbers of objects that are not walked into
constexpr size_t kWordsLooked = 32;                          // of an object's body, for pointers to blocks of its own
// What a holder has at least: a thousandth of all, so that a small leak beside a large one is told, and never more than
// what a leak of 1 MB has gained after a few rounds.
constexpr uint64_t kLeastShare = 1000, kLeastBytes = 1 << 12, kMostLeast = 128 << 10;

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
  void add(uint64_t more, uint32_t first, uint32_t last) {
    bytes += more;
    first_born = std::min(first_born, first);
    last_born = std::max(last_born, last);
  }
};

class Walker {
 public:
  Walker(const Request& request, Walk& result) : request_(request), result_(&result) {}

  bool run(Walk& of_given, Scan* native) {
    const uint64_t begin = busy_ns();
    result_->now_ms = file::since_start_ms(sys::now_ns());
    // A program that says nothing of its rounds: its first quarter is start-up.
    result_->first_ms = file::shared->first_period_ms ? file::shared->first_period_ms : result_->now_ms / 4 + 1;
    if (!objects_.take(request_.room) || !parents_.take(request_.room) || !seen_.start(1 << 13) || !read_survivors() ||
        !read_links())
      return false;
    for (size_t i = 0; i < request_.hidden_count; ++i) seen_.find(request_.hidden[i], kHidden);
    for (size_t i = 0; i < request_.later_count; ++i) seen_.find(request_.later[i], kLater);
    meet_roots();
    own_tensors();
    for (uint32_t i = 0; i < survivor_count_; ++i)
      if (survivors_[i].owner == kNone) result_->unclaimed += survivors_[i].bytes;
    if (!request_.shallow && !full_) meet_later();
    native_from_ = garbage_from_ = count_;
    if (request_.all && !request_.shallow && !full_) split_unreached();
    own_tensors();
    for (uint32_t i = 0; i < survivor_count_; ++i)
      if (survivors_[i].owner == kNone && survivors_[i].birth >= kWalkBirths / 2)
        result_->lately += survivors_[i].bytes;
    result_->objects = count_;
    result_->full = full_;
    if (!make_tree()) return false;
    find_holders();
    result_->ns = busy_ns() - begin;
    if (!request_.given_count)
      __atomic_store_n(&result_->done, uint64_t{1}, __ATOMIC_RELEASE);  // whatever becomes of the rest
    if (native && wants_scan(*result_)) native->done = scan::run(*native, {is_owned, this}) ? 1 : 2;
    return !request_.given_count || hold_given(of_given);
  }

 private:
  static bool is_owned(const void* walker, uint64_t address) {
    Walker& w = *const_cast<Walker*>(static_cast<const Walker*>(walker));
    const uint32_t found = w.by_address_.find(reinterpret_cast<const void*>(address));
    return found != kNone && w.survivors_[found].owner != kNone;
  }
  // What is alive and was born since the rounds began: earlier blocks are no growth.
  bool read_survivors() {
    if (!survivors_.take(kLiveSlots) || !by_address_.start(1 << 12)) return false;
    for (uint32_t i = live::next(0); i < kLiveSlots; i = live::next(i + 1)) {
      Live entry;
      if (live::read(i, entry) && entry.born_ms >= result_->first_ms)
        add_survivor({entry.address, entry.bytes, entry.blocks, entry.stack, uint32_t(entry.born_ms),
                      part_of(entry.born_ms), kNone});
    }
    return true;
  }
  uint32_t part_of(uint64_t born_ms) const {
    const uint64_t span = result_->now_ms > result_->first_ms ? result_->now_ms - result_->first_ms : 1;
    return uint32_t(std::min<uint64_t>((born_ms - result_->first_ms) * kWalkBirths / span, kWalkBirths - 1));
  }
  void add_survivor(const Survivor& s) {
    survivors_[survivor_count_] = s;
    by_address_.find(reinterpret_cast<const void*>(s.address), survivor_count_++);
    result_->alive += s.bytes;
  }

  // The same objects, with the blocks of another memory in place of our own.
  bool hold_given(Walk& result) {
    result.now_ms = result_->now_ms, result.first_ms = result_->first_ms, result.objects = result_->objects;
    result_ = &result;
    survivors_.release(), next_survivor_.release(), nodes_.release();
    survivor_count_ = node_count_ = alike_count_ = whole_ = 0;
    is_given_ = true;
    const size_t count = std::min<size_t>(request_.given_count, kLiveSlots);
    if (!survivors_.take(kLiveSlots) || !by_address_.start(1 << 12)) return false;
    for (size_t i = 0; i < count; ++i) {
      const Given& block = request_.given[i];
      const uint64_t born = result.now_ms - std::min(block.age_ms, result.now_ms);
      if (born >= result.first_ms)
        add_survivor({block.address, block.bytes, 1, uint32_t(block.label), uint32_t(born), part_of(born), kNone});
    }
    own_tensors();
    if (!make_tree()) return false;
    find_holders();
    return true;
  }

  // The links of one parent stand one behind another from the number on that its address leads to.
  bool read_links() {
    if (!request_.link_count) return true;
    if (!links_.take(request_.link_count) || !first_link_.start(1 << 10)) return false;
    for (size_t i = 0; i < links_.count; ++i) links_[i] = request_.links[i];
    std::sort(links_.at, links_.at + links_.count, [](const Link& a, const Link& b) { return a.parent < b.parent; });
    for (size_t i = 0; i < links_.count; ++i)
      if (i == 0 || links_[i].parent != links_[i - 1].parent)
        first_link_.find(reinterpret_cast<const void*>(links_[i].parent), uint32_t(i));
    return true;
  }
  void meet_linked(const void* parent) {
    if (!links_.count) return;
    for (size_t i = first_link_.find(parent); i < links_.count && links_[i].parent == uint64_t(parent); ++i)
      meet(reinterpret_cast<void*>(links_[i].child));
  }

  void own_tensors() {
    for (size_t i = 0; i < request_.owned_count; ++i) {
      const bool by_graph = request_.owned[i].object & 1;
      const auto data = reinterpret_cast<const void*>(request_.owned[i].data);
      const uint32_t number = seen_.find(reinterpret_cast<const void*>(request_.owned[i].object & ~uint64_t{1}));
      own(data, number, true);
      if (is_given_ && !by_graph && number < native_from_)
        if (const uint32_t found = by_address_.find(data); found != kNone) survivors_[found].stack &= ~1u;
    }
  }
  // Roots come in ranks, with None between them: what a rank reaches is told by it, however short a way a later one has
  // to it.
  void meet_roots() {
    uint32_t from = 0;
    for (size_t i = 0; i < request_.root_count; ++i) {
      if (strcmp(at<const char*>(at<const char*>(request_.roots[i], kObjectType), kTypeName), "NoneType") == 0) {
        drain(from);
        from = count_, at_ = kNone;
      } else {
        meet(request_.roots[i]);
      }
    }
    drain(from);
  }
  // Each of them is a root: what has been reached without them keeps its shorter way.
  void meet_later() {
    const uint32_t from = count_;
    for (size_t i = 0; i < request_.later_count && !full_; ++i) {
      void* object = request_.later[i];
      if (seen_.find(object) != kLater) continue;
      seen_.renumber(object, count_);
      objects_[count_] = object;
      parents_[count_] = kNone;
      if (++count_ == objects_.count) full_ = true;
    }
    drain(from);
  }

  static int visit(void* object, void* walker) {
    static_cast<Walker*>(walker)->meet(object);
    return 0;
  }
  void meet(void* object) {
    if (!plausible(object) || full_) return;
    // Numbers and bytes have one block and refer to nothing: unless it was sampled there is nothing to know of them,
    // and a program may have millions.
    if (is_plain(at<const char*>(object, kObjectType)) && !live::may_hold(object)) return;
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
      if (is_array(type))
        meet_array(object);
      else if (is_gc(object, type))
        traverse(object, type, visit, this);
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

  static constexpr uint64_t kIsNumber = 1 << 24, kIsBytes = 1 << 27;
  bool is_plain(const char* type) {
    if (type == float_type_ || type == plain_type_) return true;
    const uint64_t flags = at<uint64_t>(type, kTypeFlags);
    if (flags & kHasGc) return false;
    if (!float_type_ && strcmp(at<const char*>(type, kTypeName), "float") == 0) return float_type_ = type, true;
    // A text may have a second block, in another form of it.
    if (!(flags & (kIsNumber | kIsBytes)) || at<const void*>(type, kTypeTraverse)) return false;
    return plain_type_ = type, true;
  }

  // NumPy's arrays do not say what they refer to: the array that a view is of, and the items of an array of objects.
  static constexpr size_t kArrayData = 16, kArrayDimensions = 24, kArrayShape = 32, kArrayBase = 48, kArrayKind = 56,
                          kArrayFlags = 64, kKindLetter = 24;
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
    if (!kind || at<char>(kind, kKindLetter) != 'O' || !(at<int>(array, kArrayFlags) & 3))
      return;  // of objects, without gaps
    int64_t count = 1;
    const int64_t* shape = at<const int64_t*>(array, kArrayShape);
    for (int i = 0; i < at<int>(array, kArrayDimensions); ++i) count *= shape[i];
    void** items = at<void**>(array, kArrayData);
    for (int64_t i = 0; i < count && items; ++i)
      if (items[i]) meet(items[i]);
  }

  // The object's own block, behind what the interpreter keeps in front of it, and blocks that its body points to: the
  // items of a list, the table of a dictionary, the numbers of an array.
  void claim(char* object, const char* type, uint32_t number) {
    for (int before : {0, 16, 32}) own(object - before, number);
    const size_t size = at<size_t>(type, kTypeSize);
    const size_t words = std::min(size / 8, kWordsLooked);
    for (size_t i = 2; i < words; ++i) own(at<const void*>(object, i * 8), number);
    // The attributes of an object: an array that a word in front of the object points into, or one of its dictionary if
    // it has been asked for that, behind a few bytes of the array's (3.11, 3.12; later they lie in the object's own
    // block).
    constexpr size_t kDictValues = 40;
    if (python::layout.version != 311 && python::layout.version != 312) return;
    const uint64_t flags = at<uint64_t>(type, kTypeFlags);
    uint64_t values = 0;
    if (flags & kIsDict)
      values = at<uint64_t>(object, kDictValues);
    else if (flags & kManagedDictionary)
      values = *reinterpret_cast<const uint64_t*>(object + (python::layout.version == 311 ? -32 : -24)) & ~uint64_t{1};
    for (uint64_t before = 8; values && before <= 64; before += 8)
      own(reinterpret_cast<const void*>(values - before), number);
  }
  // nearest: of several tensors that share their data, the one nearest to a root keeps it.
  void own(const void* block, uint32_t number, bool nearest = false) {
    if (number >= kLater || !(is_given_ || live::may_hold(block))) return;
    const uint32_t found = by_address_.find(block);
    if (found != kNone && (survivors_[found].owner == kNone || (nearest && number < survivors_[found].owner)))
      survivors_[found].owner = number;
  }

  // As the collector does it: references that come from within the set are taken off each count; what has some left is
  // held from elsewhere. Dictionaries that were made since the list was are a part of the set too.
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
      if (is_gc(object, at<const char*>(object, kObjectType)))
        static_cast<Unreached*>(set)->add(object, references(object));
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
    for (size_t i = 0; i < request_.all_count; ++i)
      set.add(request_.all[i], references(request_.all[i]) - 1);  // one is the list's
    set.each(Unreached::add_referent);
    set.each(Unreached::take_off);
    for (uint32_t i = 0; i < set.count; ++i)
      if (set.counts[i] > 0) at_ = kNone, meet(set.objects[i]);
    drain(native_from_);
    garbage_from_ = count_;
    // A circle is told by the type of what is met first: an object of a class says more than its dictionary or a list.
    // So each is gone through before the next one is met, and what lies in a circle belongs to it.
    for (const bool of_class : {true, false})
      for (uint32_t i = 0; i < set.count; ++i) {
        if (is_of_class(set.objects[i]) != of_class) continue;
        const uint32_t from = count_;
        at_ = kNone;
        meet(set.objects[i]);
        drain(from);
      }
  }
  static bool is_of_class(void* object) {
    constexpr uint64_t kMadeByClass = 1 << 9;
    return at<uint64_t>(at<const char*>(object, kObjectType), kTypeFlags) & kMadeByClass;
  }
  // Objects that live for ever (3.12) have a count that says so, and it is large.
  static int64_t references(void* object) {
    return python::layout.version >= 312 ? int64_t(at<uint32_t>(object, 0)) : at<int64_t>(object, 0);
  }

  bool make_tree() {
    if (!nodes_.take(size_t(kLiveSlots) * 24) || !next_survivor_.take(kLiveSlots) || !node_of_.start(1 << 12))
      return false;
    for (uint32_t i = 0; i < survivor_count_; ++i) {
      const Survivor& s = survivors_[i];
      if (s.owner == kNone) continue;
      (s.owner < native_from_    ? result_->reached
       : s.owner < garbage_from_ ? result_->native
                                 : result_->garbage) += s.bytes;
      const uint32_t owner = node(s.owner);
      if (owner == kNone) continue;
      next_survivor_[i] = nodes_[owner].own;
      nodes_[owner].own = i;
      nodes_[owner].add(s.bytes, s.born_ms, s.born_ms);
    }
    return sum_up();
  }
  // The node of an object, with all above it that are not there yet. Without recursion: a linked list is as deep as it
  // is long.
  uint32_t node(uint32_t object) {
    uint32_t first = kNone;
    for (uint32_t below = kNone; object != kNone; object = parents_[object]) {
      const uint32_t made = node_of_.find(objects_[object], node_count_);
      if (made == kNone || made == nodes_.count) break;  // no room: what is below it is a root of its own
      const bool fresh = made == node_count_;
      if (fresh) nodes_[node_count_++] = {object, kNone, kNone, kNone, kNone, 0, kNone, 0};
      if (first == kNone) first = made;
      if (below != kNone)
        nodes_[below].parent = made, nodes_[below].next = nodes_[made].first_below, nodes_[made].first_below = below;
      if (!fresh) break;
      below = made;
    }
    return first;
  }
  // What a node has goes to the one above it, the deepest first: an object has a higher number than the one it was met
  // from.
  bool sum_up() {
    Pages<uint32_t> order;
    if (!order.take(node_count_ + 1)) return false;
    for (uint32_t i = 0; i < node_count_; ++i) order[i] = i;
    std::sort(order.at, order.at + node_count_,
              [&](uint32_t a, uint32_t b) { return nodes_[a].object > nodes_[b].object; });
    for (uint32_t i = 0; i < node_count_; ++i) {
      const Node& n = nodes_[order[i]];
      if (n.parent != kNone) nodes_[n.parent].add(n.bytes, n.first_born, n.last_born);
    }
    return true;
  }

  void find_holders() {
    const uint64_t least = std::clamp<uint64_t>(result_->alive / kLeastShare, kLeastBytes, kMostLeast);
    for (uint32_t i = 0; i < node_count_; ++i) {
      if (nodes_[i].parent != kNone) continue;
      if (nodes_[i].object < native_from_)
        descend(i, least);
      else
        gather_alike(i);
    }
    for (uint32_t i = 0; i < alike_count_; ++i)
      if (alike_[i].holder.bytes >= least) keep(alike_[i].node, alike_[i].holder);
    std::sort(result_->holder, result_->holder + result_->holders,
              [](const WalkHolder& a, const WalkHolder& b) { return a.bytes > b.bytes; });
  }
  bool fills_as_long(uint32_t below, uint32_t n, uint64_t least) {
    const Node& b = nodes_[below];
    return b.bytes >= least && b.span() > 0 && (b.span() >= nodes_[n].span() / 2 || still_fills(b));
  }
  // It began later than others below the same node, and has been filled ever since: not in one round, and not until
  // some time ago.
  bool still_fills(const Node& b) const {
    const uint64_t age = result_->now_ms - std::min<uint64_t>(b.first_born, result_->now_ms),
                   time = result_->now_ms - std::min(result_->first_ms, result_->now_ms);
    return age >= time / 8 && b.span() >= age / 2 &&
           result_->now_ms - std::min<uint64_t>(b.last_born, result_->now_ms) <= age / 4;
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
      if (links) {
        h.repeats = links;
        gather(n, h);
      } else {
        uint32_t only = kNone;
        h.alike = filled_alike(n, least);
        for (uint32_t c = nodes_[n].first_below; c != kNone; c = nodes_[c].next) {
          if (!h.alike && fills_as_long(c, n, least))
            waiting[count++] = c;
          else
            only = c, ++h.items;
        }
        if (h.items == 1 && nodes_[n].own == kNone) {  // what has one thing below it is a step on the way
          const uint32_t fullest = fullest_above_one(n);
          if (fullest == kNone) {
            waiting[count++] = only;
            continue;
          }
          WalkHolder one{};
          for (uint32_t& stack : one.stacks) stack = kNone;
          one.items = 1;
          gather(nodes_[fullest].first_below, one);
          keep_whole(fullest, least);
          if (one.bytes >= least) keep(fullest, one);
          continue;
        }
        for (uint32_t c = nodes_[n].first_below; c != kNone; c = nodes_[c].next)
          if (h.alike || !fills_as_long(c, n, least)) gather(c, h);
        gather_own(n, h);
        if (!h.alike) keep_whole(n, least);
      }
      if (h.bytes >= least) keep(n, h);
    }
  }
  // Where a single survivor lies below a node, births do not tell which of the objects on the way to it is filled: the
  // container among them that has most items is, and of a list with a thousand records one may have been sampled.
  // kNone: there are several survivors, or no container with a few items.
  uint32_t fullest_above_one(uint32_t n) {
    constexpr int64_t kFew = 4;
    uint32_t best = kNone;
    int64_t most = kFew - 1;
    for (uint32_t c = n;; c = nodes_[c].first_below) {
      const uint32_t below = nodes_[c].first_below;
      if (below == kNone) return best;
      if (nodes_[below].next != kNone || nodes_[c].own != kNone) return kNone;
      const int64_t length = length_of(c);
      if (length > most) most = length, best = c;
    }
  }
  // Of a list, a set, a deque, or a dictionary that is not the names of something.
  int64_t length_of(uint32_t n) {
    constexpr size_t kLength = 16;  // in all four
    const uint32_t above = nodes_[n].parent;
    if (above == kNone || !is_container(n)) return 0;
    char* const object = static_cast<char*>(objects_[nodes_[n].object]);
    if ((flags_of(n) & kIsDict) && is_names_of(static_cast<char*>(objects_[nodes_[above].object]), object)) return 0;
    return at<int64_t>(object, kLength);
  }
  // Whether a dictionary is the attributes of the object that leads to it, or the globals of a function.
  static bool is_names_of(char* object, const void* dictionary) {
    const char* type = at<const char*>(object, kObjectType);
    if (strcmp(at<const char*>(type, kTypeName), "function") == 0) return true;
    if (python::layout.version >= 311 && at<uint64_t>(type, kTypeFlags) & kManagedDictionary)
      return at<const void*>(object - 24, 0) == dictionary;
    const int64_t offset = at<int64_t>(type, kTypeDictOffset);
    return offset < 0 || (offset > 0 && at<const void*>(object, size_t(offset)) == dictionary);
  }
  // Single blocks in what has few of them, like the variables of a function: one that is made anew in every round, and
  // larger each time, has but one birth.
  void keep_whole(uint32_t n, uint64_t least, int levels = 4) {
    constexpr uint32_t kMostWhole = 6, kMostBelow = 24, kMostKept = 12;
    constexpr uint64_t kLeastWhole = 64 << 10;
    const auto is_whole = [&](uint32_t c) {
      const Node& b = nodes_[c];
      return b.first_below == kNone && b.own != kNone && next_survivor_[b.own] == kNone && b.bytes >= kLeastWhole;
    };
    uint32_t count = 0, below = 0;
    for (uint32_t c = nodes_[n].first_below; c != kNone && below <= kMostBelow; c = nodes_[c].next)
      count += is_whole(c), ++below;
    if (below > kMostBelow) return;
    for (uint32_t c = nodes_[n].first_below; c != kNone && whole_ < kMostKept; c = nodes_[c].next) {
      if (is_whole(c) && count <= kMostWhole) {
        WalkHolder h{};
        for (uint32_t& stack : h.stacks) stack = kNone;
        gather_own(c, h);
        h.whole = 1;
        ++whole_;
        keep(c, h);
      } else if (nodes_[c].bytes >= kLeastWhole && levels > 0 && !fills_as_long(c, n, least)) {
        keep_whole(c, least, levels - 1);
      }
    }
  }

  // Containers right below another one, all of one type and filled from the same place: the lists of a dictionary of
  // lists. They are one holder together. How many; 0: what is filled below it for as long as it was is not like that.
  uint32_t filled_alike(uint32_t n, uint64_t least) {
    if (nodes_[n].parent == kNone || !(flags_of(n) & (kIsList | kIsTuple | kIsDict))) return 0;
    uint32_t count = 0;
    WalkHolder first{}, other{};
    const void* type = nullptr;
    for (uint32_t c = nodes_[n].first_below; c != kNone; c = nodes_[c].next) {
      if (!fills_as_long(c, n, least)) continue;
      if (!is_container(c) || (type && type != type_of(c))) return 0;
      for (uint32_t b = nodes_[c].first_below; b != kNone; b = nodes_[b].next)
        if (fills_as_long(b, c, least)) return 0;
      type = type_of(c);
      WalkHolder& h = count++ ? other : first;
      h = WalkHolder{};
      for (uint32_t& stack : h.stacks) stack = kNone;
      gather(c, h);
      const auto is_first = [&](uint32_t stack) {
        return stack != kNone &&
               std::find(first.stacks, first.stacks + kWalkStacks, stack) != first.stacks + kWalkStacks;
      };
      if (std::none_of(h.stacks, h.stacks + kWalkStacks, is_first)) return 0;
    }
    return count > 1 ? count : 0;
  }
  static constexpr uint64_t kIsList = 1 << 25, kIsTuple = 1 << 26, kIsDict = 1 << 29;
  uint64_t flags_of(uint32_t n) { return at<uint64_t>(type_of(n), kTypeFlags); }
  bool is_container(uint32_t n) {
    const char* name = at<const char*>(type_of(n), kTypeName);
    return flags_of(n) & (kIsList | kIsDict) || strcmp(name, "set") == 0 || strcmp(name, "collections.deque") == 0;
  }

  // What no root reaches has no object above it that could be its holder: all of one type are told together.
  void gather_alike(uint32_t root) {
    const void* type = type_of(root);
    const bool garbage = nodes_[root].object >= garbage_from_;
    Alike* same = std::find_if(alike_, alike_ + alike_count_,
                               [&](const Alike& a) { return a.type == type && a.garbage == garbage; });
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

  // Objects of one type, each of which holds the next: a linked list has no object whose parts are filled in short
  // times. What merely lies inside one another has nothing of its own beside the next, so a few links that have are
  // enough; of small ones, which samples seldom meet, it takes more.
  static constexpr uint32_t kChain = 8, kChainFilled = 4;
  uint32_t repeats(uint32_t n) {
    const void* type = type_of(n);
    uint32_t links = 0, filled = 0, steps = 0;
    for (uint32_t c = n; c != kNone && steps < 4096; ++steps) {
      uint32_t heaviest = kNone;
      for (uint32_t b = nodes_[c].first_below; b != kNone; b = nodes_[b].next)
        if (heaviest == kNone || nodes_[b].bytes > nodes_[heaviest].bytes) heaviest = b;
      if (type_of(c) == type) ++links;
      if (heaviest == kNone || nodes_[heaviest].bytes * 2 < nodes_[c].bytes) break;
      filled += nodes_[heaviest].bytes < nodes_[c].bytes;
      c = heaviest;
    }
    const bool is_chain = links >= kChain || std::min(links, filled) >= kChainFilled;
    return is_chain && links * 3 > steps ? links : 0;  // an object and its dictionary take turns
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
    if (result_->holders < kWalkHolders) {
      result_->holder[result_->holders++] = h;
      return;
    }
    WalkHolder* least = std::min_element(result_->holder, result_->holder + kWalkHolders,
                                         [](const WalkHolder& a, const WalkHolder& b) { return a.bytes < b.bytes; });
    if (least->bytes < h.bytes) *least = h;
  }

  const Request& request_;
  Walk* result_;
  bool is_given_ = false;  // survivors are the given blocks
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
  const char *array_type_ = nullptr, *float_type_ = nullptr, *plain_type_ = nullptr;
  struct Alike {
    const void* type;
    uint32_t node;  // the first of them
    bool garbage;
    WalkHolder holder;
  };
  static constexpr uint32_t kMostAlike = 24;
  Alike alike_[kMostAlike] = {};
  uint32_t alike_count_ = 0, whole_ = 0;
};

}  // namespace

bool run(const Request& request, Walk& result, Walk& of_given, Scan* native) {
  return Walker(request, result).run(of_given, native);
}

}  // namespace millpond::probe::walk
