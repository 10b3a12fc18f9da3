// Sources in memory, in .npy files and made by functions; and what can be done to numbered elements without touching
// them.
#include "base/random.h"
#include "data/formats/source.h"
#include "data/indexed.h"
#include "io/npy.h"

namespace millpond::data {
namespace {

// Arrays of the user: rows where they lie.
class ArraysNode final : public IndexedNode {
 public:
  explicit ArraysNode(std::vector<Tensor> arrays) : arrays_(std::move(arrays)) {
    if (arrays_.empty()) throw Error(Code::kUsage, "from_arrays: no array is given");
    if (arrays_.size() > kMostTensors)
      throw Error(Code::kUnsupported,
                  format("from_arrays: {} arrays; at most {} are supported", arrays_.size(), kMostTensors));
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Tensor& t = arrays_[i];
      if (t.shape().rank() == 0)
        throw Error(Code::kShape,
                    format("from_arrays: array {} is a single number; the first dimension counts the elements", i));
      if (t.shape()[0] != arrays_[0].shape()[0])
        throw Error(Code::kShape, format("from_arrays: array 0 has {} rows, but array {} has {}", arrays_[0].shape()[0],
                                         i, t.shape()[0]));
      const Shape row = t.shape().without(0);
      spec_.push_back({t.dtype(), std::vector<int64_t>(row.begin(), row.end())});
      row_.push_back((size_of(t.dtype()) * row.size()).value);
      shapes_.push_back(row);
    }
  }
  std::string name() const override { return "arrays"; }
  std::string text() const override { return format("arrays({} rows)", size()); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t size() const override { return arrays_[0].shape()[0]; }

  void gather(const Run&, uint64_t, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    for (size_t a = 0; a < arrays_.size(); ++a) {
      const std::byte* const from = arrays_[a].data();
      const int64_t row = row_[a];
      std::byte* out = to[a];
      // Rows that follow each other are one copy; what lies far away is asked for some rows ahead.
      for (size_t i = 0; i < index.size();) {
        size_t n = 1;
        while (i + n < index.size() && index[i + n] == index[i] + int64_t(n)) ++n;
        if (i + 8 < index.size()) __builtin_prefetch(from + index[i + 8] * row);
        if (const size_t bytes = n * size_t(row)) std::memcpy(out, from + index[i] * row, bytes);
        out += int64_t(n) * row;
        i += n;
      }
    }
  }
  bool view(const Run&, uint64_t, int64_t row, Element& e) const override {
    for (size_t a = 0; a < arrays_.size(); ++a)
      e.push_back(Tensor::view(const_cast<std::byte*>(arrays_[a].data()) + row * row_[a], arrays_[a].dtype(),
                               shapes_[a], arrays_[a].owner()));
    return true;
  }

 private:
  std::vector<Tensor> arrays_;
  ElementSpec spec_;
  std::vector<int64_t> row_;
  std::vector<Shape> shapes_;
};

// Rows of files, read into the batch.
class FilesNode final : public IndexedNode {
 public:
  FilesNode(std::vector<RowFile> files, std::string name) : files_(std::move(files)), name_(std::move(name)) {
    if (files_.empty()) throw Error(Code::kUsage, format("from_{}: nothing is given to read", name_));
    if (files_.size() > kMostTensors)
      throw Error(Code::kUnsupported,
                  format("from_{}: {} arrays; at most {} are supported", name_, files_.size(), kMostTensors));
    for (const RowFile& f : files_) {
      if (f.shape.rank() == 0)
        throw Error(Code::kShape,
                    format("{}: a single number; the first dimension counts the elements", f.source->name()));
      if (f.shape[0] != files_[0].shape[0])
        throw Error(Code::kShape, format("{} has {} rows, but {} has {}", files_[0].source->name(), files_[0].shape[0],
                                         f.source->name(), f.shape[0]));
      const Shape row = f.shape.without(0);
      spec_.push_back({f.dtype, std::vector<int64_t>(row.begin(), row.end())});
      row_.push_back((size_of(f.dtype) * row.size()).value);
    }
  }
  std::string name() const override { return name_; }
  std::string text() const override { return format("{}({} rows)", name_, size()); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t size() const override { return files_[0].shape[0]; }

  void gather(const Run&, uint64_t, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    for (size_t a = 0; a < files_.size(); ++a) {
      const RowFile& f = files_[a];
      const int64_t row = row_[a];
      std::byte* out = to[a];
      for (size_t i = 0; i < index.size() && row > 0;) {
        size_t n = 1;
        while (i + n < index.size() && index[i + n] == index[i] + int64_t(n)) ++n;
        const std::span<std::byte> part(out, n * size_t(row));
        f.source->read_exactly(f.begin + index[i] * row, part);
        // A bool that is neither 0 nor 1 is undefined behaviour in whoever reads it.
        if (f.dtype == DType::kBool)
          for (std::byte& b : part) b = std::byte{b != std::byte{0}};
        out += part.size();
        i += n;
      }
    }
  }
  bool view(const Run&, uint64_t, int64_t, Element&) const override { return false; }

 private:
  std::vector<RowFile> files_;
  std::string name_;
  ElementSpec spec_;
  std::vector<int64_t> row_;
};

class RangeNode final : public IndexedNode {
 public:
  RangeNode(int64_t first, int64_t end, int64_t step) : first_(first), step_(step) {
    if (step == 0) throw Error(Code::kUsage, "range: a step of 0 leads nowhere");
    const __int128 length = __int128(end) - first;
    size_ = (length > 0) == (step > 0) ? int64_t((length + step - (step > 0 ? 1 : -1)) / step) : 0;
    spec_.push_back({DType::kInt64, {}});
  }
  std::string name() const override { return "range"; }
  std::string text() const override { return format("range({})", size_); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t size() const override { return size_; }
  void gather(const Run&, uint64_t, std::span<int64_t> index, std::span<std::byte* const> to) const override {
    for (size_t i = 0; i < index.size(); ++i) {
      const int64_t v = first_ + index[i] * step_;
      std::memcpy(to[0] + i * 8, &v, 8);
    }
  }
  bool view(const Run&, uint64_t, int64_t, Element&) const override { return false; }

 private:
  int64_t first_, step_, size_ = 0;
  ElementSpec spec_;
};

class GeneratorIterator final : public Iterator {
 public:
  GeneratorIterator(Run& run, Stage& stage, const std::function<Generator()>& make)
      : Iterator(run, stage), make_(make) {}

 protected:
  void begin(uint64_t key) override {
    key_ = key;
    at_ = 0;
    done_ = false;
    generator_ = nullptr;  // the old one first: it may hold what the new one wants
    generator_ = make_();
  }
  bool get(Element& e) override {
    if (done_) return false;
    e.clear();
    Buffers buffers(pool(), stage_, at_, random_key(key_, uint64_t(at_)));
    if (!generator_(e, buffers)) {
      done_ = true;
      generator_ = nullptr;
      return false;
    }
    ++at_;
    return true;
  }

 private:
  const std::function<Generator()>& make_;
  Generator generator_;
  uint64_t key_ = 0;
  int64_t at_ = 0;
  bool done_ = false;
};

class GeneratorNode final : public Node {
 public:
  GeneratorNode(std::function<Generator()> make, ElementSpec spec, int64_t cardinality, std::string name)
      : make_(std::move(make)), spec_(std::move(spec)), cardinality_(cardinality), name_(std::move(name)) {
    if (!make_) throw Error(Code::kUsage, "from_generator: no function is given");
  }
  std::string name() const override { return name_; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return cardinality_; }
  Need need() const override { return {.working = cost_of(spec_)}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override {
    return std::make_unique<GeneratorIterator>(run, stage, make_);
  }

 private:
  std::function<Generator()> make_;
  ElementSpec spec_;
  int64_t cardinality_;
  std::string name_;
};

}  // namespace

bool RowIterator::get(Element& e) {
  if (at_ >= indexed_.size()) return false;
  e.clear();
  if (!indexed_.view(run_, key_, at_, e)) {
    std::array<std::byte*, kMostTensors> to;
    for (size_t i = 0; i < spec_.size(); ++i) {
      e.push_back(pool().tensor(spec_[i].dtype, shapes_[i], stage_));
      to[i] = e[i].data();
    }
    int64_t index = at_;
    indexed_.gather(run_, key_, {&index, 1}, {to.data(), spec_.size()});
  }
  ++at_;
  return true;
}

void RowIterator::read_rows(const RowClaim& claim, RowSink& sink) const {
  for (int64_t done = 0; done < claim.rows;) {
    std::array<int64_t, kChunk> index;
    const int64_t now = std::min(kChunk, claim.rows - done);
    for (int64_t i = 0; i < now; ++i) index[size_t(i)] = claim.first + done + i;
    indexed_.gather(run_, key_, {index.data(), size_t(now)}, {sink.to.data(), spec_.size()});
    sink.advance(now);
    done += now;
  }
}

int64_t RowIterator::get_rows(RowSink& sink, int64_t n) {
  const RowClaim claim{at_, std::clamp<int64_t>(indexed_.size() - at_, 0, n)};
  read_rows(claim, sink);
  at_ += claim.rows;
  return claim.rows;
}

NodePtr arrays_node(std::vector<Tensor> arrays) { return std::make_shared<ArraysNode>(std::move(arrays)); }
NodePtr files_node(std::vector<RowFile> files, std::string name) {
  return std::make_shared<FilesNode>(std::move(files), std::move(name));
}
NodePtr npy_node(const std::vector<std::string>& files) {
  constexpr int64_t kHeaderRoom = 64 << 10;
  std::vector<RowFile> all;
  for (const std::string& file : files) {
    SharedSource source = open_file(file);
    std::vector<std::byte> start(size_t(std::min(kHeaderRoom, source->size())));
    source->read_exactly(0, start);
    const io::NpyHeader h = io::parse_npy_header(start, Bytes{source->size()}, file);
    all.push_back({std::move(source), h.data_at.value, h.dtype, h.shape});
  }
  return files_node(std::move(all), "npy");
}
NodePtr range_node(int64_t first, int64_t end, int64_t step) { return std::make_shared<RangeNode>(first, end, step); }
NodePtr generator_node(std::function<Generator()> make, ElementSpec spec, int64_t cardinality, std::string name) {
  return std::make_shared<GeneratorNode>(std::move(make), std::move(spec), cardinality, std::move(name));
}

}  // namespace millpond::data
