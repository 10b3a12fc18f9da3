// Sources that read a file in order: CSV, TFRecord, lines of text, deflated members of .npz. The formats are
// data/formats'; here they become elements, and their readers' own buffers are charged to the stage.
#include <cstring>

#include "data/formats/csv.h"
#include "data/formats/example.h"
#include "data/formats/npz.h"
#include "data/formats/text.h"
#include "data/formats/tfrecord.h"
#include "data/indexed.h"

namespace millpond::data {
namespace {

OnBad on_bad(bool skip) { return skip ? OnBad::kSkip : OnBad::kThrow; }

// The reader's own memory, charged to the stage for as long as it lives.
class ReaderCharge {
 public:
  ReaderCharge(Pool& pool, Stage& stage) : pool_(pool), stage_(stage) {}
  ~ReaderCharge() { set({}); }
  ReaderCharge(const ReaderCharge&) = delete;
  ReaderCharge& operator=(const ReaderCharge&) = delete;
  void set(Bytes now) {
    if (now != held_) pool_.count(now - held_, stage_);
    held_ = now;
  }

 private:
  Pool& pool_;
  Stage& stage_;
  Bytes held_;
};

void tell_skipped(Stage& stage, const Skipped& s, int64_t& told) {
  if (s.count == told) return;
  stage.left_out.fetch_add(s.count - told, std::memory_order_relaxed);
  told = s.count;
  stage.decide("the first left out: " + s.first);
}

// ---- CSV ----

DType dtype_of_column(CsvType t) {
  switch (t) {
    case CsvType::kBool:
      return DType::kBool;
    case CsvType::kInt64:
      return DType::kInt64;
    case CsvType::kFloat64:
      return DType::kFloat64;
    case CsvType::kText:
      return DType::kUInt8;
    default:
      return DType::kFloat32;
  }
}

CsvType parse_type(const std::string& name) {
  if (name == "float32") return CsvType::kFloat32;
  if (name == "float64") return CsvType::kFloat64;
  if (name == "int64") return CsvType::kInt64;
  if (name == "bool") return CsvType::kBool;
  if (name == "text") return CsvType::kText;
  throw Error(Code::kUsage, format("from_csv: \"{}\" is no type of a column", name))
      .hint("known: float32, float64, int64, bool, text");
}

class CsvIterator final : public Iterator {
 public:
  CsvIterator(Run& run, Stage& stage, const SharedSource& source, const CsvOptions& o, bool pack)
      : Iterator(run, stage), reader_(source, o), pack_(pack), charge_(pool(), stage) {
    start_ = reader_.position();
    for (const CsvColumn& c : reader_.columns()) text_ |= c.type == CsvType::kText;
    slots_.resize(reader_.columns().size());
    words_.resize(slots_.size());
    features_ = int64_t(slots_.size()) - (reader_.label() >= 0);
    charge_.set(reader_.memory());
  }

 protected:
  void begin(uint64_t) override { reader_.restore(start_); }
  bool get(Element& e) override {
    e.clear();
    const std::vector<CsvColumn>& columns = reader_.columns();
    if (pack_) {
      e.push_back(pool().tensor(DType::kFloat32, {features_}, stage_));
      for (int64_t c = 0; c < features_; ++c) slots_[size_t(c)] = {e[0].data() + c * 4, 0};
      if (reader_.label() >= 0) {
        e.push_back(pool().tensor(dtype_of_column(columns.back().type), {}, stage_));
        slots_.back() = {e[1].data(), 0};
      }
    } else {
      for (size_t c = 0; c < columns.size(); ++c) {
        if (columns[c].type == CsvType::kText) {
          slots_[c] = {&words_[c], 0};
        } else {
          e.push_back(pool().tensor(dtype_of_column(columns[c].type), {}, stage_));
          slots_[c] = {e.back().data(), 0};
        }
      }
    }
    const bool there = reader_.read(1, slots_) == 1;
    tell_skipped(stage_, reader_.skipped(), told_);
    if (!there) return e.clear(), false;
    if (text_)
      for (size_t c = 0; c < columns.size(); ++c) {
        if (columns[c].type != CsvType::kText) continue;
        Tensor t = pool().tensor(DType::kUInt8, {int64_t(words_[c].size())}, stage_);
        if (!words_[c].empty()) std::memcpy(t.data(), words_[c].data(), words_[c].size());
        e.insert(e.begin() + int64_t(c), std::move(t));
      }
    return true;
  }
  int64_t get_rows(RowSink& sink, int64_t n) override {
    if (text_) return Iterator::get_rows(sink, n);
    if (pack_) {
      for (int64_t c = 0; c < features_; ++c) slots_[size_t(c)] = {sink.to[0] + c * 4, sink.bytes[0]};
      if (reader_.label() >= 0) slots_.back() = {sink.to[1], sink.bytes[1]};
    } else {
      for (size_t c = 0; c < slots_.size(); ++c) slots_[c] = {sink.to[c], sink.bytes[c]};
    }
    const int64_t got = reader_.read(n, slots_);
    tell_skipped(stage_, reader_.skipped(), told_);
    sink.advance(got);
    return got;
  }
  int64_t pass(int64_t n) override { return reader_.skip(n); }

 private:
  CsvReader reader_;
  bool pack_, text_ = false;
  ReaderCharge charge_;
  CsvPosition start_;
  std::vector<CsvSlot> slots_;
  std::vector<std::string_view> words_;
  int64_t features_ = 0, told_ = 0;
};

class CsvNode final : public Node {
 public:
  CsvNode(const std::string& file, const CsvDatasetOptions& o) : source_(open_file(file)), pack_(o.pack) {
    o_.header = o.header;
    o_.delimiter = o.delimiter;
    o_.columns = o.columns;
    o_.label = o.label;
    for (const auto& [name, type] : o.types) o_.types[name] = parse_type(type);
    if (pack_) o_.features = CsvType::kFloat32;
    o_.missing_float = o.missing;
    o_.on_bad = on_bad(o.skip_bad_rows);
    o_.compression = parse_compression(o.compression);
    o_.buffer = o.buffer;
    const CsvReader reader(source_, o_);
    const std::vector<CsvColumn>& columns = reader.columns();
    memory_ = reader.memory();
    if (pack_) {
      const int64_t features = int64_t(columns.size()) - (reader.label() >= 0);
      for (const CsvColumn& c : columns)
        if (c.type == CsvType::kText || (c.type != CsvType::kFloat32 && &c != &columns.back()))
          throw Error(Code::kUsage,
                      format("from_csv: column \"{}\" of {} is {}, and cannot become one of the float32 values of x",
                             c.name, file, to_string(c.type)))
              .hint("leave it out of columns, or give pack = false");
      spec_.push_back({DType::kFloat32, {features}});
      if (reader.label() >= 0) spec_.push_back({dtype_of_column(columns.back().type), {}});
    } else {
      for (const CsvColumn& c : columns)
        spec_.push_back(
            {dtype_of_column(c.type), c.type == CsvType::kText ? std::vector<int64_t>{-1} : std::vector<int64_t>{}});
    }
    if (spec_.size() > kMostTensors)
      throw Error(Code::kUnsupported,
                  format("from_csv: {} has {} columns; as tensors of their own at most {} are supported", file,
                         columns.size(), kMostTensors))
          .hint("choose columns, or pack = true");
  }
  std::string name() const override { return "csv"; }
  std::string text() const override {
    return format("csv({} columns)", pack_ ? spec_[0].shape[0] + int64_t(spec_.size()) - 1 : int64_t(spec_.size()));
  }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return UNKNOWN; }
  Need need() const override { return {.working = cost_of(spec_) + memory_}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override {
    return std::make_unique<CsvIterator>(run, stage, source_, o_, pack_);
  }

 private:
  SharedSource source_;
  CsvOptions o_;
  bool pack_;
  ElementSpec spec_;
  Bytes memory_;
};

// ---- TFRecord ----

RecordOptions record_options(const RecordDatasetOptions& o) {
  return {.compression = parse_compression(o.compression),
          .on_bad = on_bad(o.skip_bad_records),
          .max_record = o.max_record};
}

class RecordIterator final : public Iterator {
 public:
  RecordIterator(Run& run, Stage& stage, const std::vector<std::string>& files, const RecordDatasetOptions& o)
      : Iterator(run, stage), files_(files), o_(o), charge_(pool(), stage) {}

 protected:
  void begin(uint64_t) override {
    reader_.reset();
    file_ = 0;
  }
  bool get(Element& e) override {
    e.clear();
    for (std::span<const std::byte> record;;) {
      if (!reader_) {
        if (file_ >= files_.size()) return false;
        reader_.emplace(open_file(files_[file_]), record_options(o_));
        number_ = told_ = 0;
      }
      const bool there = reader_->next(record);
      charge_.set(reader_->memory());
      tell_skipped(stage_, reader_->skipped(), told_);
      if (!there) {
        reader_.reset();
        ++file_;
        continue;
      }
      if (o_.features.empty()) {
        e.push_back(pool().tensor(DType::kUInt8, {int64_t(record.size())}, stage_));
        if (!record.empty()) std::memcpy(e[0].data(), record.data(), record.size());
        return true;
      }
      const int64_t n = number_++;
      try {
        example_.parse(record, files_[file_], n);
        for (const FeatureSpec& f : o_.features) add(e, f, n);
        return true;
      } catch (const Error& error) {
        if (!o_.skip_bad_records || error.code() != Code::kFormat) throw;
        e.clear();
        stage_.left_out.fetch_add(1, std::memory_order_relaxed);
        stage_.decide(std::string("the last left out: ") + error.text());
      }
    }
  }

 private:
  [[noreturn]] void wrong(const FeatureSpec& f, int64_t n, const std::string& what) {
    throw Error(Code::kFormat, format("{}, record {}: feature \"{}\" {}", files_[file_], n, f.name, what))
        .with("file", files_[file_])
        .with("record", std::to_string(n));
  }
  Shape shape_of(const FeatureSpec& f, int64_t count, int64_t n) {
    int64_t known = 1, open = -1;
    std::vector<int64_t> dims = f.shape;
    for (size_t d = 0; d < dims.size(); ++d)
      if (dims[d] < 0)
        open = int64_t(d);
      else
        known *= dims[d];
    if (open >= 0 && known > 0) dims[size_t(open)] = count / known;
    const Shape shape{std::span<const int64_t>(dims)};
    if ((open >= 0 && known == 0) || shape.size() != count)
      wrong(f, n,
            format("has {} values, which do not make the shape {}", count, to_string(ElementSpec{{f.dtype, f.shape}})));
    return shape;
  }
  void add(Element& e, const FeatureSpec& f, int64_t n) {
    const Feature* found = example_.find(f.name);
    if (!found || found->kind == FeatureKind::kNone) wrong(f, n, "is missing");
    const auto copy = [&](auto values) {
      Tensor t = pool().tensor(f.dtype, shape_of(f, int64_t(values.size()), n), stage_);
      const auto put = [&]<class T>(T) {
        std::span<T> to = t.values<T>();
        for (size_t i = 0; i < values.size(); ++i) to[i] = T(values[i]);
      };
      switch (f.dtype) {
        case DType::kFloat32:
          put(float{});
          break;
        case DType::kFloat64:
          put(double{});
          break;
        case DType::kInt32:
          put(int32_t{});
          break;
        case DType::kInt64:
          put(int64_t{});
          break;
        default:
          wrong(f, n, format("holds numbers, which become float32, float64, int32 or int64, not {}", f.dtype));
      }
      e.push_back(std::move(t));
    };
    if (found->kind == FeatureKind::kFloat) {
      if (!is_floating(f.dtype)) wrong(f, n, format("holds floats, not {}", f.dtype));
      copy(example_.floats(*found));
    } else if (found->kind == FeatureKind::kInt64) {
      copy(example_.ints(*found));
    } else {
      const std::span<const std::string_view> all = example_.bytes(*found);
      if (f.dtype != DType::kUInt8) wrong(f, n, format("holds bytes, which become uint8, not {}", f.dtype));
      if (all.size() != 1) wrong(f, n, format("holds {} byte strings, not one", all.size()));
      const FeatureSpec free{f.name, f.dtype, f.shape.empty() ? std::vector<int64_t>{-1} : f.shape};
      Tensor t = pool().tensor(DType::kUInt8, shape_of(free, int64_t(all[0].size()), n), stage_);
      if (!all[0].empty()) std::memcpy(t.data(), all[0].data(), all[0].size());
      e.push_back(std::move(t));
    }
  }

  const std::vector<std::string>& files_;
  const RecordDatasetOptions& o_;
  ReaderCharge charge_;
  std::optional<RecordReader> reader_;
  Example example_;
  size_t file_ = 0;
  int64_t number_ = 0, told_ = 0;
};

class RecordNode final : public Node {
 public:
  RecordNode(const std::vector<std::string>& files, const RecordDatasetOptions& o) : files_(files), o_(o) {
    if (files.empty()) throw Error(Code::kUsage, "from_tfrecord: no file is given");
    if (o.features.size() > kMostTensors)
      throw Error(Code::kUnsupported,
                  format("from_tfrecord: {} features; at most {} are supported", o.features.size(), kMostTensors));
    for (const std::string& f : files) RecordReader(f, record_options(o));  // now rather than in the middle of training
    for (const FeatureSpec& f : o.features) {
      if (std::ranges::count_if(f.shape, [](int64_t d) { return d < 0; }) > 1)
        throw Error(Code::kUsage, format("from_tfrecord: more than one -1 in the shape of \"{}\"", f.name));
      spec_.push_back({f.dtype, f.dtype == DType::kUInt8 && f.shape.empty() ? std::vector<int64_t>{-1} : f.shape});
    }
    if (o.features.empty()) spec_.push_back({DType::kUInt8, {-1}});
  }
  std::string name() const override { return "tfrecord"; }
  std::string text() const override {
    return format("tfrecord({} file{})", files_.size(), files_.size() == 1 ? "" : "s");
  }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return UNKNOWN; }
  bool sure() const override { return false; }
  Need need() const override { return {.working = cost_of(spec_) + Bytes{512 << 10}}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override {
    return std::make_unique<RecordIterator>(run, stage, files_, o_);
  }

 private:
  std::vector<std::string> files_;
  RecordDatasetOptions o_;
  ElementSpec spec_;
};

// ---- lines of text ----

class TextIterator final : public Iterator {
 public:
  TextIterator(Run& run, Stage& stage, const std::vector<std::string>& files, const TextOptions& o)
      : Iterator(run, stage), files_(files), options_(o), charge_(pool(), stage) {}

 protected:
  void begin(uint64_t) override {
    reader_.reset();
    file_ = 0;
  }
  bool get(Element& e) override {
    e.clear();
    for (std::string_view line;;) {
      if (!reader_) {
        if (file_ >= files_.size()) return false;
        reader_.emplace(open_file(files_[file_]), options_);
        charge_.set(reader_->memory());
      }
      if (reader_->next(line)) {
        e.push_back(pool().tensor(DType::kUInt8, {int64_t(line.size())}, stage_));
        if (!line.empty()) std::memcpy(e[0].data(), line.data(), line.size());
        return true;
      }
      reader_.reset();
      ++file_;
    }
  }

 private:
  const std::vector<std::string>& files_;
  const TextOptions& options_;
  ReaderCharge charge_;
  std::optional<LineReader> reader_;
  size_t file_ = 0;
};

class TextNode final : public Node {
 public:
  TextNode(const std::vector<std::string>& files, const TextDatasetOptions& o)
      : files_(files), options_{.compression = parse_compression(o.compression), .max_line = o.max_line} {
    if (files.empty()) throw Error(Code::kUsage, "from_text: no file is given");
    for (const std::string& f : files) memory_ = LineReader(f, options_).memory();
    spec_.push_back({DType::kUInt8, {-1}});
  }
  std::string name() const override { return "text"; }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return UNKNOWN; }
  Need need() const override { return {.working = memory_}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override {
    return std::make_unique<TextIterator>(run, stage, files_, options_);
  }

 private:
  std::vector<std::string> files_;
  TextOptions options_;
  ElementSpec spec_;
  Bytes memory_;
};

// ---- deflated .npz ----

class NpzIterator final : public Iterator {
 public:
  NpzIterator(Run& run, Stage& stage, const NpzFile& file, const std::vector<std::string>& members)
      : Iterator(run, stage), charge_(pool(), stage) {
    Bytes memory;
    for (const std::string& m : members) {
      streams_.push_back(std::make_unique<NpzStream>(file, m));
      memory += streams_.back()->memory();
      shapes_.push_back(streams_.back()->member().shape.without(0));
    }
    charge_.set(memory);
  }

 protected:
  void begin(uint64_t) override {
    for (const auto& s : streams_) s->seek(0);
  }
  bool get(Element& e) override {
    e.clear();
    for (size_t i = 0; i < streams_.size(); ++i) {
      e.push_back(pool().tensor(streams_[i]->member().dtype, shapes_[i], stage_));
      if (streams_[i]->read(1, {e[i].data(), size_t(e[i].bytes().value)}) == 0) return e.clear(), false;
    }
    return true;
  }
  int64_t get_rows(RowSink& sink, int64_t n) override {
    int64_t got = n;
    for (size_t i = 0; i < streams_.size(); ++i)
      got = std::min(got, streams_[i]->read(got, {sink.to[i], size_t(got * sink.bytes[i])}));
    sink.advance(got);
    return got;
  }
  int64_t pass(int64_t n) override {
    const int64_t at = streams_[0]->position(),
                  to = std::min(streams_[0]->member().rows(), n > INT64_MAX - at ? INT64_MAX : at + n);
    for (const auto& s : streams_) s->seek(to);
    return to - at;
  }

 private:
  std::vector<std::unique_ptr<NpzStream>> streams_;
  std::vector<Shape> shapes_;
  ReaderCharge charge_;
};

class NpzNode final : public Node {
 public:
  NpzNode(std::shared_ptr<NpzFile> file, std::vector<std::string> members)
      : file_(std::move(file)), members_(std::move(members)) {
    for (const std::string& name : members_) {
      const NpzMember& m = file_->member(name);
      const Shape row = m.shape.without(0);
      spec_.push_back({m.dtype, std::vector<int64_t>(row.begin(), row.end())});
    }
  }
  std::string name() const override { return "npz"; }
  std::string text() const override { return format("npz({} rows, deflated)", cardinality()); }
  const ElementSpec& spec() const override { return spec_; }
  int64_t cardinality() const override { return file_->member(members_[0]).rows(); }
  Need need() const override { return {.working = cost_of(spec_) + Bytes{256 << 10} * int64_t(members_.size())}; }
  std::unique_ptr<Iterator> make(Run& run, Stage& stage, const Scope&) const override {
    return std::make_unique<NpzIterator>(run, stage, *file_, members_);
  }

 private:
  std::shared_ptr<NpzFile> file_;
  std::vector<std::string> members_;
  ElementSpec spec_;
};

}  // namespace

NodePtr csv_node(const std::string& file, const CsvDatasetOptions& o) { return std::make_shared<CsvNode>(file, o); }
NodePtr tfrecord_node(const std::vector<std::string>& files, const RecordDatasetOptions& o) {
  return std::make_shared<RecordNode>(files, o);
}
NodePtr text_node(const std::vector<std::string>& files, const TextDatasetOptions& o) {
  return std::make_shared<TextNode>(files, o);
}

NodePtr npz_node(const std::string& name, const std::vector<std::string>& members) {
  if (members.empty() || members.size() > kMostTensors)
    throw Error(Code::kUsage, format("from_npz: {} members are named", members.size()));
  auto file = std::make_shared<NpzFile>(name);
  bool stored = true;
  for (const std::string& m : members) {
    const NpzMember& member = file->member(m);
    if (member.shape.rank() == 0)
      throw Error(Code::kShape, format("{}: {} is a single number; the first dimension counts the elements", name, m));
    if (member.rows() != file->member(members[0]).rows())
      throw Error(Code::kShape, format("{}: {} has {} rows, but {} has {}", name, members[0],
                                       file->member(members[0]).rows(), m, member.rows()));
    stored = stored && member.stored;
  }
  if (!stored) return std::make_shared<NpzNode>(std::move(file), members);
  std::vector<RowFile> rows;
  for (const std::string& m : members)
    rows.push_back({file->source(), file->member(m).data_at, file->member(m).dtype, file->member(m).shape});
  return files_node(std::move(rows), "npz");
}

}  // namespace millpond::data
