// A well-formed run file whose cells come from the input: wrong types, nothing, numbers at every edge, texts that are
// no text, ids that lead nowhere. A report in every form, or an Error; and in seconds, whatever the numbers say.
//
//   input  = flags, row...                  flags & 1: without types and constraints; flags & 2: a whole ordinary run comes
//                                           first; flags & 4: a copy to share is made of it
//   row    = table + 23 * repeats, cell...  every repeat reads cells of its own
//   cell   = a byte that says what: below; from 128 on what an ordinary run has there, moved by the rest of the byte
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

#include "fuzz/run_tables.h"
#include "fuzz/whole_way.h"
#include "runfile/share.h"

using namespace millpond;
using fuzz::Cell;

namespace {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ >= size_; }
  uint8_t byte() { return empty() ? 255 : data_[at_++]; }
  uint64_t number(int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value |= uint64_t(byte()) << (8 * i);
    return value;
  }
  std::string text(size_t size) {
    size = std::min(size, size_ - std::min(at_, size_));
    at_ += size;
    return {reinterpret_cast<const char*>(data_ + at_ - size), size};
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

enum Table {
  kMeta,
  kAccounts,
  kPhases,
  kSeries,
  kOs,
  kPrograms,
  kBuffers,
  kCalls,
  kProcesses,
  kFrames,
  kSites,
  kMarks,
  kStates,
  kTree,
  kNotes,
  kSpaces,
  kProcessSeries,
  kSources,
  kGpus,
  kGpuSeries,
  kThreads,
  kSiteDetails,
  kSizes
};

const char* const kKeys[] = {"schema_minor",
                             "seconds",
                             "status",
                             "command",
                             "exit_code",
                             "signal",
                             "peak_rss",
                             "file_rss",
                             "limit.bytes",
                             "limit.name",
                             "dropped",
                             "remarks",
                             "sampling.interval",
                             "sampling.samples",
                             "planned_bytes",
                             "started",
                             "model",
                             "limit.asked",
                             "host.cores",
                             "main_pid",
                             "overhead.probe_cpu_s",
                             "overhead.probe_bytes",
                             "overhead.collector_cpu_s"};
const char* const kWords[] = {"epoch",
                              "fit",
                              "step",
                              "timer",
                              "line",
                              "loop",
                              "model",
                              "call",
                              "loader",
                              "peak",
                              "end",
                              "",
                              "current",
                              "inf",
                              "nan",
                              "1e300",
                              "-1",
                              "99999999999999999999",
                              "1",
                              "ended",
                              "0x1p70",
                              "1 2 3",
                              "3 2 1 3",
                              "9223372036854775807",
                              "train.py",
                              "<module>",
                              "../\xff\xfe",
                              "+0x12",
                              "epoch #: loss #",
                              "process/free",
                              "weights/a"};
const char* const kSaid[] = {
    R"js({"note": "walk", "kind": "epoch", "period": 6, "apart": true, "seconds": 0.01, "objects": 28993, "alive": 60000000, "reached": 50000000, "native": 6000000, "garbage": 4000000, "from_ms": 500, "until_ms": 11500, "holders": [{"bytes": 50000000, "blocks": 33.3, "samples": 40, "items": 40, "how": "reached", "births": [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3], "born": [{"file": "train.py", "line": 1, "function": "f0", "text": "x = make()", "bytes": 50000000}], "type": "list", "chain": ["attribute kept of K", "local k of main"], "length": 36, "bounded": null, "repeats": 3, "module": "builtins"}, {"bytes": 4000000, "blocks": 3, "samples": 9, "items": 9, "how": "garbage", "births": [1], "type": "Node"}]})js",
    R"js({"note": "walk", "refused": "this interpreter has no table of its objects"})js",
    R"js({"note": "holders", "kind": "epoch", "period": 8, "containers": [{"type": "list", "length": 48, "per_period": 6, "item_type": "bytearray", "bytes_per_period": 8000000, "holder": "K.kept", "chain": ["list of 48", "attribute kept of K"], "rises": 4, "still": true, "bounded": null, "file": "train.py", "line": 2, "function": "f0", "text": "kept.append(x)", "found_by": "source", "of": "builtins.list", "items": {"family": "object"}, "statement": {"line": 2, "text": "  kept.append(x)", "digest": "42:9f3aac64", "how": "append", "target": [2, 6], "value": [14, 15], "atom": true, "alone": true, "parts": [], "end": 16, "indent": 2}}], "types": []})js",
    R"js({"note": "holders", "kind": "epoch", "containers": [{"type": "list", "length": 480, "per_period": 40, "item_type": "ndarray", "bytes_per_period": 8000000, "holder": "K.kept", "chain": ["a", "b"], "file": "train.py", "line": 2, "function": "keep", "text": "kept.append(x)", "still": true}], "types": [{"type": "T", "count": 9, "per_period": 1, "bytes": 100}]})js",
    R"js({"note": "probe", "kind": "epoch", "period": 4, "rss": 300000000, "after_gc": 290000000, "after_trim": 280000000, "collected": 12, "gc_types": {"cell": 4}})js",
    R"js({"note": "lines", "calls": [{"what": "trace", "file": "train.py", "line": 3, "text": "step(i)", "count": 40, "loop": {"file": "train.py", "line": 9}}]})js",
    R"js({"note": "counters", "values": {"tf.traces": 7, "keras.models": 3, "torch.tensors": 12}})js",
    R"js({"note": "framework", "name": "tensorflow"})js",
    R"js({"note": "dataset", "op": "shuffle", "buffer": 100000, "file": "train.py", "line": 5, "text": "d.shuffle(n)"})js",
    R"js({"note": "data", "what": "fit", "arrays": [{"shape": [9, [9]], "dtype": "float64", "bytes": 90000000, "type": "ndarray"}], "file": "train.py", "line": 4})js",
    R"js({"note": "end", "agent_seconds": 0.5, "exception": {"type": "X"}})js"};

constexpr int64_t kMiB = 1 << 20;

/// What the `n`th row of a table holds in an ordinary run that grows by some MiB with every epoch.
Cell ordinary(int table, int column, int64_t n, int64_t move) {
  const char type = fuzz::kLayout[table].columns[column];
  const int64_t id = n + 1;
  switch (table * 16 + column) {
    case kMeta * 16:
      return fuzz::text(kKeys[size_t(n + move) % std::size(kKeys)]);
    case kMeta * 16 + 1:
      return fuzz::text(std::to_string(1 + move));
    case kAccounts * 16 + 1:
      return fuzz::text(format("activations/layer{}", n));
    case kPhases * 16 + 1:
    case kMarks * 16 + 3:
      return fuzz::text("epoch");
    case kMarks * 16 + 4:
      return fuzz::text("fit");
    case kSeries * 16 + 5:
      return fuzz::text(move % 2 ? "peak" : "current");
    case kMarks * 16 + 15:
      return fuzz::text(format("{} {} 1 2 3", 10 * id, id));
    case kStates * 16 + 4:
      return fuzz::text(format("{0} {0} {0} {0} {0} {0} {0} {0}", 100 * (1 + move)));
    case kSites * 16 + 2:
      return fuzz::text(format("{} {}", 1 + n % 3, 1 + move % 3));
    case kFrames * 16 + 1:
      return fuzz::text("train.py");
    case kFrames * 16 + 2:
      return fuzz::text(format("f{}", n));
    case kNotes * 16 + 2:
      return fuzz::text(kSaid[size_t(n + move) % std::size(kSaid)]);
    case kProcesses * 16:
    case kMarks * 16 + 1:
    case kSites * 16 + 1:
    case kNotes * 16 + 1:
    case kThreads * 16 + 1:
    case kSizes * 16:
      return fuzz::whole(1 + move / 120);
    case kSizes * 16 + 1:
      return fuzz::whole(int64_t{16} << (n + move) % 40);
    case kSiteDetails * 16 + 1:
      return move % 3 ? fuzz::whole(move % 3) : Cell{};
    case kSeries * 16 + 4:
    case kBuffers * 16:
    case kBuffers * 16 + 2:
    case kCalls * 16:
      return fuzz::whole(1 + move % 2);
    case kStates * 16:
      return fuzz::whole(1 + n / 2);
    case kStates * 16 + 1:
      return fuzz::whole(1 + n % 2);
    case kStates * 16 + 2:
      return fuzz::whole((1 + n / 2) * (1 + n % 2) * 4 * kMiB);
    case kMarks * 16 + 14:
    case kOs * 16 + 3:
    case kSeries * 16 + 3:
    case kTree * 16 + 2:
    case kProcessSeries * 16 + 2:
    case kGpuSeries * 16 + 2:
    case kProcessSeries * 16 + 1:
      return fuzz::whole(1);
    case kProcesses * 16 + 7:
      return fuzz::text(move % 3 == 0 ? "inside" : move % 3 == 1 ? "outside" : "not");
    case kSources * 16 + 1:
      return fuzz::text("train.py");
    case kSources * 16 + 4:
      return fuzz::text("def f0():\n  kept.append(x)\n  step(i)\n");
  }
  if (column == 0 && type == 'i') return fuzz::whole(id);
  if (type == 'r') return fuzz::real(double(n) + double(move) / 256);
  if (type == 't') return fuzz::text(format("name {}", n));
  if (table == kMarks && column >= 7 && column <= 13) return fuzz::whole((200 + 8 * n + move) * kMiB);
  if (table == kOs && column >= 2) return fuzz::whole((200 + 8 * n + move) * kMiB);
  if (table == kSites || table == kPrograms || table == kTree || table == kSeries || table == kProcessSeries ||
      table == kGpuSeries || table == kSiteDetails || table == kSizes)
    return fuzz::whole((1 + n + move) * kMiB);
  return fuzz::whole(n + move % 4);
}

Cell next_cell(Input& in, int table, int column, int64_t n) {
  static constexpr double kReals[] = {0.0,  -0.0, -1.0, 1e-300,   5e-324,   1e300, -1e300, 1.7976931348623157e308,
                                      1e18, 1e19, 0.5,  INFINITY, -INFINITY};
  static constexpr int64_t kEdges[] = {
      0,         1,         -1,        255,       65536,     INT32_MAX, int64_t{INT32_MAX} + 1,
      INT32_MIN, 1ll << 53, 1ll << 47, 1ll << 60, 1ll << 62, INT64_MAX, INT64_MAX - 1,
      INT64_MIN};
  const uint8_t tag = in.byte();
  if (tag >= 128) return ordinary(table, column, n, 255 - tag);
  if (tag < 64) return fuzz::whole(tag);
  switch (tag % 12) {
    case 0:
      return {};
    case 1:
      return fuzz::whole(int64_t(in.number(8)));
    case 2:
      return fuzz::whole(kEdges[in.byte() % std::size(kEdges)]);
    case 3:
      return fuzz::real(std::bit_cast<double>(in.number(8)));
    case 4:
      return fuzz::real(kReals[in.byte() % std::size(kReals)]);
    case 5:
      return fuzz::text(in.text(in.byte()));
    case 6:
      return fuzz::text(in.text(in.number(2)));
    case 7:
      return fuzz::text(kWords[in.byte() % std::size(kWords)]);
    case 8:
      return fuzz::text(kKeys[in.byte() % std::size(kKeys)]);
    case 9: {  // one long text: [[[[, x.x.x., ((((
      const std::string piece = in.text(1 + in.byte() % 4);
      std::string text;
      for (size_t left = in.number(2); text.size() < left && !piece.empty();) text += piece;
      return fuzz::text(text);
    }
    case 10:
      return {.kind = Cell::Kind::kBlob, .text = in.text(in.byte())};
    default:
      return fuzz::text(kSaid[in.byte() % std::size(kSaid)]);
  }
}

void add_ordinary_run(fuzz::RunTables& tables, int64_t next[fuzz::kTableCount]) {
  static constexpr int kRows[] = {8, 2, 3, 0, 12, 0, 0, 0, 1, 3, 2, 12, 24, 3, 9, 0, 6, 2, 0, 0, 2, 2, 8};
  for (int table = 0; table < fuzz::kTableCount; ++table)
    for (int i = 0; i < kRows[table]; ++i) {
      std::vector<Cell> cells;
      for (int c = 0; fuzz::kLayout[table].columns[c]; ++c) cells.push_back(ordinary(table, c, next[table], 0));
      tables.add(size_t(table), cells);
      ++next[table];
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input in(data, size);
  const uint8_t flags = in.byte();
  fuzz::RunTables tables(!(flags & 1));
  int64_t next[fuzz::kTableCount] = {};
  tables.add(kMeta, std::vector{fuzz::text("schema_minor"), fuzz::text(std::to_string(fuzz::kMinor))});
  if (flags & 2) add_ordinary_run(tables, next);
  for (int rows = 0; !in.empty() && rows < 4000;) {
    const uint8_t head = in.byte();
    const int table = head % fuzz::kTableCount;
    for (int repeats = head / fuzz::kTableCount; repeats >= 0; --repeats, ++rows) {
      std::vector<Cell> cells;
      for (int c = 0; fuzz::kLayout[table].columns[c]; ++c) cells.push_back(next_cell(in, table, c, next[table]));
      tables.add(size_t(table), cells);
      ++next[table];
    }
  }
  const std::string& path = tables.save();
  fuzz::take_whole_way(path);
  if (flags & 4) {
    // A copy of what can be read can be read, and has all of it where ids are what Millpond's are.
    const std::string copy = path + "-shared";
    std::remove(copy.c_str());
    try {
      const runfile::Reader file(path);
      runfile::share(file, copy, {"/home/a b/project", {"/home/a b"}, {"name"}, {"fit"}});
      if (runfile::Reader(copy).marks().size() != file.marks().size() && !(flags & 1)) std::abort();
    } catch (const Error&) {
    }
    std::remove(copy.c_str());
  }
  return 0;
}
