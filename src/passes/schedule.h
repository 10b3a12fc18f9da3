// Schedule: the calls of an ordered graph as numbers, so that another order of them can be tried in microseconds. It
// knows which values each call reads and makes, which of these take room in the arena, and from which call to which.
//
// One kind of change is offered: a value that is alive over many calls is made again right before the next of them
// that reads it. The calls between then do without its bytes, and what makes it runs twice.
//
//   call        1    2    3   ...   8    9
//   value a     makes     reads          reads     alive from 1 to 9
//   again       makes     reads    makes reads     alive from 1 to 3 and from 8' to 9
//
// What is read to make it again must be there at that time. It is alive anyway, or it lives on from its own last
// reader, or it is made again too, or (because it is made again later in any case) it is made again earlier.
#pragma once
#include <functional>
#include <vector>

#include "graph/operator.h"
#include "plan/plan.h"

namespace millpond::passes {

/// What only who lowers the graph knows of a call.
struct CallFacts {
  Bytes workspace;
  std::vector<graph::Overlap> may_overwrite;
};

struct ScheduleOptions {
  bool in_place = true;          // results may lie over operands that nobody reads again
  bool caller_operands = false;  // inputs and outputs of the graph take no room in the arena
  std::function<CallFacts(const graph::Node& call)> facts;
};

class Schedule {
 public:
  static constexpr int kNone = -1;

  /// What a call does, the same whenever it runs.
  struct Work {
    graph::Node* node = nullptr;
    std::vector<graph::Overlap> in_place;
    std::vector<std::vector<int>> over;  // of each output: the operands that it may lie over, if it may lie over any
    std::vector<int> as_wide;            // of each output: how many of `over` have elements as wide; those are in front
    int64_t workspace = 0;
    double flops = 0;
    double moved = 0;              // bytes that it reads and writes
    bool repeatable = false;       // it changes nothing but its outputs, and its cost is known
    std::vector<int> overwriters;  // calls that overwrite a variable which it reads: it runs before all of these
    std::vector<int> makers;       // calls that make what it reads outside of the arena: it runs behind all of these
  };
  struct Call {
    int work = 0;
    bool again = false;
    std::vector<int> reads = {};  // the value of each operand, or kNone where it takes no room in the arena
    std::vector<int> makes = {};  // the same of each output
  };
  struct Value {
    graph::Value of;
    int64_t size = 0;
    int maker = kNone;  // a call; kNone: an input of the graph
    int first = kNone;  // the value that this one repeats; itself, if it was there from the beginning
    int readers = 0;    // operands of calls
    bool escapes = false;
    bool fixed = false;  // somebody overwrites it in any case: it stays as it is
  };

  /// Where everything is when the calls run in their present order.
  struct Profile {
    struct Buffer {
      int64_t size = 0;
      int first = 0, last = 0;
      bool escapes = false;
    };
    std::vector<int> place;       // of each call; kNone: it does not run any more
    std::vector<int> last;        // of each value, the place of its last reader; kNone: nobody reads it
    std::vector<Buffer> buffers;  // as runtime::assign_buffers makes them, in the same order
    std::vector<int64_t> live;    // bytes alive at each place
    int64_t peak = 0;
    std::vector<int> buffer_of;  // of each value
  };

  /// Of a graph whose nodes are in the order of their calls and whose updates have been assigned. The graph must
  /// outlive the schedule.
  Schedule(graph::Graph& graph, const ScheduleOptions& options);

  const std::vector<int>& order() const { return order_; }
  const Call& call(int i) const { return calls_[size_t(i)]; }
  const Value& value(int i) const { return values_[size_t(i)]; }
  const Work& work_of(int call) const { return works_[size_t(calls_[size_t(call)].work)]; }
  int values() const { return int(values_.size()); }
  /// Of the calls as they run now: what they compute, and the bytes that they read and write.
  double flops() const { return flops_; }
  double moved() const { return moved_; }

  void measure(Profile& profile) const;
  /// The planner's problem that this profile is.
  static plan::Problem problem(const Profile& profile);

  /// How the operands of what is made again come to be there.
  struct Ways {
    bool earlier = true;        // what is made again later in any case is made again earlier instead
    double live_on = 1.0 / 16;  // values up to this share of the size of the one that is dropped live on
    bool operator==(const Ways&) const = default;
  };
  struct Used {  // of these ways, by the last make_again
    bool earlier = false, others = false;
  };
  /// Every reader of `value` from the call `before` on, which is one of them, reads a new value that is made right
  /// before it. False: that is not possible, and nothing has changed. `now`: the measured profile.
  bool make_again(int value, int before, const Ways& ways, const Profile& now);
  const Used& used() const { return used_; }
  /// Takes back the last make_again that returned true.
  void undo();

  /// Makes the graph do what the schedule says: adds the nodes that run again and orders all of them.
  void write(graph::Graph& graph) const;

 private:
  class Again;
  struct Patch {
    int call, operand, old;
  };
  struct Undo {
    size_t calls = 0, values = 0;
    std::vector<int> order;
    std::vector<Patch> patches;
    std::vector<int> gone;
    double flops = 0, moved = 0;
  };
  int new_value(graph::Value of, int maker, int first);
  void remove_unread(int call);
  void take_back();

  std::vector<Work> works_;
  std::vector<Call> calls_;
  std::vector<Value> values_;
  std::vector<std::vector<int>> copies_;  // of each first value, those that repeat it and itself; empty for the others
  std::vector<int> order_, inputs_, escaping_;
  bool in_place_ = true;
  double flops_ = 0, moved_ = 0;
  Undo undo_;
  Used used_;
};

}  // namespace millpond::passes
