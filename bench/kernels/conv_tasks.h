// Convolutions and pools as tasks that can be run, and checked against loops in double: operands between guard bytes,
// one kernel, the formula for any element of its results.
#pragma once
#include <sys/mman.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "backend/backend.h"
#include "backend/host/kernel.h"
#include "base/team.h"
#include "ops/all.h"

namespace conv_tasks {

using namespace millpond;
using backend::Arguments;
using backend::host::Kernel;
using graph::TensorType;
using ops::Window;

constexpr double kEps = 0x1p-24;

struct Random {
  uint64_t s = 1;
  uint64_t next() {
    s += 0x9e3779b97f4a7c15ull;
    uint64_t z = s;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return int64_t(next() % uint64_t(n)); }
  int64_t between(int64_t a, int64_t b) { return a + below(b - a + 1); }
  float uniform() { return float(next() >> 40) * 0x1p-23f - 1; }
};
inline Random g_random;

/// Memory, 64-byte aligned, with guard bytes before it and behind it, and an inaccessible page behind those.
class Buffer {
 public:
  explicit Buffer(int64_t bytes) : bytes_(bytes) {
    const int64_t page = 4096, used = (bytes + 63) / 64 * 64 + kGuard;
    size_ = (used + page - 1) / page * page + page;
    base_ = static_cast<unsigned char*>(
        mmap(nullptr, size_t(size_), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (size_ > 4 << 20) madvise(base_, size_t(size_), MADV_HUGEPAGE);
    mprotect(base_ + size_ - page, size_t(page), PROT_NONE);  // who reads behind the end dies
    data_ = base_ + size_ - page - (used - kGuard);
    std::memset(data_ - kGuard, 0x7f, kGuard);  // as a float: 3.4e38
    std::memset(data_ + bytes, 0x7f, size_t(used - kGuard - bytes));
  }
  Buffer(const Buffer&) = delete;
  ~Buffer() { munmap(base_, size_t(size_)); }
  void* data() const { return data_; }
  float* f() const { return reinterpret_cast<float*>(data_); }
  int64_t floats() const { return bytes_ / 4; }
  void randomize() {
    for (int64_t i = 0; i < floats(); ++i) f()[i] = g_random.uniform();
  }
  void spoil() { std::memset(data_, 0xff, size_t(bytes_)); }  // NaN
  bool intact() const {
    for (int64_t i = 0; i < kGuard; ++i)
      if (data_[-1 - i] != 0x7f) return false;
    for (int64_t i = bytes_; i % 64; ++i)
      if (data_[i] != 0x7f) return false;
    return true;
  }

 private:
  static constexpr int64_t kGuard = 4096;
  int64_t bytes_, size_;
  unsigned char *base_, *data_;
};

inline int64_t thread_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

struct Call {
  std::unique_ptr<graph::Operator> op;
  std::vector<TensorType> in, out;
  std::vector<std::unique_ptr<Buffer>> ins, outs;
  std::unique_ptr<Buffer> scratch;
  std::unique_ptr<Kernel> kernel;
  std::vector<void*> in_p, out_p;
  double flops = 0;

  Call(std::unique_ptr<graph::Operator> o, std::vector<TensorType> inputs, int threads)
      : op(std::move(o)), in(std::move(inputs)) {
    out = op->infer(in);
    flops = op->flops(in, out);
    kernel = backend::host::ready(backend::cpu_backend().make(*op, {in, out, threads}));
    for (const TensorType& t : in) {
      ins.push_back(std::make_unique<Buffer>(t.bytes().value));
      ins.back()->randomize();
      in_p.push_back(ins.back()->data());
    }
    for (const TensorType& t : out) {
      outs.push_back(std::make_unique<Buffer>(t.bytes().value));
      outs.back()->spoil();
      out_p.push_back(outs.back()->data());
    }
    scratch = std::make_unique<Buffer>(kernel->workspace().value);
    scratch->spoil();
  }
  Arguments arguments() const { return {in_p.data(), out_p.data(), static_cast<std::byte*>(scratch->data())}; }
  /// Returns the processor time of all threads inside the kernel: on a busy machine it says more than the clock on the
  /// wall.
  double run(Team& team) const {
    const Arguments a = arguments();
    int phase = 0;
    std::atomic<int64_t> spent{0};
    for (const int blocks : kernel->phases()) {
      std::atomic<int> next{0};
      team.run([&](int member) {
        const int64_t start = thread_ns();
        for (int b; (blocks > 1 || member == 0) && (b = next.fetch_add(1)) < blocks;) kernel->run(a, phase, b, member);
        spent += thread_ns() - start;
      });
      ++phase;
    }
    return double(spent) * 1e-9;
  }
  bool intact() const {
    bool ok = scratch->intact();
    for (const auto& b : ins) ok = ok && b->intact();
    for (const auto& b : outs) ok = ok && b->intact();
    return ok;
  }
};

struct Sum {  // with the sum of magnitudes, from which the tolerance comes
  double value = 0, size = 0;
  int64_t count = 0;
  void add(double a, double b) { value += a * b, size += std::fabs(a * b), ++count; }
  double tolerance() const {
    return 8 * kEps * size + 1e-30;
  }  // terms have both signs: errors of the partial sums stay below the whole
};

struct Spec {
  std::string name;
  int64_t n, h, w, cin, cout;
  Window win;
  int64_t groups = 1;
  Shape x() const { return {n, h, w, cin}; }
  Shape filter() const { return {win.height, win.width, cin / groups, cout}; }
  int64_t oh() const { return win.out_height(h); }
  int64_t ow() const { return win.out_width(w); }
  Shape y() const { return {n, oh(), ow(), cout}; }
};

inline TensorType floats(const Shape& s) { return {DType::kFloat32, s}; }

/// Output pixel (i, j) and tap (p, q) read source pixel (row, col), or nothing.
inline bool source(const Spec& s, int64_t i, int64_t j, int64_t p, int64_t q, int64_t& row, int64_t& col) {
  row = i * s.win.stride_h + p * s.win.dilation_h - s.win.top,
  col = j * s.win.stride_w + q * s.win.dilation_w - s.win.left;
  return row >= 0 && row < s.h && col >= 0 && col < s.w;
}

inline Sum convolved(const Spec& s, const float* x, const float* f, int64_t n, int64_t i, int64_t j, int64_t o) {
  Sum sum;
  const int64_t cg = s.cin / s.groups, g = o / (s.cout / s.groups);
  for (int64_t p = 0; p < s.win.height; ++p)
    for (int64_t q = 0; q < s.win.width; ++q) {
      int64_t row, col;
      if (!source(s, i, j, p, q, row, col)) continue;
      for (int64_t c = 0; c < cg; ++c)
        sum.add(x[((n * s.h + row) * s.w + col) * s.cin + g * cg + c],
                f[((p * s.win.width + q) * cg + c) * s.cout + o]);
    }
  return sum;
}

/// Checks `count` elements of a buffer, all when there are fewer; returns a message or nothing.
inline std::string compare(const char* what, const float* got, int64_t size, int64_t count,
                           const std::function<Sum(int64_t)>& wanted, double slack = 1) {
  const bool all = size <= count;
  double worst = 0;
  for (int64_t k = 0; k < std::min(size, count); ++k) {
    const int64_t i = all ? k : g_random.below(size);
    const Sum w = wanted(i);
    const double error = std::fabs(double(got[i]) - w.value), limit = slack * w.tolerance();
    worst = std::max(worst, error / limit);
    if (!(error <= limit)) {
      char text[200];
      std::snprintf(text, sizeof text, "%s[%ld] is %.9g, should be %.9g (limit %.3g)", what, long(i), double(got[i]),
                    w.value, limit);
      return text;
    }
  }
  return {};
}

struct Task {
  std::string name;
  std::unique_ptr<Call> call;
  std::function<std::string(const Call&, int64_t)> check;
  double bytes = 0;  // for those bound by memory
};

inline Task forward(const Spec& s, int threads) {
  Task t{s.name + " forward",
         std::make_unique<Call>(std::make_unique<ops::Conv2D>(s.win, s.groups),
                                std::vector{floats(s.x()), floats(s.filter())}, threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("y", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      return convolved(s, c.ins[0]->f(), c.ins[1]->f(), k / (s.oh() * s.ow() * s.cout), k / (s.ow() * s.cout) % s.oh(),
                       k / s.cout % s.ow(), k % s.cout);
    });
  };
  return t;
}

inline Task backward_input(const Spec& s, int threads) {
  Task t{s.name + " backward input",
         std::make_unique<Call>(std::make_unique<ops::Conv2DBackwardInput>(s.win, s.groups, s.x()),
                                std::vector{floats(s.y()), floats(s.filter())}, threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("dx", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      const int64_t n = k / (s.h * s.w * s.cin), y = k / (s.w * s.cin) % s.h, x = k / s.cin % s.w, ch = k % s.cin;
      const int64_t cg = s.cin / s.groups, og = s.cout / s.groups, g = ch / cg;
      Sum sum;
      for (int64_t p = 0; p < s.win.height; ++p)
        for (int64_t q = 0; q < s.win.width; ++q) {
          const int64_t a = y + s.win.top - p * s.win.dilation_h, b = x + s.win.left - q * s.win.dilation_w;
          if (a < 0 || b < 0 || a % s.win.stride_h || b % s.win.stride_w) continue;
          const int64_t i = a / s.win.stride_h, j = b / s.win.stride_w;
          if (i >= s.oh() || j >= s.ow()) continue;
          for (int64_t o = g * og; o < (g + 1) * og; ++o)
            sum.add(c.ins[0]->f()[((n * s.oh() + i) * s.ow() + j) * s.cout + o],
                    c.ins[1]->f()[((p * s.win.width + q) * cg + ch % cg) * s.cout + o]);
        }
      return sum;
    });
  };
  return t;
}

inline Task backward_filter(const Spec& s, int threads) {
  Task t{s.name + " backward filter",
         std::make_unique<Call>(std::make_unique<ops::Conv2DBackwardFilter>(s.win, s.groups, s.filter()),
                                std::vector{floats(s.x()), floats(s.y())}, threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("dfilter", c.outs[0]->f(), c.outs[0]->floats(), std::max<int64_t>(20, count / 8), [&](int64_t k) {
      const int64_t cg = s.cin / s.groups, o = k % s.cout, ch = k / s.cout % cg, q = k / (s.cout * cg) % s.win.width,
                    p = k / (s.cout * cg * s.win.width);
      const int64_t g = o / (s.cout / s.groups);
      Sum sum;
      for (int64_t n = 0; n < s.n; ++n)
        for (int64_t i = 0; i < s.oh(); ++i)
          for (int64_t j = 0; j < s.ow(); ++j) {
            int64_t row, col;
            if (source(s, i, j, p, q, row, col))
              sum.add(c.ins[0]->f()[((n * s.h + row) * s.w + col) * s.cin + g * cg + ch],
                      c.ins[1]->f()[((n * s.oh() + i) * s.ow() + j) * s.cout + o]);
          }
      return sum;
    });
  };
  return t;
}

// ---- conv_pool ----
struct PoolSpec {
  Spec conv;
  int64_t ph, pw;  // size of the pool
  int64_t rows() const { return conv.oh() / ph; }
  int64_t cols() const { return conv.ow() / pw; }
  Window pool() const { return {.height = ph, .width = pw, .stride_h = ph, .stride_w = pw}; }
};

inline int64_t winner(const ops::ConvPool& op, const uint8_t* w, int64_t cell, int64_t channels, int64_t c) {
  int64_t place = 0;
  const uint8_t* masks = w + cell * op.winner_bytes(channels) + c / 16 * 2 * op.winner_bits();
  for (int b = 0; b < op.winner_bits(); ++b) {
    uint16_t m;
    std::memcpy(&m, masks + 2 * b, 2);
    place |= int64_t(m >> (c % 16) & 1) << b;
  }
  return place;
}

inline Task conv_pool(const PoolSpec& s, int threads) {
  Task t{
      s.conv.name + " conv_pool",
      std::make_unique<Call>(std::make_unique<ops::ConvPool>(s.conv.win, s.pool()),
                             std::vector{floats(s.conv.x()), floats(s.conv.filter()), floats({s.conv.cout})}, threads),
      {}};
  t.check = [s](const Call& c, int64_t count) {
    const auto& op = static_cast<const ops::ConvPool&>(*c.op);
    std::string wrong;
    auto one = [&](int64_t k) {
      const int64_t o = k % s.conv.cout, j = k / s.conv.cout % s.cols(), i = k / (s.conv.cout * s.cols()) % s.rows(),
                    n = k / (s.conv.cout * s.cols() * s.rows());
      const int64_t place = winner(op, static_cast<const uint8_t*>(c.outs[1]->data()), k / s.conv.cout, s.conv.cout, o);
      Sum best, chosen;
      best.value = -1e30;
      for (int64_t d = 0; d < s.ph * s.pw; ++d) {
        Sum v = convolved(s.conv, c.ins[0]->f(), c.ins[1]->f(), n, i * s.ph + d / s.pw, j * s.pw + d % s.pw, o);
        v.add(c.ins[2]->f()[o], 1);
        if (d == place) chosen = v;
        if (v.value > best.value) best = v;
      }
      best.size += 1;  // the transform of a Winograd tile mixes neighbours in
      if (place >= s.ph * s.pw || chosen.value < best.value - 16 * best.tolerance())
        wrong = "the winner of cell " + std::to_string(k) + " is " + std::to_string(place);
      best.value = std::max(0., best.value);
      return best;
    };
    const std::string text = compare("pooled", c.outs[0]->f(), c.outs[0]->floats(), count, one, 8);
    return text.empty() ? wrong : text;
  };
  return t;
}

/// Random winners, all of them places that exist.
inline void choose_winners(const PoolSpec& s, Buffer& winners) {
  const ops::ConvPool before(s.conv.win, s.pool());
  uint8_t* w = static_cast<uint8_t*>(winners.data());
  const int64_t bytes = before.winner_bytes(s.conv.cout), cells = s.conv.n * s.rows() * s.cols();
  std::memset(w, 0, size_t(cells * bytes));
  for (int64_t cell = 0; cell < cells; ++cell)
    for (int64_t c = 0; c < s.conv.cout; ++c) {
      const int64_t place = g_random.below(s.ph * s.pw);
      for (int b = 0; b < before.winner_bits(); ++b)
        if (place >> b & 1)
          w[cell * bytes + c / 16 * 2 * before.winner_bits() + 2 * b + c % 16 / 8] |= uint8_t(1 << (c % 8));
    }
}

inline Task conv_pool_backward(const PoolSpec& s, int threads) {
  const ops::ConvPool before(s.conv.win, s.pool());
  const Shape pooled{s.conv.n, s.rows(), s.cols(), s.conv.cout};
  Task t{s.conv.name + " conv_pool_backward",
         std::make_unique<Call>(
             std::make_unique<ops::ConvPoolBackward>(s.conv.win, s.pool(), s.conv.filter()),
             std::vector<TensorType>{
                 floats(s.conv.x()), {DType::kUInt8, pooled.with(3, before.winner_bytes(s.conv.cout))}, floats(pooled)},
             threads),
         {}};
  choose_winners(s, *t.call->ins[1]);
  t.check = [s, before](const Call& c, int64_t count) {
    auto gradient = [&](int64_t k, bool bias) {
      const int64_t o = k % s.conv.cout, ch = k / s.conv.cout % s.conv.cin,
                    q = k / (s.conv.cout * s.conv.cin) % s.conv.win.width,
                    p = k / (s.conv.cout * s.conv.cin * s.conv.win.width);
      Sum sum;
      for (int64_t cell = 0; cell < s.conv.n * s.rows() * s.cols(); ++cell) {
        const int64_t at = cell * s.conv.cout + o;
        const float g = c.ins[2]->f()[at];
        if (bias) {
          sum.add(g, 1);
          continue;
        }
        const int64_t place = winner(before, static_cast<const uint8_t*>(c.ins[1]->data()), cell, s.conv.cout, o);
        const int64_t n = cell / (s.rows() * s.cols()), i = cell / s.cols() % s.rows(), j = cell % s.cols();
        int64_t row, col;
        if (source(s.conv, i * s.ph + place / s.pw, j * s.pw + place % s.pw, p, q, row, col))
          sum.add(g, c.ins[0]->f()[((n * s.conv.h + row) * s.conv.w + col) * s.conv.cin + ch]);
      }
      return sum;
    };
    const std::string text = compare("dfilter", c.outs[0]->f(), c.outs[0]->floats(), std::max<int64_t>(20, count / 8),
                                     [&](int64_t k) { return gradient(k, false); });
    return text.empty() ? compare("dbias", c.outs[1]->f(), c.outs[1]->floats(), count,
                                  [&](int64_t k) { return gradient(k, true); })
                        : text;
  };
  return t;
}

inline Task conv_pool_backward_input(const PoolSpec& s, int threads) {
  const ops::ConvPool before(s.conv.win, s.pool());
  const Shape pooled{s.conv.n, s.rows(), s.cols(), s.conv.cout};
  Task t{
      s.conv.name + " conv_pool_backward_input",
      std::make_unique<Call>(std::make_unique<ops::ConvPoolBackwardInput>(s.conv.win, s.pool(), s.conv.x()),
                             std::vector<TensorType>{floats(pooled),
                                                     floats(s.conv.filter()),
                                                     {DType::kUInt8, pooled.with(3, before.winner_bytes(s.conv.cout))}},
                             threads),
      {}};
  choose_winners(s, *t.call->ins[2]);
  t.check = [s, before](const Call& c, int64_t count) {
    return compare("dx", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      const Spec& v = s.conv;
      const int64_t n = k / (v.h * v.w * v.cin), y = k / (v.w * v.cin) % v.h, x = k / v.cin % v.w, ch = k % v.cin;
      Sum sum;
      for (int64_t p = 0; p < v.win.height; ++p)
        for (int64_t q = 0; q < v.win.width; ++q) {
          const int64_t a = y + v.win.top - p * v.win.dilation_h, b = x + v.win.left - q * v.win.dilation_w;
          if (a < 0 || b < 0 || a % v.win.stride_h || b % v.win.stride_w) continue;
          const int64_t i = a / v.win.stride_h, j = b / v.win.stride_w;
          if (i / s.ph >= s.rows() || j / s.pw >= s.cols()) continue;
          const int64_t cell = (n * s.rows() + i / s.ph) * s.cols() + j / s.pw, place = i % s.ph * s.pw + j % s.pw;
          for (int64_t o = 0; o < v.cout; ++o)
            if (winner(before, static_cast<const uint8_t*>(c.ins[2]->data()), cell, v.cout, o) == place)
              sum.add(c.ins[0]->f()[cell * v.cout + o],
                      c.ins[1]->f()[((p * v.win.width + q) * v.cin + ch) * v.cout + o]);
        }
      sum.size += sum.size > 0;  // the transform of a Winograd tile mixes neighbours in
      return sum;
    });
  };
  return t;
}

// ---- pools ----
inline bool inside(const Spec& s, int64_t i, int64_t j, int64_t p, int64_t q, int64_t& row, int64_t& col) {
  return source(s, i, j, p, q, row, col);
}

/// Place (row * width + column of the source) of the first largest.
inline int64_t largest(const Spec& s, const float* x, int64_t n, int64_t i, int64_t j, int64_t c) {
  int64_t best = -1;
  for (int64_t p = 0; p < s.win.height; ++p)
    for (int64_t q = 0; q < s.win.width; ++q) {
      int64_t row, col;
      if (!inside(s, i, j, p, q, row, col)) continue;
      const int64_t at = ((n * s.h + row) * s.w + col) * s.cin + c;
      if (best < 0 || x[at] > x[best]) best = at;
    }
  return best;
}

inline Task max_pool(const Spec& s, int threads) {
  Task t{s.name + " max_pool2d",
         std::make_unique<Call>(std::make_unique<ops::MaxPool2D>(s.win), std::vector{floats(s.x())}, threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("y", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      Sum sum;
      sum.add(c.ins[0]->f()[largest(s, c.ins[0]->f(), k / (s.oh() * s.ow() * s.cin), k / (s.ow() * s.cin) % s.oh(),
                                    k / s.cin % s.ow(), k % s.cin)],
              1);
      return sum;
    });
  };
  t.bytes = double(t.call->in[0].bytes().value + t.call->out[0].bytes().value);
  return t;
}

inline Task max_pool_backward(const Spec& s, int threads) {
  const Shape y{s.n, s.oh(), s.ow(), s.cin};
  Task t{s.name + " max_pool2d_backward",
         std::make_unique<Call>(std::make_unique<ops::MaxPool2DBackward>(s.win, s.x()),
                                std::vector<TensorType>{{DType::kUInt8, y}, floats(y)}, threads),
         {}};
  uint8_t* chosen = reinterpret_cast<uint8_t*>(t.call->ins[0]->data());
  for (int64_t k = 0; k < y.size(); ++k) {  // any place inside the image
    const int64_t i = k / (s.ow() * s.cin) % s.oh(), j = k / s.cin % s.ow();
    int64_t place = k * 7 % (s.win.height * s.win.width), row, col;
    while (!inside(s, i, j, place / s.win.width, place % s.win.width, row, col))
      place = (place + 1) % (s.win.height * s.win.width);
    chosen[k] = uint8_t(place);
  }
  t.check = [s](const Call& c, int64_t count) {
    return compare("dx", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      const int64_t n = k / (s.h * s.w * s.cin), ch = k % s.cin, row = k / (s.w * s.cin) % s.h, col = k / s.cin % s.w;
      const auto* winners = reinterpret_cast<const uint8_t*>(c.ins[0]->data());
      Sum sum;
      sum.add(0, 0);
      for (int64_t i = 0; i < s.oh(); ++i)
        for (int64_t j = 0; j < s.ow(); ++j) {
          const int64_t at = ((n * s.oh() + i) * s.ow() + j) * s.cin + ch;
          int64_t r, v;
          if (inside(s, i, j, winners[at] / s.win.width, winners[at] % s.win.width, r, v) && r == row && v == col)
            sum.add(c.ins[1]->f()[at], 1);
        }
      return sum;
    });
  };
  t.bytes = double(t.call->in[0].bytes().value + t.call->in[1].bytes().value + t.call->out[0].bytes().value);
  return t;
}

inline int64_t members(const Spec& s, int64_t i, int64_t j) {
  int64_t count = 0, row, col;
  for (int64_t p = 0; p < s.win.height; ++p)
    for (int64_t q = 0; q < s.win.width; ++q) count += inside(s, i, j, p, q, row, col);
  return count;
}

inline Task average_pool(const Spec& s, int threads) {
  Task t{s.name + " average_pool2d",
         std::make_unique<Call>(std::make_unique<ops::AveragePool2D>(s.win), std::vector{floats(s.x())}, threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("y", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      const int64_t n = k / (s.oh() * s.ow() * s.cin), i = k / (s.ow() * s.cin) % s.oh(), j = k / s.cin % s.ow();
      Sum sum;
      for (int64_t p = 0; p < s.win.height; ++p)
        for (int64_t q = 0; q < s.win.width; ++q) {
          int64_t row, col;
          if (inside(s, i, j, p, q, row, col))
            sum.add(c.ins[0]->f()[((n * s.h + row) * s.w + col) * s.cin + k % s.cin], 1. / double(members(s, i, j)));
        }
      return sum;
    });
  };
  t.bytes = double(t.call->in[0].bytes().value + t.call->out[0].bytes().value);
  return t;
}

inline Task average_pool_backward(const Spec& s, int threads) {
  const Shape y{s.n, s.oh(), s.ow(), s.cin};
  Task t{s.name + " average_pool2d_backward",
         std::make_unique<Call>(std::make_unique<ops::AveragePool2DBackward>(s.win, s.x()), std::vector{floats(y)},
                                threads),
         {}};
  t.check = [s](const Call& c, int64_t count) {
    return compare("dx", c.outs[0]->f(), c.outs[0]->floats(), count, [&](int64_t k) {
      const int64_t n = k / (s.h * s.w * s.cin), row = k / (s.w * s.cin) % s.h, col = k / s.cin % s.w;
      Sum sum;
      for (int64_t i = 0; i < s.oh(); ++i)
        for (int64_t j = 0; j < s.ow(); ++j) {
          const int64_t top = i * s.win.stride_h - s.win.top, left = j * s.win.stride_w - s.win.left;
          const int64_t a = row - top, b = col - left;
          if (a < 0 || b < 0 || a % s.win.dilation_h || b % s.win.dilation_w || a / s.win.dilation_h >= s.win.height ||
              b / s.win.dilation_w >= s.win.width)
            continue;
          sum.add(c.ins[0]->f()[((n * s.oh() + i) * s.ow() + j) * s.cin + k % s.cin], 1. / double(members(s, i, j)));
        }
      return sum;
    });
  };
  t.bytes = double(t.call->in[0].bytes().value + t.call->out[0].bytes().value);
  return t;
}

}  // namespace conv_tasks
