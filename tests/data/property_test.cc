// Random compositions of stages under random budgets: each gives, element for element, what a plain reference gives,
// and holds no more than its budget.
#include <doctest/doctest.h>

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <functional>

#include "data/node.h"
#include "data/permutation.h"
#include "data/running.h"
#include "support.h"

using namespace millpond;
using namespace millpond::test;

namespace {

using Ceilings = std::map<const data::Node*, Bytes>;
/// What the dataset gives in the epoch with this key.
using Reference = std::function<std::vector<Item>(uint64_t key, const Ceilings&)>;

struct Case {
  Dataset dataset;
  Reference reference;
  bool stable = true;  // the same in every epoch
  std::string text;
};

Plain number(int64_t v) {
  Plain p{DType::kInt64, {}, std::vector<std::byte>(8)};
  std::memcpy(p.bytes.data(), &v, 8);
  return p;
}
int64_t first_number(const Plain& p) {  // something of any tensor to decide by
  uint64_t h = 1469598103934665603ull;
  for (const std::byte b : p.bytes) h = (h ^ uint64_t(b)) * 1099511628211ull;
  return int64_t(h >> 40);
}
int64_t first_number(const Element& e) {
  if (e.empty()) return 0;
  Plain p{e[0].dtype(), {}, {e[0].data(), e[0].data() + e[0].bytes().value}};
  return first_number(p);
}

bool all_alike(const std::vector<Item>& items) {
  for (const Item& i : items) {
    if (i.size() != items[0].size()) return false;
    for (size_t t = 0; t < i.size(); ++t)
      if (i[t].shape != items[0][t].shape || i[t].dtype != items[0][t].dtype) return false;
  }
  return true;
}

Item stack(const std::vector<Item>& rows) {
  Item out;
  for (size_t t = 0; t < rows[0].size(); ++t) {
    Plain p{rows[0][t].dtype, rows[0][t].shape, {}};
    p.shape.insert(p.shape.begin(), int64_t(rows.size()));
    for (const Item& r : rows) p.bytes.insert(p.bytes.end(), r[t].bytes.begin(), r[t].bytes.end());
    out.push_back(std::move(p));
  }
  return out;
}
// One dimension, zeros behind.
Item stack_padded(const std::vector<Item>& rows) {
  std::vector<Item> wide = rows;
  for (size_t t = 0; t < rows[0].size(); ++t) {
    if (rows[0][t].shape.empty()) continue;
    size_t most = 0;
    for (const Item& r : rows) most = std::max(most, r[t].bytes.size());
    for (Item& r : wide) {
      const int64_t item = size_of(r[t].dtype).value;
      r[t].bytes.resize(most);
      r[t].shape[0] = int64_t(most) / item;
    }
  }
  return stack(wide);
}

class Maker {
 public:
  explicit Maker(uint64_t seed) : r_(seed) {}

  Case make() {
    Case c = source();
    const int stages = 1 + int(r_.below(6));
    for (int i = 0; i < stages; ++i) c = stage(std::move(c));
    if (r_.below(2)) c = prefetch(std::move(c));
    return c;
  }

 private:
  int64_t pick(int64_t least, int64_t most) { return least + int64_t(r_.below(uint64_t(most - least + 1))); }

  Case source() {
    switch (r_.below(4)) {
      case 0: {
        const int64_t n = pick(0, 60);
        std::vector<Item> all;
        for (int64_t i = 0; i < n; ++i) all.push_back({number(i * 3 + 5)});
        return {Dataset::range(5, 5 + 3 * n, 3), [all](uint64_t, const Ceilings&) { return all; }, true,
                format("range({})", n)};
      }
      case 1: {
        const int64_t n = pick(0, 80), w = pick(1, 3000);
        const Tensor x = random_floats({n, w}, r_.next());
        Tensor y(DType::kInt32, {n}, "data/test");
        std::vector<Item> all;
        for (int64_t i = 0; i < n; ++i) {
          y.values<int32_t>()[size_t(i)] = int32_t(i);
          const std::byte *xb = x.data() + i * w * 4, *yb = y.data() + i * 4;
          all.push_back({{DType::kFloat32, {w}, {xb, xb + w * 4}}, {DType::kInt32, {}, {yb, yb + 4}}});
        }
        return {Dataset::from_arrays(x, y), [all](uint64_t, const Ceilings&) { return all; }, true,
                format("arrays({}x{})", n, w)};
      }
      case 2: {  // fixed size, from a generator
        const int64_t n = pick(0, 80), w = pick(1, 2000);
        std::vector<Item> all;
        for (int64_t i = 0; i < n; ++i) all.push_back({vector(i, w)});
        auto d = Dataset::from_generator(
            [n, w] {
              return [n, w, i = int64_t{0}](Element& e, Buffers& b) mutable {
                return i < n && (fill(e, b, i, w), ++i, true);
              };
            },
            {TensorSpec{DType::kFloat32, {w}}}, r_.below(2) ? n : UNKNOWN);
        return {d, [all](uint64_t, const Ceilings&) { return all; }, true, format("generator({}x{})", n, w)};
      }
      default: {  // sizes differ
        const int64_t n = pick(0, 80), w = pick(1, 2000);
        std::vector<Item> all;
        for (int64_t i = 0; i < n; ++i) all.push_back({vector(i, 1 + i * 37 % w)});
        auto d = Dataset::from_generator(
            [n, w] {
              return [n, w, i = int64_t{0}](Element& e, Buffers& b) mutable {
                return i < n && (fill(e, b, i, 1 + i * 37 % w), ++i, true);
              };
            },
            {TensorSpec{DType::kFloat32, {-1}}});
        return {d, [all](uint64_t, const Ceilings&) { return all; }, true, format("ragged({}<{})", n, w)};
      }
    }
  }
  static Plain vector(int64_t i, int64_t w) {
    Plain p{DType::kFloat32, {w}, std::vector<std::byte>(size_t(w) * 4)};
    for (int64_t k = 0; k < w; ++k) {
      const float v = float(i) + float(k) / 8192;
      std::memcpy(p.bytes.data() + k * 4, &v, 4);
    }
    return p;
  }
  static void fill(Element& e, Buffers& b, int64_t i, int64_t w) {
    e.push_back(b.tensor(DType::kFloat32, {w}));
    for (int64_t k = 0; k < w; ++k) e[0].values<float>()[size_t(k)] = float(i) + float(k) / 8192;
  }

  Case prefetch(Case c) {
    static constexpr int64_t kDepths[] = {AUTOTUNE, 1, 3, 10};
    const int64_t depth = kDepths[r_.below(4)];
    c.dataset =
        r_.below(4) == 0 ? c.dataset.prefetch(0, {.bytes = Bytes{pick(1, 400) << 10}}) : c.dataset.prefetch(depth);
    c.text += " | prefetch";
    return c;
  }

  Case stage(Case c) {
    switch (r_.below(17)) {
      case 0: {  // map: a sum in front
        const bool parallel = r_.below(2);
        const int64_t threads = parallel ? (r_.below(2) ? AUTOTUNE : pick(2, 3)) : 1;
        auto f = [](Element& e, Buffers& b) {
          const int64_t v = first_number(e);
          Tensor t = b.tensor(DType::kInt64, {});
          t.values<int64_t>()[0] = v + b.index();
          e.insert(e.begin(), std::move(t));
        };
        return {c.dataset.map(f, {.parallel = threads}),
                [of = c.reference](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all = of(key, m);
                  for (size_t i = 0; i < all.size(); ++i) {
                    const int64_t v = all[i].empty() ? 0 : first_number(all[i][0]);
                    all[i].insert(all[i].begin(), number(v + int64_t(i)));
                  }
                  return all;
                },
                c.stable, c.text + format(" | map({})", threads)};
      }
      case 1: {
        return {c.dataset.filter([](const Element& e) { return first_number(e) % 3 != 0; }),
                [of = c.reference](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all;
                  for (Item& i : of(key, m))
                    if (i.empty() || first_number(i[0]) % 3 != 0) all.push_back(std::move(i));
                  return all;
                },
                c.stable, c.text + " | filter"};
      }
      case 2: {
        const int64_t n = pick(0, 50);
        return {c.dataset.take(n),
                [of = c.reference, n](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all = of(key, m);
                  if (int64_t(all.size()) > n) all.resize(size_t(n));
                  return all;
                },
                c.stable, c.text + format(" | take({})", n)};
      }
      case 3: {
        const int64_t n = pick(0, 20);
        return {c.dataset.skip(n),
                [of = c.reference, n](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all = of(key, m);
                  all.erase(all.begin(), all.begin() + std::min(n, int64_t(all.size())));
                  return all;
                },
                c.stable, c.text + format(" | skip({})", n)};
      }
      case 4: {
        const int64_t of_n = pick(1, 4), at = pick(0, of_n - 1);
        return {c.dataset.shard(of_n, at),
                [of = c.reference, of_n, at](uint64_t key, const Ceilings& m) {
                  const std::vector<Item> all = of(key, m);
                  std::vector<Item> some;
                  for (size_t i = size_t(at); i < all.size(); i += size_t(of_n)) some.push_back(all[i]);
                  return some;
                },
                c.stable, c.text + format(" | shard({},{})", of_n, at)};
      }
      case 5: {
        const int64_t n = pick(0, 3);
        return {c.dataset.repeat(n),
                [of = c.reference, n](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all;
                  for (int64_t i = 0; i < n; ++i) {
                    const std::vector<Item> round = of(i == 0 ? key : random_key(key, uint64_t(i)), m);
                    all.insert(all.end(), round.begin(), round.end());
                  }
                  return all;
                },
                c.stable, c.text + format(" | repeat({})", n)};
      }
      case 6: {
        Case d = source();
        return {Dataset::zip({c.dataset, d.dataset}),
                [one = c.reference, two = d.reference](uint64_t key, const Ceilings& m) {
                  const std::vector<Item> x = one(key, m), y = two(key, m);
                  std::vector<Item> all;
                  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
                    all.push_back(x[i]);
                    all.back().insert(all.back().end(), y[i].begin(), y[i].end());
                  }
                  return all;
                },
                c.stable, format("zip({}, {})", c.text, d.text)};
      }
      case 7: {  // with itself, taken from
        return {c.dataset.concatenate(c.dataset.take(3)),
                [of = c.reference](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all = of(key, m);
                  const size_t n = std::min<size_t>(3, all.size());
                  for (size_t i = 0; i < n; ++i) all.push_back(Item(all[i]));
                  return all;
                },
                c.stable, c.text + " | concatenate(itself.take(3))"};
      }
      case 8: {
        return {c.dataset.enumerate(7),
                [of = c.reference](uint64_t key, const Ceilings& m) {
                  std::vector<Item> all = of(key, m);
                  for (size_t i = 0; i < all.size(); ++i) all[i].insert(all[i].begin(), number(7 + int64_t(i)));
                  return all;
                },
                c.stable, c.text + " | enumerate"};
      }
      case 9: {  // batch, padded where shapes differ
        const int64_t n = pick(1, 9);
        const bool drop = r_.below(2), padded = !alike(c);
        if (padded && !one_dimensional(c)) return c;
        return {c.dataset.batch(n, {.drop_remainder = drop, .padded = padded}),
                [of = c.reference, n, drop, padded](uint64_t key, const Ceilings& m) {
                  const std::vector<Item> all = of(key, m);
                  std::vector<Item> batches;
                  for (size_t i = 0; i < all.size(); i += size_t(n)) {
                    const std::vector<Item> rows(all.begin() + int64_t(i),
                                                 all.begin() + int64_t(std::min(all.size(), i + size_t(n))));
                    if (int64_t(rows.size()) < n && drop) break;
                    batches.push_back(padded ? stack_padded(rows) : stack(rows));
                  }
                  return batches;
                },
                c.stable, c.text + format(" | batch({}{}{})", n, drop ? ", drop" : "", padded ? ", padded" : "")};
      }
      case 10: {
        if (!alike(c)) return c;
        const int64_t n = pick(2, 6);
        return {c.dataset.batch(n).unbatch(), c.reference, c.stable, c.text + format(" | batch({}) | unbatch", n)};
      }
      case 11: {
        if (!alike(c)) return c;
        const int64_t size = pick(1, 5), shift = pick(1, 6), stride = pick(1, 3);
        const bool drop = r_.below(2);
        return {c.dataset.window(size, {.shift = shift, .stride = stride, .drop_remainder = drop}),
                [of = c.reference, size, shift, stride, drop](uint64_t key, const Ceilings& m) {
                  const std::vector<Item> all = of(key, m);
                  std::vector<Item> windows;
                  for (int64_t i = 0; i < int64_t(all.size()); i += shift) {
                    std::vector<Item> rows;
                    for (int64_t k = 0; k < size && i + k * stride < int64_t(all.size()); ++k)
                      rows.push_back(all[size_t(i + k * stride)]);
                    if (int64_t(rows.size()) < size && drop) break;
                    windows.push_back(stack(rows));
                  }
                  return windows;
                },
                c.stable, c.text + format(" | window({},{},{})", size, shift, stride)};
      }
      case 12:
      case 13:
        return shuffle(std::move(c));
      case 14: {
        if (!c.stable) return c;  // what a cache keeps is that of the first whole round
        const bool file = r_.below(3) == 0;
        const Bytes memory{r_.below(2) ? pick(1, 300) << 10 : 0};
        return {c.dataset.cache({.memory = memory, .file_only = file}), c.reference, true,
                c.text + format(" | cache({}{})", memory, file ? ", file" : "")};
      }
      case 15: {
        const int64_t cycle = pick(1, 4), block = pick(1, 3);
        const bool flat = cycle == 1 && block == 1, parallel = r_.below(2);
        const auto inner = [](const Element& e) {
          const int64_t v = std::abs(first_number(e));
          return Dataset::range(v, v + v % 5);
        };
        const auto inner_reference = [](const Item& i) {
          const int64_t v = i.empty() ? 0 : std::abs(first_number(i[0]));
          std::vector<Item> all;
          for (int64_t k = 0; k < v % 5; ++k) all.push_back({number(v + k)});
          return all;
        };
        return {flat
                    ? c.dataset.flat_map(inner)
                    : c.dataset.interleave(inner, {.cycle_length = cycle, .block_length = block, .parallel = parallel}),
                [of = c.reference, inner_reference, cycle, block](uint64_t key, const Ceilings& m) {
                  const std::vector<Item> from = of(key, m);
                  std::vector<Item> all;
                  // As TensorFlow's: a place whose dataset has ended is left, and filled when it is come to again.
                  struct Place {
                    std::vector<Item> rows;
                    size_t at = 0;
                    bool open = false;
                  };
                  std::vector<Place> places{size_t(cycle)};
                  size_t here = 0, next = 0;
                  int64_t taken = 0, open = 0;
                  const auto turn = [&] { here = (here + 1) % places.size(), taken = 0; };
                  while (next < from.size() || open > 0) {
                    Place& p = places[here];
                    if (p.open) {
                      if (p.at < p.rows.size()) {
                        all.push_back(p.rows[p.at++]);
                        if (++taken == block) turn();
                      } else {
                        p.open = false;
                        --open;
                        turn();
                      }
                    } else if (next < from.size()) {
                      p = {inner_reference(from[next++]), 0, true};
                      ++open;
                    } else {
                      turn();
                    }
                  }
                  return all;
                },
                c.stable, c.text + format(" | interleave({},{})", cycle, block)};
      }
      default:
        return prefetch(std::move(c));
    }
  }

  Case shuffle(Case c) {
    const uint64_t seed = r_.next();
    const bool reshuffle = r_.below(2);
    ShuffleOptions o{.seed = seed, .reshuffle_each_iteration = reshuffle};
    switch (r_.below(4)) {
      case 0:
        o.elements = pick(1, 40);
        break;
      case 1:
        o.bytes = Bytes{pick(1, 500) << 10};
        break;
      case 2:
        o.permute = false;
        break;
      default:
        break;
    }
    const bool permuted = c.dataset.node()->indexed() && o.permute;
    Dataset d = c.dataset.shuffle(o);
    const data::Node* node = d.node().get();
    Reference reference;
    if (permuted) {
      reference = [of = c.reference, seed, reshuffle](uint64_t key, const Ceilings& m) {
        const std::vector<Item> all = of(key, m);
        const data::Permutation p(all.size(), random_key(seed, reshuffle ? key : 0));
        std::vector<Item> out;
        for (size_t i = 0; i < all.size(); ++i) out.push_back(all[p(i)]);
        return out;
      };
    } else {
      const int64_t most = o.elements ? o.elements : INT64_MAX;
      reference = [of = c.reference, seed, reshuffle, most, node](uint64_t key, const Ceilings& m) {
        const std::vector<Item> all = of(key, m);
        const int64_t bound = m.at(node).value;
        Random random(random_key(seed, reshuffle ? key : 0));
        std::vector<Item> buffer, out;
        const auto cost = [](const Item& i) {
          int64_t sum = int64_t(sizeof(Element) + i.size() * sizeof(Tensor) + 16);
          for (const Plain& p : i) sum += data::Pool::cost(Bytes{int64_t(p.bytes.size())}).value;
          return sum;
        };
        int64_t held = 0, largest = 0;
        for (size_t next = 0; next < all.size() || !buffer.empty();) {
          while (next < all.size() && (buffer.empty() || (int64_t(buffer.size()) < most && held + largest <= bound))) {
            held += cost(all[next]);
            largest = std::max(largest, cost(all[next]));
            buffer.push_back(all[next++]);
          }
          const size_t at = size_t(random.below(buffer.size()));
          held -= cost(buffer[at]);
          out.push_back(buffer[at]);
          std::swap(buffer[at], buffer.back());
          buffer.pop_back();
        }
        return out;
      };
    }
    return {d, reference, c.stable && !reshuffle,
            c.text + format(" | shuffle({}{}{})", o.elements ? format("{} elements", o.elements) : "",
                            o.bytes.value ? to_string(o.bytes) : "", permuted ? "permuted" : "")};
  }

  // Asked of the reference: the maker may know what the dataset does not.
  static std::vector<Item> look(const Case& c) {
    Ceilings unlimited;
    std::function<void(const data::Node&)> walk = [&](const data::Node& n) {
      unlimited[&n] = Bytes{int64_t{1} << 40};
      for (const auto& i : n.inputs()) walk(*i);
    };
    walk(*c.dataset.node());
    return c.reference(0, unlimited);
  }
  static bool alike(const Case& c) { return all_alike(look(c)); }
  static bool one_dimensional(const Case& c) {
    const std::vector<Item> all = look(c);
    for (const Item& i : all)
      for (size_t t = 0; t < i.size(); ++t)
        if (i.size() != all[0].size() || i[t].dtype != all[0][t].dtype || i[t].shape.size() != all[0][t].shape.size() ||
            i[t].shape.size() > 1)
          return false;
    return true;
  }

  Random r_;
};

int64_t anonymous_kib() {
  const auto t = totals();
  return t ? t->anonymous.value >> 10 : 0;
}

}  // namespace

TEST_CASE("random pipelines give what a plain reference gives, twice, within their budget") {
  const char* from = std::getenv("MILLPOND_FIRST_CASE");
  const char* many = std::getenv("MILLPOND_CASES");
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  const int cases = many ? std::atoi(many) : 120;
  constexpr bool kExact = false;  // a sanitizer has memory of its own
#else
  const int cases = many ? std::atoi(many) : 600;
  constexpr bool kExact = true;
#endif
  int refused = 0, elements = 0, shuffled = 0, cached = 0, tuned = 0;
  for (int i = from ? std::atoi(from) : 0; i < cases; ++i) {
    Maker maker{uint64_t(i)};
    const Case c = maker.make();
    CAPTURE(i);
    CAPTURE(c.text);
    Random r(uint64_t(i) ^ 0xb0d9e7);
    Bytes budget{(int64_t{32} << 10) * (1 + int64_t(r.below(3))) << r.below(6)};
    for (bool done = false; !done;) {
      const Dataset d = c.dataset.with_options({.budget = budget, .threads = 3});
      try {
        // References for two epochs, before the memory is looked at.
        const Ceilings ceilings = data::ceilings_of(*d.node(), budget, true);
        const std::vector<Item> wanted[2] = {c.reference(0, ceilings), c.reference(1, ceilings)};
        malloc_trim(0);
        const int64_t before = anonymous_kib();
        int64_t most = before;
        DatasetIterator it = d.iterator();
        bool right = true;
        const Bytes biggest{int64_t{1} << 17};  // no element of these pipelines is larger, but for stacked ones
        for (int epoch = 0; epoch < 2 && right; ++epoch) {
          if (epoch) it.rewind(epoch);
          Element e;
          size_t n = 0;
          for (; it.next(e) && right; ++n) {
            right = n < wanted[epoch].size() && same(e, wanted[epoch][n]);
            if (n % 8 == 0) most = std::max(most, anonymous_kib());
          }
          right = right && n == wanted[epoch].size();
          elements += int(n);
          if (!right) FAIL_CHECK(format("epoch {}, element {} of {}", epoch, n, wanted[epoch].size()));
          if (const int64_t said = d.cardinality(); said >= 0 && right) CHECK(said == int64_t(n));
        }
        CHECK(it.peak() <= budget);
        // The ledger of each that holds elements: its bound, and the one element that it may always have.
        for (const data::Stage* stage : it.running().pool().stages())
          if (const data::Stage& s = *stage; s.name == "shuffle" || s.name == "cache" || s.name == "prefetch") {
            CAPTURE(s.text);
            if (s.bound.value > 0) CHECK(s.peak.load() <= s.bound.value + biggest.value);
          }
        // Threads' stacks and the allocator's own come on top: at most 16 threads of 100 KiB and some pages.
        if (kExact) CHECK(most - before <= (budget.value >> 10) + 2048);
        done = true;
      } catch (const Error& e) {
        REQUIRE(e.code() == Code::kMemory);  // refused, before the first element or at one that is too large
        ++refused;
        budget = Bytes{budget.value * 2};
        REQUIRE(budget < 1_GiB);
      }
    }
    shuffled += c.text.find("shuffle(") != std::string::npos;
    cached += c.text.find("cache(") != std::string::npos;
    tuned += c.text.find("map(-1)") != std::string::npos || c.text.find("prefetch") != std::string::npos;
  }
  MESSAGE(format(
      "{} pipelines, {} elements; {} shuffle, {} cache, {} tune themselves; {} budgets were refused as too small",
      cases, elements, shuffled, cached, tuned, refused));
  CHECK(shuffled > cases / 10);
  CHECK(cached > cases / 20);
}
