// The walk as the agent asks for it: in place, or in a child that the program does not see (apart.h). Where much of
// what is alive belongs to no object of Python, a child also looks who points to it (scan.h).
#include "probe/apart.h"
#include "probe/file.h"
#include "probe/lock.h"
#include "probe/python_layout.h"
#include "probe/scan.h"
#include "probe/system.h"
#include "probe/thread.h"
#include "probe/use.h"
#include "probe/walk.h"

namespace millpond::probe::walk {
namespace {

struct Results {               // shared with the child
  Walk walk, of_given, again;  // the first two one behind the other, as they are told
  Scan scan;
};
Results* results = nullptr;
apart::Child child, scanner;  // scanner: beside a walk in place
Request request;              // of the child
bool may_scan = false;

struct List {
  void* const* items;
  size_t count;
};
List list_of(void* list) {
  constexpr size_t kSize = 16, kItems = 24;  // PyListObject
  if (!list) return {nullptr, 0};
  return {python::at<void* const*>(list, kItems), python::at<size_t>(list, kSize)};
}

bool run_in_child(void*) {
  results->walk.done = run(request, results->walk, results->of_given, may_scan ? &results->scan : nullptr) ? 1 : 2;
  return results->walk.done == 1;
}
bool scan_in_child(void*) {
  request.given_count = 0;  // what was found of them stands there already, and is being read
  return run(request, results->again, results->again, &results->scan);
}

Lock changing;  // a scan that is done is taken up by whichever thread has taken a sample

// Of the walk: the child may go on with a scan.
int state() {
  const int now = child.state();
  if (results && now != 0) scan::publish(results->scan);
  const uint64_t done = results ? __atomic_load_n(&results->walk.done, __ATOMIC_ACQUIRE) : 1;
  return done == 1 ? 1 : now == 0 ? 0 : -1;
}

int scanner_state() {
  const int now = scanner.state();
  if (now < 0) scan::died();
  return now;
}

}  // namespace

void look() {
  if (!changing.try_lock()) return;
  if (results && results->scan.done == 1 && child.state() != 0 && scanner_state() > 0) scan::publish(results->scan);
  changing.unlock();
}

void forget() {
  if (results) sys::unmap(results, sizeof(Results));
  results = nullptr;
  child.forget();
  scanner.forget();
  changing = {};
}

void release() {
  child.end();
  scanner.end();
  forget();
}

}  // namespace millpond::probe::walk

using namespace millpond::probe;

extern "C" __attribute__((visibility("default"))) int millpond_probe_walked() {
  Quiet quiet;
  Locked locked(walk::changing);
  return walk::state();
}

extern "C" __attribute__((visibility("default"))) Walk* millpond_probe_walk(
    void* roots, void* all, void* hidden, void* later, const uint64_t* owned, size_t owned_count, const uint64_t* links,
    size_t link_count, const uint64_t* given, size_t given_count, size_t room, int flags) {
  Use use;
  // Without the GIL other threads change what is walked over; and how types are laid out is not part of the check.
  if (!use || !python::frames_known() || python::layout.free_threaded ||
      python::layout.version > python::kNewestVersion)
    return nullptr;
  Quiet quiet;
  Locked locked(walk::changing);
  walk::state();
  if (walk::child.state() == 0 || walk::scanner_state() == 0) return nullptr;
  using walk::request, walk::results;
  if (!results)
    results = static_cast<walk::Results*>(
        sys::map(sizeof(walk::Results), sys::kRead | sys::kWrite, sys::kMapShared | sys::kMapAnonymous, -1));
  if (!results) return nullptr;
  results->walk = results->of_given = results->again = Walk{};
  results->scan = Scan{};
  const walk::List from = walk::list_of(roots), known = walk::list_of(all), ours = walk::list_of(hidden),
                   last = walk::list_of(later);
  // After a shallow walk nobody knows what objects of libraries hold: no scan then.
  const bool shallow = (flags & kWalkShallow) != 0;
  request = {room,
             from.items,
             from.count,
             known.items,
             known.count,
             ours.items,
             ours.count,
             last.items,
             last.count,
             shallow,
             reinterpret_cast<const walk::Owned*>(owned),
             owned_count,
             reinterpret_cast<const walk::Link*>(links),
             link_count,
             reinterpret_cast<const walk::Given*>(given),
             given_count};
  if (flags & kWalkApart) {
    walk::may_scan = !shallow && scan::may_begin();
    return walk::child.start(walk::run_in_child, nullptr) ? &results->walk : nullptr;
  }
  results->walk.done = walk::run(request, results->walk, results->of_given, nullptr) ? 1 : 2;
  if (results->walk.done == 1 && !shallow && walk::wants_scan(results->walk) && scan::may_begin())
    walk::scanner.start(walk::scan_in_child, nullptr);
  return &results->walk;
}
