#include "probe/python_frames.h"

#include "probe/codes.h"
#include "probe/file.h"
#include "probe/python_lines.h"
#include "probe/thread.h"

namespace millpond::probe::python {
namespace {

constexpr int kMaxChain =
    4096;  // frames looked at, shims and unfinished ones too: a chain that bites its tail must end

// Where the byte code begins that this frame runs. The main copy lies in the code itself; a thread that runs without
// the GIL may have one of its own.
const char* begin_of_code(const Layout& l, const void* frame, const void* code) {
  const char* own = static_cast<const char*>(code) + l.code_begin;
  if (!l.code_copies) return own;
  const void* copies = __atomic_load_n(
      reinterpret_cast<const void* const*>(static_cast<const char*>(code) + l.code_copies), __ATOMIC_ACQUIRE);
  const int32_t which = at<int32_t>(frame, l.frame_copy);
  if (!plausible(copies) || which < 0 || which >= at<int64_t>(copies, 0)) return own;
  return at<const char*>(copies, 8 + 8 * size_t(which));
}

}  // namespace

const void* innermost_frame(const Layout& l, const void* thread) {
  const void* frame = at<const void*>(thread, l.thread_frame);
  return l.has_cframe && plausible(frame) ? at<const void*>(frame, l.through_cframe) : frame;
}

bool read_frame(const Layout& l, const void* frame, Place& place) {
  place = {code_of(l, frame), -1, is_shim(l, frame)};
  if (place.skip) return true;
  if (!plausible(place.code) || at<const void*>(place.code, l.object_type) != l.code_type) return false;
  if (l.frame_objects) {
    place.unit = at<int32_t>(frame, l.frame_at);
    return true;
  }
  place.unit = (at<const char*>(frame, l.frame_at) - begin_of_code(l, frame, place.code)) / 2;
  // Its function has not begun: arguments are still being put in place.
  if (at<uint8_t>(frame, l.frame_owner) != kOwnedByGenerator &&
      place.unit < at<int32_t>(place.code, l.code_first_traceable))
    place.skip = true;
  return true;
}

bool walk(stacks::Trace& trace) {
  if (!frames_known()) return false;
  const Layout& l = layout;
  // The interpreter that ends frees the threads that still run, and they are not told.
  if (l.is_ending() && me.id != uint32_t(file::shared->pid)) return false;
  const void* thread = l.this_thread();
  if (!plausible(thread)) return false;
  const void* frame = innermost_frame(l, thread);
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
