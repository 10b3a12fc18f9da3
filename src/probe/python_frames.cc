#include "probe/python_frames.h"

#include "probe/codes.h"
#include "probe/file.h"
#include "probe/python_layout.h"
#include "probe/python_lines.h"
#include "probe/thread.h"

namespace millpond::probe::python {
namespace {

constexpr int kMaxChain = 4096;  // frames looked at, shims and unfinished ones too: a chain that bites its tail must end

struct Place {
  const void* code;
  int64_t unit;  // of the instruction, two bytes each (3.9: of its byte); -1: before the first
  bool skip;
};

// False: this is not a frame.
bool read_frame(const Layout& l, const void* frame, Place& place) {
  place = {at<const void*>(frame, l.frame_code), -1, false};
  if (l.frame_objects) {
    place.unit = at<int32_t>(frame, l.frame_at);
  } else {
    const uint8_t owner = at<uint8_t>(frame, l.frame_owner);
    if (l.has_shims && owner == kOwnedByC) {
      place.skip = true;
      return true;
    }
    if (!plausible(place.code)) return false;
    const char* instruction = at<const char*>(frame, l.frame_at);
    place.unit = (instruction - (static_cast<const char*>(place.code) + l.code_begin)) / 2;
    // Its function has not begun: arguments are still being put in place.
    if (owner != kOwnedByGenerator && place.unit < at<int32_t>(place.code, l.code_first_traceable)) place.skip = true;
  }
  return plausible(place.code) && at<const void*>(place.code, kObjectType) == l.code_type;
}

}  // namespace

bool walk(stacks::Trace& trace) {
  const auto this_thread = __atomic_load_n(&layout.this_thread, __ATOMIC_ACQUIRE);
  if (!this_thread) return false;
  const Layout& l = layout;
  // The interpreter that ends frees the threads that still run, and they are not told.
  if (l.is_ending() && me.id != uint32_t(file::shared->pid)) return false;
  const void* thread = this_thread();
  if (!plausible(thread)) return false;
  const void* frame = at<const void*>(thread, l.thread_frame);
  if (l.has_cframe) {
    if (!plausible(frame)) return false;
    frame = at<const void*>(frame, l.through_cframe);
  }
  const uint32_t before = trace.count;
  for (int i = 0; frame && i < kMaxChain; ++i) {
    Place place;
    if (!plausible(frame) || !read_frame(l, frame, place)) {
      trace.count = before;
      return false;
    }
    if (!place.skip) {
      const int code = codes::number_of(place.code);
      const bool shown = code >= 0 && (trace.count == before || !codes::is_importlib(code));
      if (shown && !trace.add(kFramePython | uint64_t(code) << 32 | uint32_t(line_of(place.code, code, place.unit))))
        break;
    }
    frame = at<const void*>(frame, l.frame_previous);
  }
  return trace.count > before;
}

}  // namespace millpond::probe::python
