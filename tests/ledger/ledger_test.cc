#include "ledger/ledger.h"

#include <doctest/doctest.h>

#include <malloc.h>

#include <random>
#include <thread>

#include "base/format.h"
#include "millpond/error.h"

using namespace millpond;
using namespace millpond::ledger;

namespace {

template <class F>
std::string refusal(F f, Code code) {
  try {
    f();
  } catch (const Error& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "not refused";
}

}  // namespace

TEST_CASE("Ledger: an account's total holds everything below it, and only that") {
  Ledger l;
  l.charge("weights/dense_1/kernel", 100_B);
  l.charge("weights/dense_1/bias", 10_B);
  l.charge("weights/dense_10/kernel", 1000_B);
  l.charge("weights", 5_B);
  CHECK(l.current("weights/dense_1") == 110_B);
  CHECK(l.current("weights") == 1115_B);
  CHECK(l.current() == 1115_B);
  CHECK(l.current("weights/dense") == 0_B);
  l.release("weights/dense_1/kernel", 60_B);
  CHECK(l.current("weights/dense_1") == 50_B);
  CHECK(l.peak("weights/dense_1") == 110_B);
  CHECK(l.peak() == 1115_B);
}

TEST_CASE("Ledger: the peak of a total is the largest sum at one moment, not the sum of peaks") {
  Ledger l;
  const PhaseId phase = l.begin_phase(PhaseKind::kFit);
  l.charge("activations/a", 100_B);
  l.release("activations/a", 100_B);
  l.charge("activations/b", 70_B);
  CHECK(l.peak("activations") == 100_B);
  CHECK(l.peak("activations/a") == 100_B);
  CHECK(l.peak("activations/b") == 70_B);
  l.end_phase(phase);
}

TEST_CASE("Ledger: a balance below zero is an error with account, balance and amount, and changes nothing") {
  Ledger l;
  l.charge("slots/adam.m", 64_B);
  CHECK(refusal([&] { l.release("slots/adam.m", 65_B); }, Code::kMemory) ==
        "account slots/adam.m has 64 bytes, but 65 are released (1 too many); something is released twice, or was "
        "charged to another account");
  CHECK(refusal([&] { l.release("slots", 1_B); }, Code::kMemory)
            .starts_with("account slots has 0 bytes, but 1 are released"));
  CHECK(refusal([&] { l.release("never", 1_B); }, Code::kMemory).starts_with("account never has 0 bytes"));
  CHECK(l.current("slots/adam.m") == 64_B);
}

TEST_CASE("Ledger: a malformed name or a negative amount is refused") {
  Ledger l;
  for (const char* name : {"", "/weights", "weights/", "weights//kernel", "a\nb"})
    CHECK(refusal([&] { l.charge(name, 1_B); }, Code::kUsage).ends_with("write a path such as weights/dense_1/kernel"));
  CHECK(refusal([&] { l.charge("a", Bytes{-1}); }, Code::kUsage) ==
        "charge of -1 bytes: account a; an amount of memory is 0 or more");
  CHECK(l.snapshot().accounts.empty());
}

TEST_CASE("Ledger: a phase sees its own peaks, also of accounts that come and go within it") {
  Ledger l;
  l.charge("weights/w", 1000_B);
  const PhaseId fit = l.begin_phase(PhaseKind::kFit, "fit");
  const PhaseId first = l.begin_phase(PhaseKind::kEpoch, "", 1);
  l.charge("pipeline/prefetch", 300_B);
  l.release("pipeline/prefetch", 300_B);
  const PhaseRecord one = l.end_phase(first);
  const PhaseId second = l.begin_phase(PhaseKind::kEpoch, "", 2);
  l.charge("pipeline/prefetch", 20_B);
  const PhaseRecord two = l.end_phase(second);
  const PhaseRecord all = l.end_phase(fit);

  CHECK(one.kind == PhaseKind::kEpoch);
  CHECK(one.index == 1);
  CHECK(one.parent == fit);
  CHECK(one.at_begin == 1000_B);
  CHECK(one.peak == 1300_B);
  CHECK(one.at_end == 1000_B);
  CHECK(two.peak == 1020_B);
  CHECK(all.parent == PhaseId{});
  CHECK(all.peak == 1300_B);
  const auto peak_of = [](const PhaseRecord& r, std::string_view name) {
    for (const AccountLine& a : r.accounts)
      if (a.name == name) return a.peak;
    return Bytes{-1};
  };
  CHECK(peak_of(one, "pipeline") == 300_B);
  CHECK(peak_of(two, "pipeline/prefetch") == 20_B);
  CHECK(peak_of(two, "weights") == 1000_B);
  CHECK(peak_of(all, "pipeline") == 300_B);
}

TEST_CASE("Ledger: phases may end in any order, each once") {
  Ledger l;
  const PhaseId a = l.begin_phase(PhaseKind::kFit), b = l.begin_phase(PhaseKind::kEpoch);
  l.end_phase(a);
  l.end_phase(b);
  CHECK(refusal([&] { l.end_phase(b); }, Code::kUsage).ends_with("is ended, but it is not open; end each phase once"));
}

TEST_CASE("Ledger: a thousand models with names of their own, and a thousand epochs, leave nothing behind") {
  Ledger l;
  const auto model = [&](int i) {
    const std::string name = format("dense_{}", i);
    const Charge kernel(l, "weights/" + name + "/kernel", 100_B), bias(l, "weights/" + name + "/bias", &l, 10_B);
    for (int epoch = 0; epoch < 3; ++epoch) {
      const ScopedPhase phase(l, PhaseKind::kEpoch, "", epoch);
      const Charge batch(l, "data/" + name, 1_KiB);
    }
  };
  for (int i = 0; i < 50; ++i) model(i);
  const size_t before = mallinfo2().uordblks;
  for (int i = 50; i < 1050; ++i) model(i);
  CHECK(mallinfo2().uordblks <= before);
  CHECK(l.current() == 0_B);
  CHECK(l.peak("weights") == 110_B);
  CHECK(l.snapshot().accounts.size() == 2);  // data and weights, at zero, for their peaks
}

TEST_CASE("Ledger: agrees with a plain map under a random load") {
  std::mt19937 random(3);
  Ledger l;
  std::map<std::string, int64_t> plain;
  const PhaseId phase = l.begin_phase(PhaseKind::kRun);
  int64_t peak = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::string name = format("k{}/l{}/v{}", random() % 3, random() % 4, random() % 3);
    const int64_t amount = random() % 1000;
    if (random() % 2 || plain[name] < amount)
      l.charge(name, Bytes{amount}), plain[name] += amount;
    else
      l.release(name, Bytes{amount}), plain[name] -= amount;
    int64_t total = 0;
    for (const auto& [n, v] : plain) total += v;
    peak = std::max(peak, total);
  }
  const Snapshot s = l.snapshot();
  for (const char* prefix : {"k0", "k1", "k2", "k0/l1", "k2/l3", "k1/l0/v2"}) {
    int64_t total = 0;
    for (const auto& [n, v] : plain)
      if (n == prefix || n.starts_with(std::string(prefix) + "/")) total += v;
    CHECK(s.total(prefix).value == total);
  }
  CHECK(s.peak.value == peak);
  CHECK(l.end_phase(phase).peak.value == peak);
}

TEST_CASE("Charge: charges for as long as it lives, moves, and follows a size") {
  Ledger l;
  {
    Charge a(l, "data/x", 10_B);
    Charge b = std::move(a);
    CHECK(l.current("data/x") == 10_B);
    b.resize(25_B);
    CHECK(l.current("data/x") == 25_B);
    b.resize(5_B);
    b = Charge(l, "data/y", 7_B);
    CHECK(l.current("data/x") == 0_B);
    CHECK(l.current() == 7_B);
    const Charge empty;
    CHECK(empty.amount() == 0_B);
  }
  CHECK(l.current() == 0_B);
}

TEST_CASE("Charge: a range is listed in the snapshot until it is released") {
  Ledger l;
  char block[64] = {};
  {
    const Charge c(l, "arena/model", block, 64_B);
    const Charge nothing(l, "arena/empty", block, 0_B);
    const Snapshot s = l.snapshot();
    REQUIRE(s.ranges.size() == 2);
    CHECK(s.ranges[0].account == "arena/model");
    CHECK(s.ranges[0].begin == block);
    CHECK(s.total("arena") == 64_B);
  }
  CHECK(l.snapshot().ranges.empty());
  CHECK(refusal([&] { l.release(RangeId{99}); }, Code::kMemory) ==
        "range 99 is released, but it is not charged; something is released twice");
}

TEST_CASE("Ledger: threads may charge at the same time") {
  Ledger l;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&l, t] {
      for (int i = 0; i < 500; ++i) {
        const ScopedPhase phase(l, PhaseKind::kStep, "", i);
        const Charge c(l, format("work/thread_{}", t), 16_B);
        l.charge("work/all", 1_B);
      }
    });
  for (std::thread& t : threads) t.join();
  CHECK(l.current() == 2000_B);
}

TEST_CASE("process_ledger: is one for the process") { CHECK(&process_ledger() == &process_ledger()); }
