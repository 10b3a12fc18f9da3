#include "base/segment.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "millpond/error.h"

using namespace millpond;

namespace {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kShadow =
    true;  // a sanitizer's own memory beside ours; it needs address space, and handles faults itself
#else
constexpr bool kShadow = false;
#endif

Bytes held(const std::string& account) {
  Bytes sum;
  each_holding([&](const std::string& a, Bytes b) { sum += a == account ? b : Bytes{0}; });
  return sum;
}
Bytes resident() {
  long pages = 0, shared = 0;
  FILE* f = fopen("/proc/self/statm", "r");
  REQUIRE(fscanf(f, "%*d %ld %ld", &pages, &shared) == 2);
  fclose(f);
  return kPage * (pages - shared);
}
// The signal that ends a child which runs f, or 0.
template <class F>
int signal_of(F f) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // not doctest's report of a crash
    f();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
}  // namespace

TEST_CASE("Segment: reserving address space touches nothing, and each page written costs exactly itself") {
  Segment s(64_MiB + 8_KiB, "test/segment");
  CHECK(s.size() == 64_MiB + 8_KiB);
  CHECK(s.touched() == Bytes{0});
  std::byte* tail = s.data() + (64_MiB).value;
  tail[0] = std::byte{1};
  CHECK(s.touched() == 4_KiB);
  tail[4096] = std::byte{1};
  CHECK(s.touched() == 8_KiB);
}

TEST_CASE("Segment: written from end to end, its resident bytes are its size and not a page more") {
  for (Bytes size : {Bytes{1}, 4_KiB, 100_KiB, 2_MiB - 4_KiB, 2_MiB, 2_MiB + 4_KiB, 5_MiB + 12_KiB}) {
    const Bytes before = resident();
    Segment s(size, "test/segment");
    std::memset(s.data(), 1, size_t(size.value));
    CHECK(s.touched() == round_up(size, 4_KiB));
    CHECK(s.size() == round_up(size, 4_KiB));
    if (!kShadow)
      CHECK((resident() - before).value < (s.size() + 256_KiB).value);  // page tables and the counter's slack apart
  }
}

TEST_CASE("Segment: two megabytes or more begin on a two-megabyte boundary, so that huge pages fit") {
  for (int i = 0; i < 8; ++i) {
    Segment odd(12_KiB, "test/odd"), s(2_MiB + 4_KiB * i, "test/segment");
    CHECK(reinterpret_cast<uintptr_t>(s.data()) % uintptr_t((2_MiB).value) == 0);
    CHECK(reinterpret_cast<uintptr_t>(odd.data()) % 4096 == 0);
  }
}

TEST_CASE("Segment: memory is zero, also after it was forgotten") {
  Segment s(1_MiB, "test/segment");
  for (int64_t i = 0; i < s.size().value; i += 512) CHECK(s.data()[i] == std::byte{0});
  std::memset(s.data(), 7, size_t(s.size().value));
  s.forget(Bytes{1}, 16_KiB);  // whole pages inside only: 1, 2 and 3
  CHECK(s.touched() == 1_MiB - 12_KiB);
  CHECK(s.data()[4095] == std::byte{7});
  CHECK(s.data()[4096] == std::byte{0});
  CHECK(s.data()[16384] == std::byte{7});
  s.forget();
  CHECK(s.touched() == Bytes{0});
  CHECK(s.data()[4095] == std::byte{0});
}

TEST_CASE("Segment: moving keeps the address and the holding; destroying unmaps and ends the holding") {
  Segment a(256_KiB, "test/move");
  std::byte* const data = a.data();
  CHECK(held("test/move") == 256_KiB);
  Segment b = std::move(a);
  CHECK(!a);
  CHECK(a.size() == Bytes{0});
  CHECK(b.data() == data);
  CHECK(b.account() == "test/move");
  CHECK(held("test/move") == 256_KiB);
  b = Segment(128_KiB, "test/move");
  CHECK(held("test/move") == 128_KiB);
  Segment& same = b;
  b = std::move(same);
  CHECK(b.size() == 128_KiB);
  std::byte* const last = b.data();
  b = Segment();
  CHECK(held("test/move") == Bytes{0});
  unsigned char in = 0;
  CHECK(mincore(last, 4096, &in) == -1);
}

TEST_CASE("Segment: nothing is reserved for a size of zero") {
  Segment s(0_B, "test/segment");
  CHECK(!s);
  CHECK(s.touched() == Bytes{0});
  CHECK(held("test/segment") == Bytes{0});
}

TEST_CASE("Segment: an impossible size is refused with the asked and the free sizes") {
  for (Bytes size : {Bytes{int64_t{1} << 60}, Bytes{INT64_MAX}, Bytes{-1}}) {
    try {
      Segment s(size, "arena/huge");
      FAIL("was not refused");
    } catch (const Error& e) {
      CHECK(e.code() == Code::kMemory);
      CHECK(e.text().find("arena/huge") != std::string::npos);
      CHECK(e.details().at(0).first == "asked");
      CHECK(e.details().at(1).first == "free");
      CHECK(!e.hint().empty());
    }
  }
  CHECK(held("arena/huge") == Bytes{0});
}

TEST_CASE("Segment: under a limit of address space the refusal names the limit" * doctest::skip(kShadow)) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit limit{1u << 30, 1u << 30};
    setrlimit(RLIMIT_AS, &limit);
    try {
      Segment s(4_GiB, "arena/limited");
    } catch (const Error& e) {
      _exit(e.details().size() == 3 && e.details()[2].first == "limit" ? 7 : 8);
    }
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WEXITSTATUS(status) == 7);
}

TEST_CASE("Segment: a thousand of them made and dropped leave no mapping behind") {
  auto mappings = [] {
    int n = 0;
    FILE* f = fopen("/proc/self/maps", "r");
    for (int c; (c = fgetc(f)) != EOF;) n += c == '\n';
    fclose(f);
    return n;
  };
  {
    Segment warm(3_MiB, "test/segment");
  }
  const int before = mappings();
  for (int i = 0; i < 1000; ++i) {
    Segment s(2_MiB + 4_KiB * (i % 700), "test/segment");
    s.data()[i] = std::byte{1};
  }
  CHECK(mappings() <= before + 1);
}

#ifdef MILLPOND_CHECKS
TEST_CASE("Segment: with checks on, the byte behind the end is a guard page" * doctest::skip(kShadow)) {
  for (Bytes size : {8_KiB, 4_MiB, 4_MiB + 4_KiB}) {
    Segment s(size, "test/segment");
    CHECK(signal_of([&] { s.data()[s.size().value - 1] = std::byte{1}; }) == 0);
    CHECK(signal_of([&] { s.data()[s.size().value] = std::byte{1}; }) == SIGSEGV);
  }
}
#endif

TEST_CASE("Segment: a destroyed segment's addresses fault instead of holding old values" * doctest::skip(kShadow)) {
  std::byte* data = nullptr;
  {
    Segment s(8_MiB, "test/segment");
    data = s.data();
  }
  CHECK(signal_of([&] { data[0] = std::byte{1}; }) == SIGSEGV);
}

TEST_CASE("Holding: the list is right whichever of its members goes or moves first") {
  std::vector<Holding> many;
  for (int i = 0; i < 20; ++i) many.emplace_back("test/many", Bytes{1 << i});  // growth moves them around
  CHECK(held("test/many") == Bytes{(1 << 20) - 1});
  many.erase(many.begin() + 7);
  CHECK(held("test/many") == Bytes{(1 << 20) - 1 - (1 << 7)});
  many.erase(many.begin());
  many.pop_back();
  CHECK(held("test/many") == Bytes{(1 << 19) - 1 - (1 << 7) - 1});
  many.clear();
  CHECK(held("test/many") == Bytes{0});
}
