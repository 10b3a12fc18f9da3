#include "base/team.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "millpond/error.h"

using namespace millpond;

TEST_CASE("usable_threads: is at least one and no more than the affinity allows") {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  CHECK(usable_threads() >= 1);
  CHECK(usable_threads() <= CPU_COUNT(&set));
}

TEST_CASE("usable_threads: a thread bound to one processor counts one") {
  int seen = 0;
  std::thread([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &all)) {
        CPU_SET(i, &one);
        break;
      }
    sched_setaffinity(0, sizeof one, &one);
    seen = usable_threads();
  }).join();
  CHECK(seen == 1);
}

TEST_CASE("Team: a team of one runs on the caller and starts no thread") {
  Team team(1);
  const auto me = std::this_thread::get_id();
  int calls = 0;
  team.run([&](int member) {
    CHECK(member == 0);
    CHECK(std::this_thread::get_id() == me);
    ++calls;
  });
  CHECK(calls == 1);
  CHECK(Team(0).size() == 1);
  CHECK(Team(-3).size() == 1);
}

TEST_CASE("Team: work taken piece by piece is done exactly once, whoever comes late") {
  for (int size : {1, 2, 3, 5}) {
    Team team(size);
    for (int round = 0; round < 3000; ++round) {
      std::array<std::atomic<int>, 37> done{};
      std::atomic<size_t> next{0};
      team.run([&](int) {
        for (size_t i; (i = next.fetch_add(1)) < done.size();) done[i].fetch_add(1);
      });
      int sum = 0, most = 0;
      for (auto& d : done) sum += d.load(), most = std::max(most, d.load());
      REQUIRE(sum == 37);
      REQUIRE(most == 1);
    }
  }
}

TEST_CASE("Team: after run has returned no member is inside, so the caller may free what they read") {
  Team team(4);
  for (int round = 0; round < 3000; ++round) {
    auto inside = std::make_unique<std::atomic<int>>(0);
    std::atomic<int>* p = inside.get();
    team.run([p](int) {
      p->fetch_add(1);
      for (int i = 0; i < 50; ++i) std::atomic_signal_fence(std::memory_order_seq_cst);
      p->fetch_sub(1);
    });
    REQUIRE(p->load() == 0);
  }
}

TEST_CASE("Team: a member takes part in a run at most once") {
  Team team(3);
  for (int round = 0; round < 20000; ++round) {
    std::array<std::atomic<int>, 3> entered{};
    const bool slow = round % 7 == 0;
    team.run([&](int member) {
      entered[size_t(member)].fetch_add(1);
      if (slow && member == 0) usleep(1);  // long enough for a late member to come back
    });
    for (auto& e : entered) REQUIRE(e.load() <= 1);
  }
}

TEST_CASE("Team: a parked team wakes up, and with time enough every member takes part") {
  Team team(3);
  usleep(20000);  // far longer than a member spins
  for (int round = 0; round < 20; ++round) {
    std::array<std::atomic<int>, 3> entered{};
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    team.run([&](int member) {
      entered[size_t(member)].store(1);
      if (member != 0) return;
      while (entered[1].load() + entered[2].load() < 2 && std::chrono::steady_clock::now() < limit) sched_yield();
    });
    CHECK(entered[1].load() + entered[2].load() == 2);
    usleep(2000);
  }
}

TEST_CASE("Team: what a member wrote is seen by the caller after run") {
  Team team(2);
  std::vector<int> plain(64);
  for (int round = 1; round < 2000; ++round) {
    std::atomic<size_t> next{0};
    team.run([&](int) {
      for (size_t i; (i = next.fetch_add(1)) < plain.size();) plain[i] = round;
    });
    for (int v : plain) REQUIRE(v == round);
  }
}

TEST_CASE("Team: a hundred teams made and dropped, used and unused, all end") {
  for (int i = 0; i < 100; ++i) {
    Team team(2 + i % 3);
    std::atomic<int> calls{0};
    if (i % 2) team.run([&](int) { calls.fetch_add(1); });
    CHECK(calls.load() <= team.size());
  }
}

TEST_CASE(
    "TeamLease: a run that is alone gets its team, one beside it works without helpers until that is given back") {
  const int size = usable_threads() + 1;  // so that two never fit
  TeamLease first(size);
  CHECK((*first).helped());
  CHECK(!first.refused());
  std::thread([&] {
    TeamLease second(size);
    CHECK(second.refused());
    CHECK((*second).size() == size);
    std::vector<int> members;
    (*second).run([&](int member) { members.push_back(member); });
    CHECK(members == std::vector<int>{0});
    second.ask_again();
    CHECK(second.refused());
    TeamLease none(size, false);
    CHECK(!none.refused());
  }).join();
  std::optional<TeamLease> outer(std::in_place, 1);
  outer.reset();
}

TEST_CASE("TeamLease: who was refused is helped once the others have gone") {
  const int size = usable_threads() + 1;
  std::optional<TeamLease> first(std::in_place, size);
  std::atomic<int> stage{0};
  std::thread other([&] {
    TeamLease second(size);
    CHECK(second.refused());
    stage = 1;
    while (stage != 2) std::this_thread::yield();
    second.ask_again();
    CHECK(!second.refused());
    CHECK((*second).helped());
  });
  while (stage != 1) std::this_thread::yield();
  first.reset();
  stage = 2;
  other.join();
}

TEST_CASE("TeamLease: an inner lease of the same thread and size works with the outer one's team") {
  TeamLease outer(2);
  TeamLease inner(2);
  CHECK(&*inner == &*outer);
  const TeamLease larger(3);
  CHECK((*larger).helped());  // nobody else is there
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // whose shadow memory lies beyond any limit
TEST_CASE("Team: threads that the system does not give are an error, not an end") {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit little{64 << 20, 64 << 20};  // of address space, less than this process has already: no stack more
    setrlimit(RLIMIT_AS, &little);
    try {
      Team team(8);
    } catch (const Error& e) {
      _exit(e.text().starts_with("a team of 8 threads: the system gave ") ? 7 : 1);
    }
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 7);
}
#endif
