#include "probe/cfi.h"

#include <dlfcn.h>
#include <string.h>

#include <bit>

#include "probe/system.h"

namespace millpond::probe::cfi {
namespace {

// ---- finding the entry of a function ----

// As in dlfcn.h of glibc 2.35, which has it first: no lock, no allocation. Where it is missing, no rule is known.
struct LoadedObject {
  unsigned long long flags;
  void* begin;
  void* end;
  void* link_map;
  void* eh_frame_header;
  unsigned long long unused[7];
};
int (*find_object)(void* pc, LoadedObject* result) = nullptr;

struct Reader {
  const uint8_t* at;
  const uint8_t* end;

  template <class T>
  T take() {
    T value{};
    if (size_t(end - at) < sizeof value) {
      at = end;
      return value;
    }
    memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  }
  uint64_t number() {
    uint64_t value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
      const uint8_t byte = *at++;
      value |= uint64_t(byte & 127) << shift;
      if (!(byte & 128)) break;
    }
    return value;
  }
  int64_t signed_number() {
    int64_t value = 0;
    for (int shift = 0; at < end && shift < 64;) {
      const uint8_t byte = *at++;
      value |= int64_t(byte & 127) << shift;
      shift += 7;
      if (!(byte & 128)) {
        if (byte & 64 && shift < 64) value |= -(int64_t{1} << shift);
        break;
      }
    }
    return value;
  }
  void skip(uint64_t n) { at = n < uint64_t(end - at) ? at + n : end; }
};

constexpr uint8_t kPcRelative4 = 0x1b, kHeaderRelative4 = 0x3b, kUnsigned4 = 0x03;

// The entry (FDE) of the function that holds pc, by the sorted table in the header; null: there is none.
const uint8_t* entry_of(const uint8_t* header, uintptr_t pc) {
  if (header[0] != 1 || header[1] != kPcRelative4 || header[2] != kUnsigned4 || header[3] != kHeaderRelative4)
    return nullptr;
  struct Pair {
    int32_t code, entry;
  };
  uint32_t count;
  memcpy(&count, header + 8, sizeof count);
  const auto* table = reinterpret_cast<const Pair*>(header + 12);
  uint32_t low = 0, high = count;
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    if (uintptr_t(header + table[middle].code) <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? header + table[low - 1].entry : nullptr;
}

// ---- running its program ----

constexpr uint64_t kRegRbp = 6, kRegRsp = 7, kRegReturn = 16;

struct State {
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  bool cfa_through = false, known = true;  // known: all of it is of a kind that a Rule can hold
  Rbp rbp = Rbp::kSame;
  int64_t rbp_offset = 0;
  bool ends = false;  // the return address is undefined
};

struct Program {
  uint64_t code_unit = 1;
  int64_t data_unit = 1;
  State initial, state;
  State kept[8];
  int kept_count = 0;

  void offset(uint64_t reg, int64_t offset) {
    if (reg == kRegRbp) state.rbp = Rbp::kFromCfa, state.rbp_offset = offset;
    if (reg == kRegReturn) {
      state.ends = false;
      if (offset != -8) state.known = false;
    }
  }
  void restore(uint64_t reg) {
    if (reg == kRegRbp) state.rbp = initial.rbp, state.rbp_offset = initial.rbp_offset;
    if (reg == kRegReturn) state.ends = initial.ends;
  }
  void strange(uint64_t reg) {
    if (reg == kRegRbp || reg == kRegReturn) state.known = false;
  }
  // The one shape of expression that compilers emit for ordinary functions: what lies at rbp + n.
  static bool is_rbp_plus(Reader block, int64_t& n, bool read_through) {
    if (block.at == block.end || *block.at++ != 0x76) return false;
    n = block.signed_number();
    if (read_through && (block.at == block.end || *block.at++ != 0x06)) return false;
    return block.at == block.end;
  }
  Reader block(Reader& r) {
    const uint64_t size = r.number();
    Reader inner{r.at, r.at};
    r.skip(size);
    inner.end = r.at;
    return inner;
  }

  // Until the program comes to code behind `pc`.
  void run(Reader r, uintptr_t code, uintptr_t pc) {
    while (r.at < r.end && code <= pc && state.known) {
      const uint8_t op = r.take<uint8_t>();
      const uint8_t low = op & 63;
      switch (op >> 6) {
        case 1:
          code += low * code_unit;
          continue;
        case 2:
          offset(low, int64_t(r.number()) * data_unit);
          continue;
        case 3:
          restore(low);
          continue;
      }
      switch (op) {
        case 0x00:
          break;
        case 0x02:
          code += r.take<uint8_t>() * code_unit;
          break;
        case 0x03:
          code += r.take<uint16_t>() * code_unit;
          break;
        case 0x04:
          code += r.take<uint32_t>() * code_unit;
          break;
        case 0x05: {
          const uint64_t reg = r.number();
          offset(reg, int64_t(r.number()) * data_unit);
          break;
        }
        case 0x06:
          restore(r.number());
          break;
        case 0x07: {
          const uint64_t reg = r.number();
          if (reg == kRegReturn) state.ends = true;
          if (reg == kRegRbp) state.rbp = Rbp::kSame;
          break;
        }
        case 0x08:
          if (const uint64_t reg = r.number(); reg == kRegRbp) state.rbp = Rbp::kSame;
          break;
        case 0x09: {
          strange(r.number());
          r.number();
          break;
        }
        case 0x0a:
          if (kept_count < 8)
            kept[kept_count++] = state;
          else
            state.known = false;
          break;
        case 0x0b:
          if (kept_count)
            state = kept[--kept_count];
          else
            state.known = false;
          break;
        case 0x0c:
          state.cfa_register = r.number();
          state.cfa_offset = int64_t(r.number());
          state.cfa_through = false;
          break;
        case 0x0d:
          state.cfa_register = r.number(), state.cfa_through = false;
          break;
        case 0x0e:
          state.cfa_offset = int64_t(r.number());
          break;
        case 0x0f:
          if (is_rbp_plus(block(r), state.cfa_offset, true))
            state.cfa_register = kRegRbp, state.cfa_through = true;
          else
            state.cfa_register = ~uint64_t{0};
          break;
        case 0x10: {
          const uint64_t reg = r.number();
          int64_t n = 0;
          const bool simple = is_rbp_plus(block(r), n, false);
          if (reg == kRegRbp && simple)
            state.rbp = Rbp::kFromRbp, state.rbp_offset = n;
          else
            strange(reg);
          break;
        }
        case 0x11: {
          const uint64_t reg = r.number();
          offset(reg, r.signed_number() * data_unit);
          break;
        }
        case 0x12:
          state.cfa_register = r.number();
          state.cfa_offset = r.signed_number() * data_unit;
          state.cfa_through = false;
          break;
        case 0x13:
          state.cfa_offset = r.signed_number() * data_unit;
          break;
        case 0x14:
          strange(r.number()), r.number();
          break;
        case 0x15:
          strange(r.number()), r.signed_number();
          break;
        case 0x16:
          strange(r.number()), block(r);
          break;
        case 0x2e:
          r.number();
          break;  // size of arguments: for exceptions only
        default:
          state.known = false;
      }
    }
  }
};

Rule rule_of(const State& s) {
  Rule rule;
  if (!s.known) return rule;
  if (s.ends) return {Cfa::kEnd};
  if (s.cfa_register == kRegRsp && !s.cfa_through)
    rule.cfa = Cfa::kFromRsp;
  else if (s.cfa_register == kRegRbp)
    rule.cfa = s.cfa_through ? Cfa::kThroughRbp : Cfa::kFromRbp;
  else
    return rule;
  rule.cfa_offset = int32_t(s.cfa_offset);
  rule.rbp = s.rbp;
  rule.rbp_offset = s.rbp == Rbp::kSame ? int16_t{0} : int16_t(s.rbp_offset);
  if (rule.cfa_offset != s.cfa_offset || (s.rbp != Rbp::kSame && rule.rbp_offset != s.rbp_offset)) return {};
  return rule;
}

Rule work_out(uintptr_t pc) {
  LoadedObject object{};
  if (!find_object) return {};
  if (find_object(reinterpret_cast<void*>(pc), &object) != 0 || !object.eh_frame_header) return {Cfa::kEnd};
  const uint8_t* entry = entry_of(static_cast<const uint8_t*>(object.eh_frame_header), pc);
  if (!entry) return {};
  const auto* limit = static_cast<const uint8_t*>(object.end);
  Reader r{entry, limit};
  const uint32_t size = r.take<uint32_t>();
  if (size == 0 || size == 0xffffffffu) return {};
  const uint8_t* entry_end = r.at + size;
  const uint8_t* common = r.at;
  common -= r.take<uint32_t>();
  if (common >= limit || entry_end > limit) return {};
  r.end = entry_end;

  Program program;
  Reader c{common, limit};
  const uint32_t common_size = c.take<uint32_t>();
  if (common_size == 0xffffffffu) return {};
  c.end = c.at + common_size;
  c.take<uint32_t>();
  const uint8_t version = c.take<uint8_t>();
  const char* augmentation = reinterpret_cast<const char*>(c.at);
  const size_t length = strnlen(augmentation, size_t(c.end - c.at));
  c.skip(length + 1);
  program.code_unit = c.number();
  program.data_unit = c.signed_number();
  const uint64_t return_register = version == 1 ? c.take<uint8_t>() : c.number();
  if (augmentation[0] != 'z' || return_register != kRegReturn) return {};
  const uint64_t extra = c.number();
  Reader a{c.at, c.at};
  c.skip(extra);
  a.end = c.at;
  uint8_t pointers = 0;
  for (size_t i = 1; i < length; ++i) switch (augmentation[i]) {
      case 'R':
        pointers = a.take<uint8_t>();
        break;
      case 'L':
        a.take<uint8_t>();
        break;
      case 'P':
        a.skip((a.take<uint8_t>() & 15) % 8 == 3 ? 4 : 8);
        break;  // (s|u)data4, otherwise 8 bytes
      default:
        return {};  // S: the frame of a signal
    }
  if (pointers != kPcRelative4) return {};
  const uint8_t* from = r.at;
  const uintptr_t begin = uintptr_t(from + r.take<int32_t>());
  const uint32_t bytes = r.take<uint32_t>();
  if (pc < begin || pc >= begin + bytes) return {Cfa::kEnd};
  r.skip(r.number());
  program.run(c, begin, begin);  // has no steps of code in it
  program.initial = program.state;
  program.run(r, begin, pc);
  return rule_of(program.state);
}

// ---- what was worked out ----

// The different rules, by hash; a rule's number is its place and stays. All bytes zero is Rule{}: unknown.
constexpr uint32_t kRules = 1 << 13;
alignas(sys::kPageSize) uint64_t rules[kRules];
// pc in the upper 47 bits, number of its rule in the lower 17: read as a whole or not at all.
constexpr uint32_t kPlaces = 1 << 15;
alignas(sys::kPageSize) uint64_t places[kPlaces];

uint32_t number_of(uint64_t rule) {
  uint32_t at = uint32_t((rule * 0x9e3779b97f4a7c15u) >> 51);
  for (int tries = 0; tries < 64; ++tries, at = (at + 1) % kRules) {
    uint64_t found = __atomic_load_n(&rules[at], __ATOMIC_RELAXED);
    if (found == 0 && __atomic_compare_exchange_n(&rules[at], &found, rule, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
      return at;
    if (found == rule) return at;
  }
  return kRules;  // full: this place is worked out every time
}

}  // namespace

void start() { find_object = reinterpret_cast<int (*)(void*, LoadedObject*)>(dlsym(RTLD_DEFAULT, "_dl_find_object")); }

Rule rule_at(uintptr_t pc) {
  uint64_t& place = places[(uint64_t(pc) * 0x9e3779b97f4a7c15u) >> 49];
  const uint64_t kept = __atomic_load_n(&place, __ATOMIC_ACQUIRE);
  if (kept >> 17 == pc) return std::bit_cast<Rule>(rules[kept & 0x1ffff]);
  if (pc >= uintptr_t{1} << 47) return {Cfa::kEnd};
  const Rule rule = work_out(pc - 1);  // the call, not what follows it: that may belong to another function
  const auto bits = std::bit_cast<uint64_t>(rule);
  if (bits == 0) return rule;
  if (const uint32_t number = number_of(bits); number < kRules)
    __atomic_store_n(&place, uint64_t(pc) << 17 | number, __ATOMIC_RELEASE);
  return rule;
}

void forget() { sys::wipe(places, sizeof places); }

}  // namespace millpond::probe::cfi

// The compiler's unwinder, which lies in this library, asks the loader by this name. Answered here: else the library
// would not load where the C library is older than 2.35. Where the loader does not know, the unwinder finds no table,
// and the walk ends.
extern "C" __attribute__((visibility("hidden"), used)) int millpond_find_object(void* pc, void* result) noexcept
    asm("_dl_find_object");
extern "C" int millpond_find_object(void* pc, void* result) noexcept {
  using namespace millpond::probe::cfi;
  return find_object ? find_object(pc, static_cast<LoadedObject*>(result)) : -1;
}
