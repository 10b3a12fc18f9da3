// Node: a stage as it was asked for, shared by all datasets made from it; never changed. Iterator: a stage that runs.
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "data/budget.h"
#include "data/pool.h"
#include "millpond/dataset.h"

namespace millpond::data {

class Indexed;
class Iterator;
class Node;
class Running;
using NodePtr = std::shared_ptr<const Node>;

inline constexpr size_t kMostTensors = 64;  // in one element
inline constexpr int64_t kChunk = 256;      // rows whose numbers are worked out at once, on the stack

inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

/// The key of what goes on inside the i-th round of something: the first round keeps the key.
constexpr uint64_t nested(uint64_t key, uint64_t i) { return i == 0 ? key : random_key(key, i); }

/// What all iterators of one running pipeline share.
class Run {
 public:
  Run(std::shared_ptr<Pool> its_pool, int most_threads) : pool(std::move(its_pool)), threads(most_threads) {}
  std::shared_ptr<Pool> pool;
  int threads;  // for a stage that tunes itself, at most
  std::atomic<bool> stopping{false};
  std::map<const Node*, uint64_t> seeds;  // instead of the nodes' own: of a position that was restored
  uint64_t seed_of(const Node& node) const;
  /// The inner pipelines of flat_map have no stages of their own in the table: one for each kind is used again.
  Stage& inner_stage(const std::string& name, const std::string& text);

 private:
  std::mutex lock_;
  std::map<std::string, Stage*> inner_;
};

/// Where in the tree an iterator is started, and how many bytes each holder below may hold.
struct Scope {
  const std::map<const Node*, Bytes>* ceilings;
  bool inner = false;
  int depth = 0;
};

struct Need {
  Bytes working = {};
  bool holds = false;
  Bytes least = {}, ask = {};
};

class Node {
 public:
  explicit Node(std::vector<NodePtr> inputs = {}) : inputs_(std::move(inputs)) {}
  virtual ~Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  virtual std::string name() const = 0;
  virtual std::string text() const { return name(); }  // with what it was told
  virtual const ElementSpec& spec() const = 0;
  virtual int64_t cardinality() const = 0;
  /// What the largest element costs in pooled buffers, one for each tensor; 0: not known.
  virtual Bytes most() const;
  /// Is all that it will take known before? Not where a function may take what it likes.
  virtual bool sure() const { return most().value > 0; }
  virtual Need need() const { return {}; }
  /// The same stage over another input, where it does not matter in which order elements come to it; null where it
  /// does.
  virtual NodePtr over(NodePtr) const { return nullptr; }
  virtual std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope& scope) const = 0;
  /// Not null: its elements can be had in any order.
  virtual const Indexed* indexed() const { return nullptr; }
  virtual bool ordered() const { return true; }
  virtual std::optional<uint64_t> seed() const { return {}; }
  virtual const std::vector<std::string>& class_names() const;
  virtual const DatasetOptions* options() const { return nullptr; }
  /// Inputs that are not run: an indexed stage reads its source itself.
  virtual std::vector<NodePtr> run_inputs() const { return inputs_; }

  const std::vector<NodePtr>& inputs() const { return inputs_; }
  const Node& input(size_t i = 0) const { return *inputs_[i]; }
  /// Makes the stage, puts it into the table and starts its iterator.
  std::unique_ptr<Iterator> start(Run& run, const Scope& scope) const;
  Bytes ceiling(const Scope& scope) const;

  // The pipeline of it that was begun last, for explain.
  struct Log {
    std::mutex lock;
    Running* running = nullptr;
    std::string last;
  };
  Log& log() const { return log_; }

 protected:
  std::vector<NodePtr> inputs_;
  mutable Log log_;
};

/// Elements that can be had by number, in any order and from any thread.
class Indexed {
 public:
  virtual ~Indexed() = default;
  virtual int64_t size() const = 0;
  /// The rows `index` (numbers below size(); changed on the way), one after the other, into to[tensor].
  virtual void gather(const Run& run, uint64_t key, std::span<int64_t> index, std::span<std::byte* const> to) const = 0;
  /// The row where it lies, if it lies in memory; false: gather it.
  virtual bool view(const Run& run, uint64_t key, int64_t row, Element& e) const = 0;
};

/// A batch that is being filled: where the rows of each tensor go.
struct RowSink {
  std::array<std::byte*, kMostTensors> to{};  // the next row of each
  std::array<int64_t, kMostTensors> bytes{};  // of one row
  const ElementSpec* spec = nullptr;          // of one row, fixed
  /// Copies one element; throws Error(kShape) when it is not what the spec says.
  void append(const Element& e);
  void advance(int64_t rows) {
    for (size_t i = 0; i < spec->size(); ++i) to[i] += rows * bytes[i];
  }
};

/// Rows that one worker will read.
struct RowClaim {
  int64_t first = 0, rows = 0;
};

class Iterator {
 public:
  Iterator(Run& run, Stage& stage) : run_(run), stage_(stage) {}
  virtual ~Iterator() = default;
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  /// The next element into `e`, or false at the end. What `e` held before is dropped; its own memory is used again.
  bool next(Element& e);
  /// Appends up to `n` elements; fewer only at the end. Only where the stage's spec is fixed.
  int64_t rows(RowSink& sink, int64_t n);
  /// From the beginning. Must be called once before anything is asked for.
  void rewind(uint64_t key) {
    index_ = 0;
    begin(key);
  }
  /// Passes over up to `n` elements; says how many there were.
  int64_t skip(int64_t n) {
    const int64_t done = pass(n);
    index_ += done;
    return done;
  }
  /// Wakes whoever waits below and makes it give up; before destruction.
  virtual void cancel() {}
  /// Queues begin to fill.
  virtual void warm() {}
  /// Elements that are still to come; -1: not known.
  virtual int64_t remaining() const { return -1; }
  /// How many rows the next batch will have (0: there is none); -1: that cannot be said before, or this is no batch.
  virtual int64_t upcoming() const { return -1; }
  /// Whether the next element can be claimed in order, by one thread at a time, and made later by any.
  virtual bool splits() const { return false; }
  virtual bool claim(RowClaim&) { return false; }
  virtual void gather(const RowClaim&, Element&) {}
  /// Of numbered rows: the next `n` (or as many as there are) are taken; and read, from any thread.
  virtual bool numbered() const { return false; }
  virtual RowClaim claim_rows(int64_t) { return {}; }
  virtual void read_rows(const RowClaim&, RowSink&) const {}
  /// The next batch straight into the caller's buffers, `rows` as upcoming() said.
  virtual void fill(std::span<std::byte* const>, int64_t) {}
  Stage& stage() const { return stage_; }
  int64_t index() const { return index_; }

 protected:
  virtual bool get(Element& e) = 0;
  virtual int64_t get_rows(RowSink& sink, int64_t n);
  virtual void begin(uint64_t key) = 0;
  virtual int64_t pass(int64_t n);
  Pool& pool() const { return *run_.pool; }

  Run& run_;
  Stage& stage_;
  int64_t index_ = 0;  // of the next element, since the last rewind

 private:
  int64_t calls_ = 0;
  int64_t rows_done_ = 0;  // of the rows() that runs, so that an error knows its element
  bool slow_ = false;
};

/// Adds stage and element to an error on its way out, once.
[[noreturn]] void rethrow_with_place(const Stage& stage, int64_t index);

/// One input, asked by one thread.
class Unary : public Iterator {
 public:
  Unary(Run& run, Stage& stage, std::unique_ptr<Iterator> input) : Iterator(run, stage), input_(std::move(input)) {
    stage.ask(input_->stage());
  }
  void cancel() override { input_->cancel(); }
  void warm() override { input_->warm(); }

 protected:
  void begin(uint64_t key) override { input_->rewind(key); }
  std::unique_ptr<Iterator> input_;
};

inline int64_t times(int64_t cardinality, auto&& f) { return cardinality < 0 ? cardinality : int64_t(f(cardinality)); }
Shape to_shape(const TensorSpec& spec);    // of a fixed one
int64_t bytes_of(const TensorSpec& spec);  // of a fixed one
ElementSpec spec_of(const Element& e);
/// What one element costs when it is kept in pooled buffers, one for each tensor. 0: not known.
Bytes cost_of(const ElementSpec& spec);
/// `spec` with a dimension in front.
ElementSpec batched(const ElementSpec& spec, int64_t n);

// The stages, each in a file of its own.
NodePtr arrays_node(std::vector<Tensor> arrays);
NodePtr npy_node(const std::vector<std::string>& files);
NodePtr range_node(int64_t first, int64_t end, int64_t step);
NodePtr npz_node(const std::string& file, const std::vector<std::string>& members);
NodePtr csv_node(const std::string& file, const CsvDatasetOptions& o);
NodePtr tfrecord_node(const std::vector<std::string>& files, const RecordDatasetOptions& o);
NodePtr text_node(const std::vector<std::string>& files, const TextDatasetOptions& o);
NodePtr images_node(const std::string& folder, const ImageDatasetOptions& o);
NodePtr augment_node(NodePtr input, const AugmentOptions& o);
NodePtr generator_node(std::function<Generator()> make, ElementSpec spec, int64_t cardinality,
                       std::string name = "generator");
/// What only our own maps have.
struct MapExtra {
  std::optional<uint64_t> seed = {};  // goes into Buffers::seed, and is saved
  bool any_order = false;             // a shuffle behind it may as well come before it, where it is free
  bool reads_only = false;  // the function puts new tensors into the element and writes nothing where it reads
};
NodePtr map_node(NodePtr input, MapFunction f, MapOptions o, MapExtra extra = {});
NodePtr filter_node(NodePtr input, FilterFunction f);
NodePtr interleave_node(NodePtr input, FlatMapFunction f, std::optional<InterleaveOptions> o);
NodePtr batch_node(NodePtr input, int64_t size, BatchOptions o);
NodePtr unbatch_node(NodePtr input);
NodePtr shuffle_node(NodePtr input, ShuffleOptions o);
NodePtr cache_node(NodePtr input, CacheOptions o);
NodePtr repeat_node(NodePtr input, int64_t count);
NodePtr take_node(NodePtr input, int64_t count);
NodePtr skip_node(NodePtr input, int64_t count);
NodePtr shard_node(NodePtr input, int64_t of, int64_t index);
NodePtr zip_node(std::vector<NodePtr> inputs);
NodePtr concatenate_node(NodePtr first, NodePtr second);
NodePtr enumerate_node(NodePtr input, int64_t start);
NodePtr window_node(NodePtr input, int64_t size, WindowOptions o);
NodePtr prefetch_node(NodePtr input, int64_t elements, PrefetchOptions o);
NodePtr options_node(NodePtr input, DatasetOptions o);

}  // namespace millpond::data
