// Who holds what is alive. One walk over Python's objects, breadth first from the roots, by the function that each type
// has for the collector (tp_traverse); objects are joined by address with the sampled blocks that they own. So each
// survivor has a chain of objects from a root, and what no root reaches is told apart as the collector does it: held by
// native code, or garbage until gc runs.
//
// Of the tree that the walk leaves, only the part above survivors is kept. A *holder* is the deepest object whose
// survivors were born over a long time, while each thing right below it was filled in a short one: the list of a
// history, not its items and not the module around it. No name and no type decides that, only births.
//
// All memory is mapped for the walk and unmapped after it: it may run in a child made by clone, where malloc can be
// locked for good by a thread that is not there.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "probe/shared.h"

namespace millpond::probe::walk {

// What a survivor's owner is known by, when its data does not lie where the object points to: tensors. An odd address of
// an object, one more than its own: it holds the data only by a graph of gradients.
struct Owned {
  uint64_t object, data;
};

// What an object refers to without saying so to the collector: the values of a thread, the functions of atexit.
struct Link {
  uint64_t parent, child;
};

// A block that is alive in a memory whose allocator is not ours to hook: that of a GPU. `label` stands in the place of
// a stack; its lowest bit says that a graph of gradients leads to the block, and stays where nothing else does.
struct Given {
  uint64_t address, bytes, age_ms, label;
};

struct Request {
  size_t room;         // no more objects than these
  void* const* roots;  // in ranks, with None between them: what an earlier one reaches is told by it
  size_t root_count;
  void* const* all;  // what the collector knows; null: nothing is said of what no root reaches
  size_t all_count;
  void* const* hidden;  // the agent's own, which are not walked into
  size_t hidden_count;
  void* const* later;  // modules of large libraries and their dictionaries, which are walked into when all else is
                       // done: most of a framework's objects lie there, and few survivors
  size_t later_count;
  bool shallow;  // not even then
  const Owned* owned;
  size_t owned_count;
  const Link* links;
  size_t link_count;
  const Given* given;  // what of these is alive is told of by itself
  size_t given_count;
};

// Fills `result`, which lies in shared memory when a child does it; `of_given` where blocks are given: those belong to
// the objects that `owned` names; and, where much is no object's and `native` is not null, that too (scan.h). False: no
// memory.
bool run(const Request& request, Walk& result, Walk& of_given, Scan* native);
// Whether much of what is alive belongs to no object of Python, and more of it came until lately: a leak has as much
// from each half of the time, what a library took when the rounds began has all of it from the first.
inline bool wants_scan(const Walk& w) {
  const uint64_t nobodys = w.alive - w.reached - w.native - w.garbage;
  return nobodys * 5 > w.alive && w.alive > (1 << 20) && w.lately * 4 > nobodys;
}

void look();     // whether a child has found who points to native blocks
void forget();   // in a child by fork: the result and the child are the parent's
void release();  // the probe leaves

}  // namespace millpond::probe::walk
