#include "probe/native_prints.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "probe/file.h"
#include "probe/lock.h"
#include "probe/marks.h"
#include "probe/python_layout.h"
#include "probe/system.h"
#include "probe/tables.h"
#include "probe/thread.h"

namespace millpond::probe::native_prints {
namespace {

constexpr size_t kLongest = 400;         // of a line that is looked at
constexpr uint64_t kMostIdle = 200'000;  // lines without a round: a program that prints prose
constexpr uint64_t kGap = 100'000'000, kSoonGap = 10'000'000, kSoon = 16;  // ns between two marks; of the first ones
constexpr const char* kWords[] = {"epoch", "episode", "fold", "round", "iteration", "iter", "trial", "generation"};

Lock looking;
char line[kLongest];
size_t length = 0;
uint64_t idle = 0;

// The pattern whose lines are the rounds: the first one, unless that was said once and another one twice.
struct Pattern {
  uint64_t hash, times;
  const char* word;
  int64_t first;  // the number that the program gives to its first round
};
Pattern rounds{}, other{};
uint64_t marked_ns = 0;

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; }
bool is_letter(char c) { return (lower(c) >= 'a' && lower(c) <= 'z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The word that counts in a line, with its number; null: none does.
const char* round_word(int64_t& number) {
  for (size_t at = 0; at < length; ++at) {
    if (at && is_letter(line[at - 1])) continue;
    for (const char* word : kWords) {
      size_t i = 0;
      while (word[i] && at + i < length && lower(line[at + i]) == word[i]) ++i;
      if (word[i]) continue;
      size_t after = at + i;
      if (after < length && lower(line[after]) == 's') ++after;
      if (after < length && is_letter(line[after])) continue;
      while (after < length && strchr(" \t:=#[(/", line[after])) ++after;
      if (after == length || !is_digit(line[after])) continue;
      number = 0;
      for (int digits = 0; after < length && is_digit(line[after]) && digits < 9; ++after, ++digits)
        number = number * 10 + (line[after] - '0');
      return word;
    }
  }
  return nullptr;
}

// Lines that differ only in their numbers are one pattern.
uint64_t pattern_of() {
  uint64_t hash = 0x2545f4914f6cdd1du;
  for (size_t i = 0; i < length; ++i) {
    char c = line[i];
    if (is_digit(c)) {
      while (i + 1 < length && (is_digit(line[i + 1]) || strchr(".eE+-_", line[i + 1]))) ++i;
      c = '#';
    }
    hash = (hash ^ uint8_t(c)) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
  }
  return hash ? hash : 1;
}

void mark(uint64_t now) {
  const uint64_t gap = rounds.times <= kSoon ? kSoonGap : kGap;
  if (now - marked_ns < gap) return;
  marked_ns = now;
  char name[64];
  snprintf(name, sizeof name, "%s at a printed line:0", rounds.word);
  marks::mark("epoch", name, rounds.first + int64_t(rounds.times) - 1, kMarkPeriod | kMarkSnapshot);
}

void ended() {
  int64_t number = 0;
  const char* const word = length && length < kLongest ? round_word(number) : nullptr;
  if (!word) {
    ++idle;
    return;
  }
  const uint64_t hash = pattern_of();
  if (hash != rounds.hash) {
    if (rounds.times > 1) return;
    if (hash != other.hash) {
      other = {hash, 1, word, number};
      if (rounds.times == 0)
        rounds = other;
      else
        return;
    } else if (rounds.hash != other.hash) {
      rounds = {hash, 2, word, other.first};
    }
  } else {
    ++rounds.times;
  }
  file::add(file::shared->units[kUnitEpoch]);
  file::add(file::shared->units[kUnitLine]);
  mark(sys::now_ns());
}

void printed(const char* text, size_t size) {
  if (me.quiet || !file::is_open() || file::shared->agent || (idle > kMostIdle && !rounds.times) || !looking.try_lock())
    return;
  {
    const int error = errno;
    for (size_t i = 0; i < size; ++i) {
      if (text[i] == '\n' || text[i] == '\r')
        ended(), length = 0;
      else if (length < kLongest)
        line[length++] = text[i];
    }
    errno = error;
  }
  looking.unlock();
}
void printed_as(const char* format, va_list arguments) {
  if (idle > kMostIdle && !rounds.times) return;
  char text[kLongest];
  int size;
  {
    Quiet quiet;
    size = vsnprintf(text, sizeof text, format, arguments);
  }
  if (size > 0) printed(text, size_t(size) < sizeof text ? size_t(size) : sizeof text - 1);
}
bool shown(FILE* stream) { return stream == stdout || stream == stderr; }

// Each calls what the program would have called, and what that returned is what the program gets.
#define MP_AS(format)       \
  va_list copy;             \
  va_copy(copy, arguments); \
  printed_as(format, copy); \
  va_end(copy);

int vfprintf_hook(FILE* stream, const char* format, va_list arguments) {
  if (shown(stream)) {
    MP_AS(format)
  }
  return vfprintf(stream, format, arguments);
}
int vfprintf_chk_hook(FILE* stream, int, const char* format, va_list arguments) {
  return vfprintf_hook(stream, format, arguments);
}
int vprintf_hook(const char* format, va_list arguments) { return vfprintf_hook(stdout, format, arguments); }
int vprintf_chk_hook(int, const char* format, va_list arguments) { return vfprintf_hook(stdout, format, arguments); }
#define MP_WITH(call)          \
  va_list arguments;           \
  va_start(arguments, format); \
  const int written = call;    \
  va_end(arguments);           \
  return written;
int printf_hook(const char* format, ...) { MP_WITH(vfprintf_hook(stdout, format, arguments)) }
int printf_chk_hook(int, const char* format, ...) { MP_WITH(vfprintf_hook(stdout, format, arguments)) }
int fprintf_hook(FILE* stream, const char* format, ...) { MP_WITH(vfprintf_hook(stream, format, arguments)) }
int fprintf_chk_hook(FILE* stream, int, const char* format, ...) { MP_WITH(vfprintf_hook(stream, format, arguments)) }

int puts_hook(const char* text) {
  printed(text, strlen(text));
  printed("\n", 1);
  return puts(text);
}
int fputs_hook(const char* text, FILE* stream) {
  if (shown(stream)) printed(text, strlen(text));
  return fputs(text, stream);
}
size_t fwrite_hook(const void* data, size_t size, size_t count, FILE* stream) {
  if (shown(stream) && size && count <= kLongest) printed(static_cast<const char*>(data), size * count);
  return fwrite(data, size, count, stream);
}
int putchar_hook(int c) {
  const char text = char(c);
  printed(&text, 1);
  return putchar(c);
}
int putc_hook(int c, FILE* stream) {
  const char text = char(c);
  if (shown(stream)) printed(&text, 1);
  return putc(c, stream);
}
ssize_t write_hook(int fd, const void* data, size_t size) {
  if ((fd == 1 || fd == 2) && size <= 4 * kLongest) printed(static_cast<const char*>(data), size);
  return write(fd, data, size);
}
ssize_t writev_hook(int fd, const iovec* parts, int count) {
  if (fd == 1 || fd == 2)
    for (int i = 0; i < count && parts[i].iov_len <= 4 * kLongest; ++i)
      printed(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  return writev(fd, parts, count);
}

// They stay for as long as the tables lead here. Filled by start(): a static of that function would ask the C++ library
// for its guard.
constexpr size_t kHooks = 16;
relocations::Function hooks[kHooks];

template <class F>
void* address_of(F* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

void start() {
  if (python::layout.version) return;  // the agent follows what Python prints
  const relocations::Function wanted[] = {{"printf", address_of(printf_hook), nullptr},
                                          {"fprintf", address_of(fprintf_hook), nullptr},
                                          {"vprintf", address_of(vprintf_hook), nullptr},
                                          {"vfprintf", address_of(vfprintf_hook), nullptr},
                                          {"__printf_chk", address_of(printf_chk_hook), nullptr},
                                          {"__fprintf_chk", address_of(fprintf_chk_hook), nullptr},
                                          {"__vprintf_chk", address_of(vprintf_chk_hook), nullptr},
                                          {"__vfprintf_chk", address_of(vfprintf_chk_hook), nullptr},
                                          {"puts", address_of(puts_hook), nullptr},
                                          {"fputs", address_of(fputs_hook), nullptr},
                                          {"fwrite", address_of(fwrite_hook), nullptr},
                                          {"putchar", address_of(putchar_hook), nullptr},
                                          {"putc", address_of(putc_hook), nullptr},
                                          {"fputc", address_of(putc_hook), nullptr},
                                          {"write", address_of(write_hook), nullptr},
                                          {"writev", address_of(writev_hook), nullptr}};
  static_assert(sizeof wanted == sizeof hooks);
  for (size_t i = 0; i < kHooks; ++i) hooks[i] = wanted[i];
  void* const libc = relocations::definition_of("gnu_get_libc_version");
  for (relocations::Function& f : hooks) f.real = relocations::definition_of(f.name, libc);
  tables::add(hooks, kHooks);
}

void forget() {
  looking = {};
  length = 0;
  idle = 0;
  rounds = other = {};
  marked_ns = 0;
}

}  // namespace millpond::probe::native_prints
