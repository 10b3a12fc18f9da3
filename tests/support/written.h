// What a process has written and keeps, from the page tables: for tests that say "flat".
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

namespace millpond {

/// What this process has written and keeps, in KiB. From the page tables: the kernel's running counters lag behind by
/// some pages, more the busier the machine is. Looking takes no memory but the text, which the first look makes
/// resident.
struct Written {
  int64_t heap = 0, stack = 0, files = 0, other = 0;  // of main's thread the stack; the others' lie in `other`
  int64_t sum() const { return heap + stack + files + other; }
};
inline Written written() {
  static char text[1 << 19];
  size_t size = 0;
  const int file = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
  for (ssize_t n; (n = read(file, text + size, sizeof text - 1 - size)) > 0;) size += size_t(n);
  close(file);
  REQUIRE(size > 0);
  REQUIRE(size < sizeof text - 1);
  text[size] = 0;
  Written w;
  int64_t* into = &w.other;
  for (const char* line = text; *line; line = std::strchr(line, '\n') + 1) {
    const std::string_view all(line, size_t(std::strchr(line, '\n') - line));
    if (all.starts_with("Private_Dirty:") || all.starts_with("Swap:"))
      *into += std::atoll(line + all.find(':') + 1);
    else if (all[0] < 'A' || all[0] > 'Z')  // a mapping begins: addresses in lower-case hexadecimal
      into = all.ends_with("[heap]")     ? &w.heap
             : all.ends_with("[stack]")  ? &w.stack
             : all.find('/') != all.npos ? &w.files
                                         : &w.other;
  }
  return w;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kExactPages = false;  // a sanitizer's own memory grows with what it watches
#else
inline constexpr bool kExactPages = true;
#endif

}  // namespace millpond
