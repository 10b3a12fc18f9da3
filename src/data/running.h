// Running: a pipeline that runs: budget divided, stages started, what it gave counted.
#pragma once
#include "data/node.h"

namespace millpond::data {

/// How many bytes each stage below `root` may hold. `consumer`: the one who asks has an element in hand, and the next
/// one is on its way.
std::map<const Node*, Bytes> ceilings_of(const Node& root, Bytes budget, bool consumer);

class Running {
 public:
  explicit Running(NodePtr root);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  bool next(Element& e);
  void rewind(int64_t epoch);
  void warm();
  std::string save() const;
  void restore(std::string_view position);
  std::string explain() const;
  std::string waited_on() const;

  /// How many rows the next batch will have (0: there is none), where it can be filled into the caller's buffers;
  /// otherwise -1.
  int64_t upcoming() const { return over_ ? 0 : top_->upcoming(); }
  void fill(std::span<std::byte* const> to, int64_t rows);

  const Node& root() const { return *root_; }
  Pool& pool() const { return *run_->pool; }
  bool own_budget() const { return own_budget_; }  // otherwise a tenth of the free memory
  int64_t epoch() const { return epoch_; }
  int64_t elements() const { return elements_; }
  double seconds_waited() const { return double(waited_ns_) * 1e-9; }

  // For range-for.
  Element current;
  bool begun = false, ended = false;

 private:
  NodePtr root_;
  std::unique_ptr<Run> run_;
  std::map<const Node*, Bytes> ceilings_;
  std::unique_ptr<Iterator> top_;
  int64_t epoch_ = 0, elements_ = 0, waited_ns_ = 0, began_ns_ = 0;
  bool over_ = false;  // at the end, or after an error: what is half done below is not gone on with
  bool own_budget_ = false;
};

}  // namespace millpond::data
