// Dataset: where batches come from, with every byte on the way bounded.
//
//   auto train = Dataset::from_npy({"x.npy", "y.npy"}).shuffle().batch(32).prefetch(AUTOTUNE);
//   model.fit(train, {.epochs = 10});
//   for (const Element& e : train.take(1)) std::puts(to_string(e[0].shape()).c_str());     // a look at the first batch
//   std::puts(train.explain().c_str());                                                    // what each stage did and holds
//
// A dataset is a value: a chain of stages, each made from the one before, none of which has begun. An iterator runs the chain.
//
// Memory. One byte budget holds for everything that a running chain has: with_options({.budget = 64_MiB}); without it a tenth of the
// memory that is free when it begins. It is divided when the chain begins, before anything is read: what each stage needs at least (one
// element), what it was told to use at most (its own bytes are a ceiling inside the budget), the rest among queues and buffers. A chain
// that cannot run in its budget is refused with the table of what it needs. Values lie in buffers that are used again: in the steady state
// a batch allocates nothing. Every stage has an account, pipeline/<stage>.
//
// What a stage gives never depends on threads, timing or tuning: the same seeds give the same elements in the same order (but for
// map and interleave with ordered = false).
#pragma once
#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "millpond/bytes.h"
#include "millpond/tensor.h"

namespace millpond {

namespace data {
class Node;
class Running;
class Stage;
class Pool;
}  // namespace data

inline constexpr int64_t AUTOTUNE =
    -1;  // for the depth of prefetch and the threads of map: found by measuring, within the budget
inline constexpr int64_t INFINITE = -1;  // as a cardinality, or a count for repeat
inline constexpr int64_t UNKNOWN = -2;   // as a cardinality: known only by going through

/// What a dataset is made of: a tuple of tensors, usually x and y. Its tensors are views of buffers that go back to the
/// pipeline with the last copy. Values are there to be read: another stage may hold the same buffer, or it may be the
/// user's own array.
struct Element : std::vector<Tensor> {
  using std::vector<Tensor>::vector;
  /// Of its values.
  Bytes bytes() const;
};

/// What one tensor of every element looks like.
struct TensorSpec {
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape = {};  // -1: differs from element to element
  bool operator==(const TensorSpec&) const = default;
};
/// Of a whole element. `known` is false where only a user's function knows, and says nothing in MapOptions::spec.
struct ElementSpec : std::vector<TensorSpec> {
  using std::vector<TensorSpec>::vector;
  bool known = true;
  /// Known, and without any -1.
  bool fixed() const;
  /// Of one element, when fixed.
  Bytes bytes() const;
};
/// "(float32 [32, 100], int64 [32])"; "unknown".
std::string to_string(const ElementSpec& spec);

/// For functions that make tensors: memory inside the pipeline's budget, and a number to be random by.
class Buffers {
 public:
  /// Not zeroed: it may hold what an earlier element held. Goes back when the last tensor that views it is gone.
  Tensor tensor(DType dtype, const Shape& shape);
  /// Counts the elements of this stage from 0, anew in each epoch.
  int64_t index() const { return index_; }
  /// The same for the same element of the same epoch, whatever thread makes it and whenever; different for every other
  /// one.
  uint64_t seed() const { return seed_; }

  Buffers(data::Pool& pool, data::Stage& stage, int64_t index, uint64_t seed)
      : pool_(pool), stage_(stage), index_(index), seed_(seed) {}

 private:
  data::Pool& pool_;
  data::Stage& stage_;
  int64_t index_;
  uint64_t seed_;
};

/// Changes an element: puts other tensors into it, takes some out, adds some, or writes new values where the old ones
/// are (what it is handed is the pipeline's own: neither the user's arrays nor a cache change with it). f(element) or
/// f(element, buffers). A parallel map calls it from several threads at once.
class MapFunction {
 public:
  template <class F>
    requires std::invocable<F&, Element&, Buffers&> && (!std::same_as<std::remove_cvref_t<F>, MapFunction>)
  MapFunction(F f) : call_([g = std::move(f)](Element& e, Buffers& b) mutable { g(e, b); }) {}
  template <class F>
    requires std::invocable<F&, Element&> && (!std::invocable<F&, Element&, Buffers&>) &&
             (!std::same_as<std::remove_cvref_t<F>, MapFunction>)
  MapFunction(F f) : call_([g = std::move(f)](Element& e, Buffers&) mutable { g(e); }) {}
  void operator()(Element& e, Buffers& b) const { call_(e, b); }

 private:
  mutable std::function<void(Element&, Buffers&)> call_;
};

class Dataset;
class DatasetIterator;
using FilterFunction = std::function<bool(const Element&)>;
using FlatMapFunction = std::function<Dataset(const Element&)>;
/// Fills the element and says true, or says false at the end.
using Generator = std::function<bool(Element&, Buffers&)>;

struct MapOptions {
  int64_t parallel = 1;                  // threads; 1: the one who asks; AUTOTUNE: as many as pay
  bool ordered = true;                   // false: an element goes on as soon as it is ready
  bool ignore_errors = false;            // an element whose function throws is left out and counted
  Bytes bytes = {};                      // at most, of finished elements that wait; 0: a share of the budget
  std::optional<ElementSpec> spec = {};  // what the function gives, where that should be known before
  std::string name = "map";
};
struct ShuffleOptions {
  int64_t elements = 0;  // in the buffer; 0: as many as `bytes` hold, or, of a source that can be read anywhere, all
  Bytes bytes = {};      // in the buffer; 0: a share of the budget
  std::optional<uint64_t> seed = {};  // none: drawn from set_random_seed's stream when this stage is made
  bool reshuffle_each_iteration = true;
  /// Rows of arrays and .npy files are shuffled over all of them by permuting their numbers, which takes no buffer at
  /// all and is a better shuffle than any buffer gives. false: through a buffer, so that a disk reads in order.
  bool permute = true;
};
struct BatchOptions {
  bool drop_remainder = false;
  /// Elements of different shapes: each is filled up to the largest of the batch with padding_value.
  bool padded = false;
  double padding_value = 0;
  std::vector<std::vector<int64_t>> padded_shapes =
      {};  // to these shapes instead (-1: the largest of the batch); one for each tensor
};
struct CacheOptions {
  Bytes memory = {};  // at most; 0: a share of the budget. What does not fit is spilled to a file
  bool file_only = false;
  std::string folder = "";  // of the file, which has no name and goes with the iterator; empty: TMPDIR
};
struct WindowOptions {
  int64_t shift = 0;   // from the first element of a window to that of the next; 0: size
  int64_t stride = 1;  // between elements of a window
  bool drop_remainder = false;
};
struct InterleaveOptions {
  int64_t cycle_length = 2;  // datasets that are open at once
  int64_t block_length = 1;  // elements taken from one before the next
  bool parallel = false;     // each is read ahead by a thread of its own; the order stays the same
  Bytes bytes = {};          // at most, of all that are read ahead
};
struct PrefetchOptions {
  Bytes bytes = {};  // at most, of elements that wait; 0: a share of the budget
};
struct DatasetOptions {
  Bytes budget = {};  // of the whole chain; 0: a tenth of the memory that is free when it begins
  int threads = 0;    // for a stage with AUTOTUNE at most; 0: all that this process may use
};

struct CsvDatasetOptions {
  bool header = true;
  char delimiter = ',';
  std::vector<std::string> columns = {};          // the features, in this order; empty: all but the label
  std::string label = "";                         // y; empty: none
  std::map<std::string, std::string> types = {};  // "float32", "int64", "bool", "text" by column; the rest is inferred
  /// Features become one float32 vector, x. false: each column is a tensor of its own; text columns are uint8 [-1].
  bool pack = true;
  double missing = std::numeric_limits<double>::quiet_NaN();
  bool skip_bad_rows = false;        // counted instead of refused
  std::string compression = "auto";  // "none", "gzip", "zlib"
  Bytes buffer = 1_MiB;              // of the reader; a row must fit into it
};
/// What a feature of a tf.train.Example becomes: fixed shapes are checked; -1 takes what there is. Bytes become uint8
/// [-1].
struct FeatureSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape = {};
};
struct RecordDatasetOptions {
  std::string compression = "none";
  std::vector<FeatureSpec> features = {};  // empty: the record's bytes, uint8 [-1]
  bool skip_bad_records = false;
  Bytes max_record = 256_MiB;  // a longer record is a bad one
};
struct ImageDatasetOptions {
  int64_t height = 256, width = 256;  // images are resized to this; 0: left as they are
  int channels = 3;
  bool labels = true;             // from the folders' names; int32
  DType dtype = DType::kFloat32;  // or kUInt8; values stay 0 to 255
  int64_t parallel = AUTOTUNE;
  bool skip_bad_images = false;
  /// Decode JPEGs at a half, a quarter or an eighth of their size where that is still at least height x width: several
  /// times faster, slightly different values.
  bool fast = false;
};
struct TextDatasetOptions {
  std::string compression = "auto";
  Bytes max_line = 1_MiB;  // a longer line is refused; the reader has a buffer that is a little larger
};

/// What augment changes in an image (tensor 0, height x width x channels, uint8 or float32). Each element has random
/// numbers of its own that follow from seed, epoch and its place.
struct AugmentOptions {
  bool flip_horizontal = false, flip_vertical = false;
  int64_t crop_height = 0, crop_width = 0;  // a random part; 0: none
  double rotation = 0;                      // up to so many turns to either side (Keras: factor)
  double brightness = 0;                    // up to so much of the range to either side
  double value_range = 255;
  int64_t resize_height = 0, resize_width = 0;  // at the end; 0: none
  int64_t parallel = AUTOTUNE;
  std::optional<uint64_t> seed = {};
};

class [[nodiscard]] Dataset {
 public:
  /// Rows of arrays: views, no copy. The arrays must have the same number of rows.
  static Dataset from_arrays(std::vector<Tensor> arrays);
  static Dataset from_arrays(Tensor x) { return from_arrays(std::vector<Tensor>{std::move(x)}); }
  static Dataset from_arrays(Tensor x, Tensor y) {
    return from_arrays(std::vector<Tensor>{std::move(x), std::move(y)});
  }
  /// Rows of .npy files, read into the batch when they are wanted: no mapping, no page of the files in this process.
  static Dataset from_npy(const std::vector<std::string>& files);
  /// Members of one .npz archive, in this order. Those that are stored (numpy.savez) are read as .npy files are;
  /// deflated ones (savez_compressed) only in order.
  static Dataset from_npz(const std::string& file, const std::vector<std::string>& members);
  /// 0, 1, ... n - 1 as int64 scalars; or from first, by step.
  static Dataset range(int64_t n) { return range(0, n, 1); }
  static Dataset range(int64_t first, int64_t end, int64_t step = 1);
  /// `make` is asked for a fresh generator each time the dataset is gone through.
  static Dataset from_generator(std::function<Generator()> make, ElementSpec spec = unknown_spec(),
                                int64_t cardinality = UNKNOWN);
  /// Any range of numbers, each a scalar. The range is copied, or kept if it is a view.
  template <std::ranges::forward_range R>
    requires std::is_arithmetic_v<std::ranges::range_value_t<R>>
  static Dataset from_range(R range) {
    using T = std::ranges::range_value_t<R>;
    auto all = std::make_shared<R>(std::move(range));
    return from_generator(
        [all] {
          return [all, at = std::ranges::begin(*all)](Element& e, Buffers& buffers) mutable {
            if (at == std::ranges::end(*all)) return false;
            e.clear();
            e.push_back(buffers.tensor(dtype_of<T>(), {}));
            e[0].template values<T>()[0] = *at++;
            return true;
          };
        },
        {TensorSpec{dtype_of<T>(), {}}});
  }
  /// A row is an element: (x), or (x, y) with a label. Types are inferred from the first rows.
  static Dataset from_csv(const std::string& file, const CsvDatasetOptions& options = {});
  static Dataset from_tfrecord(const std::vector<std::string>& files, const RecordDatasetOptions& options = {});
  /// folder/<class>/<image>: JPEG and PNG. class_names() has the classes.
  static Dataset from_image_folder(const std::string& folder, const ImageDatasetOptions& options = {});
  /// Each line as uint8 [-1].
  static Dataset from_text(const std::vector<std::string>& files, const TextDatasetOptions& options = {});
  static ElementSpec unknown_spec();

  Dataset map(MapFunction function, MapOptions options = {}) const;
  Dataset filter(FilterFunction keep) const;
  /// The function makes a dataset of each element; the result has the elements of all of these datasets, one dataset
  /// after the other.
  Dataset flat_map(FlatMapFunction function) const;
  /// Like flat_map, but `cycle_length` of the datasets are open at once, and their elements are taken by turns,
  /// `block_length` from one dataset and then from the next.
  Dataset interleave(FlatMapFunction function, InterleaveOptions options = {}) const;
  Dataset batch(int64_t size, BatchOptions options = {}) const;
  /// The reverse of batch: each row of an element's tensors becomes an element.
  Dataset unbatch() const;
  Dataset shuffle(ShuffleOptions options = {}) const;
  Dataset cache(CacheOptions options = {}) const;
  Dataset repeat(int64_t count = INFINITE) const;
  Dataset take(int64_t count) const;
  Dataset skip(int64_t count) const;
  /// Every `of`-th element, from the `index`-th on.
  Dataset shard(int64_t of, int64_t index) const;
  /// Each element holds the tensors of one element of every dataset. It ends with the shortest of them.
  static Dataset zip(const std::vector<Dataset>& datasets);
  Dataset concatenate(const Dataset& next) const;
  /// Puts the element's number in front, int64.
  Dataset enumerate(int64_t start = 0) const;
  /// Stacks `size` elements that follow each other into one, as batch does. The next window begins `shift` elements
  /// after the beginning of this one.
  Dataset window(int64_t size, WindowOptions options = {}) const;
  /// Makes up to so many elements ready while the one before is worked on. AUTOTUNE finds the number.
  Dataset prefetch(int64_t elements = AUTOTUNE, PrefetchOptions options = {}) const;
  Dataset augment(const AugmentOptions& options) const;
  Dataset with_options(const DatasetOptions& options) const;

  /// What an element looks like. Costs nothing and reads nothing.
  ElementSpec element_spec() const;
  /// How many elements; INFINITE; UNKNOWN.
  int64_t cardinality() const;
  /// Of an image folder; passed on by all stages.
  const std::vector<std::string>& class_names() const;
  /// A table of the stages: elements, throughput, waiting, bytes held and their bound, what was tuned and why. Of the
  /// iterator made last, be it running or gone; before the first one, how the budget would be divided.
  std::string explain() const;

  /// Begins to run the chain.
  DatasetIterator iterator() const;
  /// For a plain loop: for (const Element& e : dataset) ...
  DatasetIterator begin() const;
  std::default_sentinel_t end() const { return {}; }

  explicit Dataset(std::shared_ptr<const data::Node> node) : node_(std::move(node)) {}
  const std::shared_ptr<const data::Node>& node() const { return node_; }

 private:
  std::shared_ptr<const data::Node> node_;
};

/// A running chain: its threads, files and bytes, all of which go with it, also in the middle of an epoch. One thread
/// at a time may use it.
class DatasetIterator {
 public:
  explicit DatasetIterator(const Dataset& dataset);
  DatasetIterator(DatasetIterator&&) noexcept;
  DatasetIterator& operator=(DatasetIterator&&) noexcept;
  ~DatasetIterator();

  /// The next element, or false at the end. An error in a stage comes out here, in its place in the order, with the
  /// stage and the number of the element; after it there is nothing more.
  bool next(Element& element);
  /// From the beginning, as epoch `epoch`: shuffles differ from epoch to epoch, and are the same for the same number.
  void rewind(int64_t epoch);
  /// Begins to fill queues without waiting for them.
  void warm();
  int64_t epoch() const;
  int64_t elements() const;  // given so far in this epoch

  /// Where it stands, as text (JSON): epoch, elements given, seeds. restore() of it in another process, over a chain
  /// made in the same way, gives the same remaining elements. Throws Error(kUsage) where a stage has ordered = false.
  std::string save() const;
  void restore(std::string_view position);

  /// Time in which next() waited, and the stage that was slowest to give.
  double seconds_waited() const;
  std::string waited_on() const;
  Bytes budget() const;
  /// Held now by all stages, free buffers included; and the most that ever was.
  Bytes held() const;
  Bytes peak() const;
  std::string explain() const;

  // For range-for.
  using value_type = Element;
  using difference_type = std::ptrdiff_t;
  const Element& operator*() const;
  DatasetIterator& operator++();
  void operator++(int) { ++*this; }
  bool operator==(std::default_sentinel_t) const;

  data::Running& running() const { return *running_; }

 private:
  std::unique_ptr<data::Running> running_;
};

}  // namespace millpond
