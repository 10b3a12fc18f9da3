// How fast are convolutions and pools, and are they right?
//
//   conv_bench [--threads N] [--seconds S] [--only TEXT]      a table: least time, GFLOP/s, share of the peak
//   conv_bench --check N [--seed S]                           N random awkward shapes of every operator, results and
//   guard bytes
//
// Every result is checked against loops in double before it is timed (large ones: a sample of the elements).
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "conv_tasks.h"

using namespace conv_tasks;

namespace {

constexpr double kPeak = 118;  // GFLOP/s of one thread (facts.md)

// ---- shapes ----
Spec conv(std::string name, int64_t n, int64_t size, int64_t cin, int64_t cout, int64_t kernel, int64_t stride,
          bool same = true) {
  Spec s{std::move(name),
         n,
         size,
         size,
         cin,
         cout,
         {.height = kernel, .width = kernel, .stride_h = stride, .stride_w = stride}};
  if (same)
    s.win.top = s.win.bottom = s.win.left = s.win.right = kernel / 2;  // Keras's resnet pads by hand, symmetrically
  return s;
}

std::vector<std::pair<Spec, int>> resnet50(int64_t n) {  // the different ones, and how often each occurs
  std::vector<std::pair<Spec, int>> all;
  auto add = [&](int64_t size, int64_t cin, int64_t cout, int64_t k, int64_t stride, int times) {
    char name[64];
    std::snprintf(name, sizeof name, "%ldx%ld %4ld>%-4ld at %3ld /%ld", long(k), long(k), long(cin), long(cout),
                  long(size), long(stride));
    all.push_back({conv(name, n, size, cin, cout, k, stride), times});
  };
  add(224, 3, 64, 7, 2, 1);
  add(56, 64, 64, 1, 1, 1), add(56, 64, 64, 3, 1, 3), add(56, 64, 256, 1, 1, 4), add(56, 256, 64, 1, 1, 2);
  add(56, 256, 128, 1, 2, 1), add(28, 128, 128, 3, 1, 4), add(28, 128, 512, 1, 1, 4), add(56, 256, 512, 1, 2, 1),
      add(28, 512, 128, 1, 1, 3);
  add(28, 512, 256, 1, 2, 1), add(14, 256, 256, 3, 1, 6), add(14, 256, 1024, 1, 1, 6), add(28, 512, 1024, 1, 2, 1),
      add(14, 1024, 256, 1, 1, 5);
  add(14, 1024, 512, 1, 2, 1), add(7, 512, 512, 3, 1, 3), add(7, 512, 2048, 1, 1, 3), add(14, 1024, 2048, 1, 2, 1),
      add(7, 2048, 512, 1, 1, 2);
  return all;
}

Spec random_spec(bool large) {
  Random& r = g_random;
  Spec s;
  const int64_t most = large ? 96 : 40;
  s.name = "random";
  s.n = large ? r.between(4, 16) : r.between(1, 3);
  s.groups = large || r.below(4) ? 1 : r.between(2, 4);
  s.cin = (large ? r.between(8, most) : r.below(3) ? r.between(1, most) : r.between(1, 4)) * s.groups;
  s.cout = (large ? r.between(8, most) : r.below(8) ? r.between(1, most) : r.between(60, 150)) * s.groups;
  if (!large && !r.below(6)) s.groups = s.cin = s.cout = r.between(2, 40);  // depthwise
  s.win.height = r.between(1, large ? 7 : 5), s.win.width = large ? s.win.height : r.between(1, 5);
  s.win.stride_h = r.below(3) ? 1 : r.between(1, 3), s.win.stride_w = r.below(3) ? 1 : r.between(1, 3);
  if (large) s.win.stride_h = s.win.stride_w = r.between(1, 2);
  if (!large && !r.below(3)) s.win.dilation_h = r.between(1, 3), s.win.dilation_w = r.between(1, 3);
  if (!large && !r.below(4)) {  // wide enough for Winograd
    s.groups = 1, s.cin = r.between(16, 100), s.cout = r.between(16, 100);
    s.win.height = s.win.width = 3, s.win.stride_h = s.win.stride_w = s.win.dilation_h = s.win.dilation_w = 1;
  }
  const int64_t dh = s.win.dilation_h * (s.win.height - 1) + 1, dw = s.win.dilation_w * (s.win.width - 1) + 1;
  s.h = large ? 2 * r.between(8, 50) + 1 : r.between(dh, dh + 12),
  s.w = large ? 2 * r.between(8, 50) + 1 : r.between(dw, dw + 25);
  if (large || r.below(2)) {
    s.win.top = r.below(dh), s.win.bottom = r.below(dh), s.win.left = r.below(dw), s.win.right = r.below(dw);
    if (large) s.win.top = s.win.bottom = s.win.left = s.win.right = s.win.height / 2;
  }
  char name[100];
  std::snprintf(name, sizeof name, "%ldx%ldx%ldx%ld %ldx%ld >%ld /%ld,%ld d%ld,%ld p%ld,%ld,%ld,%ld g%ld", long(s.n),
                long(s.h), long(s.w), long(s.cin), long(s.win.height), long(s.win.width), long(s.cout),
                long(s.win.stride_h), long(s.win.stride_w), long(s.win.dilation_h), long(s.win.dilation_w),
                long(s.win.top), long(s.win.bottom), long(s.win.left), long(s.win.right), long(s.groups));
  s.name = name;
  return s;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int g_threads = 2;
double g_seconds = 0.6;
std::string g_only;

struct Times {
  double wall, processor;  // least, ms; processor: of all threads together, divided by their number
};

/// After a check.
Times time(Task& t, Team& team, int64_t samples = 200) {
  t.call->run(team);
  const std::string wrong = t.check(*t.call, samples);
  if (!wrong.empty() || !t.call->intact()) {
    std::printf("%s: WRONG: %s\n", t.name.c_str(), wrong.empty() ? "guard bytes" : wrong.c_str());
    std::exit(1);
  }
  Times best{1e30, 1e30};
  const double until = now() + g_seconds;
  for (int k = 0; k < 3 || now() < until; ++k) {
    const double a = now(), spent = t.call->run(team);
    best = {std::min(best.wall, (now() - a) * 1e3), std::min(best.processor, spent * 1e3 / team.size())};
  }
  return best;
}

struct Line {
  double ms = 0, flops = 0;
};
Line report(Task t, Team& team) {
  if (!g_only.empty() && t.name.find(g_only) == std::string::npos) return {};
  const Times ms = time(t, team);
  const double rate = t.call->flops / ms.processor * 1e-6;
  std::printf("%-56s %9.3f ms %9.3f processor", t.name.c_str(), ms.wall, ms.processor);
  if (t.bytes > 0)
    std::printf(" %8.1f GB/s           ", t.bytes / ms.processor * 1e-6);
  else
    std::printf(" %8.1f GFLOP/s %5.1f %%", rate, 100 * rate / (kPeak * team.size()));
  std::printf("   scratch %s%s\n", to_string(t.call->kernel->workspace()).c_str(),
              t.call->kernel->slow() ? " SLOW" : "");
  std::fflush(stdout);
  return {ms.processor, t.call->flops};
}

int check(int64_t cases, uint64_t seed) {
  Team two(2);
  int64_t done = 0;
  for (int64_t k = 0; k < cases; ++k) {
    g_random.s = seed + uint64_t(k) * 7919;
    const Spec s = random_spec(false);
    std::vector<Task> tasks;
    tasks.push_back(forward(s, 2));
    tasks.push_back(backward_input(s, 2));
    tasks.push_back(backward_filter(s, 2));
    Spec one = s;
    one.groups = 1;
    if (g_random.below(2)) one.cin = g_random.between(1, 16);
    if (g_random.below(2))
      one.win.height = one.win.width = 3,
      one.win.stride_h = one.win.stride_w = one.win.dilation_h = one.win.dilation_w = 1, one.h += 3, one.w += 3;
    PoolSpec p{one, 2, 2};
    if (!g_random.below(4)) p.ph = g_random.between(1, 3), p.pw = g_random.between(2, 4);
    if (p.rows() > 0 && p.cols() > 0) {
      tasks.push_back(conv_pool(p, 2));
      tasks.push_back(conv_pool_backward(p, 2));
      tasks.push_back(conv_pool_backward_input(p, 2));
    }
    Spec w = s;
    w.groups = 1, w.win.height = std::max(w.win.height, w.win.top + 1), w.cout = w.cin;
    // A window of nothing but padding has no largest: keep the padding below the size.
    w.win.dilation_h = w.win.dilation_w = 1;
    w.win.top = std::min(w.win.top, w.win.height - 1), w.win.bottom = std::min(w.win.bottom, w.win.height - 1);
    w.win.left = std::min(w.win.left, w.win.width - 1), w.win.right = std::min(w.win.right, w.win.width - 1);
    w.h += 8, w.w += 8;
    tasks.push_back(max_pool(w, 2));
    tasks.push_back(max_pool_backward(w, 2));
    tasks.push_back(average_pool(w, 2));
    tasks.push_back(average_pool_backward(w, 2));
    for (Task& t : tasks) {
      if (!g_only.empty() && t.name.find(g_only) == std::string::npos) continue;
      t.call->run(two);
      std::string wrong = t.check(*t.call, 4000);
      if (wrong.empty() && !t.call->intact()) wrong = "guard bytes were written over";
      if (wrong.empty()) {  // one thread, blocks in reverse: the same bits
        std::vector<std::vector<float>> first;
        for (const auto& o : t.call->outs) first.emplace_back(o->f(), o->f() + o->floats()), o->spoil();
        t.call->scratch->spoil();
        int phase = 0;
        for (const int blocks : t.call->kernel->phases()) {
          for (int b = blocks; b-- > 0;) t.call->kernel->run(t.call->arguments(), phase, b, b % 2);
          ++phase;
        }
        for (size_t o = 0; o < first.size(); ++o)
          if (std::memcmp(first[o].data(), t.call->outs[o]->f(), first[o].size() * 4))
            wrong = "other bits when the blocks run in another order";
      }
      if (!wrong.empty()) {
        std::printf("case %ld, %s: %s\n", long(k), t.name.c_str(), wrong.c_str());
        return 1;
      }
      ++done;
    }
  }
  std::printf("%ld calls of %ld random shapes are right\n", long(done), long(cases));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int64_t cases = 0;
  uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    if (key == "--threads")
      g_threads = std::atoi(argv[i + 1]);
    else if (key == "--seconds")
      g_seconds = std::atof(argv[i + 1]);
    else if (key == "--only")
      g_only = argv[i + 1];
    else if (key == "--check")
      cases = std::atoll(argv[i + 1]);
    else if (key == "--seed")
      seed = uint64_t(std::atoll(argv[i + 1]));
    else
      return std::fprintf(stderr, "conv_bench: unknown option %s\n", argv[i]), 2;
  }
  if (cases > 0) return check(cases, seed);

  Team team(g_threads);
  std::printf("%d threads, peak %.0f GFLOP/s\n", g_threads, kPeak * g_threads);
  PoolSpec cnn{conv("cnn_224", 32, 224, 3, 32, 3, 1, false), 2, 2};
  report(conv_pool(cnn, g_threads), team);
  report(conv_pool_backward(cnn, g_threads), team);
  {
    PoolSpec mnist{conv("mnist 28x28x1", 64, 28, 1, 32, 3, 1, false), 2, 2},
        second{conv("mnist 13x13x32", 64, 13, 32, 64, 3, 1, false), 2, 2};
    report(conv_pool(mnist, g_threads), team), report(conv_pool_backward(mnist, g_threads), team);
    report(conv_pool(second, g_threads), team), report(conv_pool_backward(second, g_threads), team);
    report(conv_pool_backward_input(second, g_threads), team);
  }
  double ms[3] = {}, flops = 0;
  for (const auto& [s, times] : resnet50(8)) {
    const Line a = report(forward(s, g_threads), team);
    ms[0] += times * a.ms, flops += times * a.flops;
    if (s.cin > 3) {
      const Line b = report(backward_input(s, g_threads), team);
      ms[1] += times * b.ms, flops += times * b.flops;
    }
    const Line c = report(backward_filter(s, g_threads), team);
    ms[2] += times * c.ms, flops += times * c.flops;
  }
  if (g_only.empty())
    std::printf(
        "resnet50, batch 8, all convolutions: forward %.1f + input %.1f + filter %.1f = %.1f ms, %.1f GFLOP, %.1f "
        "GFLOP/s\n",
        ms[0], ms[1], ms[2], ms[0] + ms[1] + ms[2], flops * 1e-9, flops / (ms[0] + ms[1] + ms[2]) * 1e-6);
  g_random.s = 4711;
  for (int k = 0; k < 10; ++k) {
    const Spec s = random_spec(true);
    report(forward(s, g_threads), team), report(backward_input(s, g_threads), team),
        report(backward_filter(s, g_threads), team);
  }
  for (const int64_t stride : {1, 2}) {
    Spec s = conv("depthwise 3x3 144 at 56 /" + std::to_string(stride), 8, 56, 144, 144, 3, stride);
    s.groups = 144;
    report(forward(s, g_threads), team), report(backward_input(s, g_threads), team),
        report(backward_filter(s, g_threads), team);
  }
  Spec pool = conv("resnet pool 112 3x3 /2", 8, 112, 64, 64, 3, 2);
  report(max_pool(pool, g_threads), team), report(max_pool_backward(pool, g_threads), team);
  Spec plain = conv("pool 112 2x2 /2", 8, 112, 64, 64, 2, 2, false);
  report(max_pool(plain, g_threads), team), report(max_pool_backward(plain, g_threads), team);
  report(average_pool(plain, g_threads), team), report(average_pool_backward(plain, g_threads), team);
}
