#include "probe/python_check.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/uio.h>

#include <initializer_list>

#include "probe/python_frames.h"
#include "probe/python_lines.h"
#include "probe/python_text.h"
#include "probe/system.h"

namespace millpond::probe::python {
namespace {

constexpr int kMostFrames = 24, kMostSteps = 256;

// Functions of the stable interface, and what they are asked.
struct Asked {
  void* (*frame)();            // lent
  void* (*back)(void* frame);  // a new reference, as below
  void* (*code)(void* frame);
  int (*line)(void* frame);
  void* (*attribute)(void* object, const char* name);
  long (*as_long)(void* object);
  void* (*new_string)(const char* text);
  void* (*new_bytes)(const char* bytes, ptrdiff_t size);
  void (*take)(void* object);
  void (*drop)(void* object);
  void (*forget_error)();
  const void* bytes_type;
  const void* string_type;
};

template <class F>
bool find(F& function, const char* name) {
  function = reinterpret_cast<F>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}
bool look_up(Asked& a) {
  return find(a.frame, "PyEval_GetFrame") && find(a.back, "PyFrame_GetBack") && find(a.code, "PyFrame_GetCode") &&
         find(a.line, "PyFrame_GetLineNumber") && find(a.attribute, "PyObject_GetAttrString") &&
         find(a.as_long, "PyLong_AsLong") && find(a.new_string, "PyUnicode_FromString") &&
         find(a.new_bytes, "PyBytes_FromStringAndSize") && find(a.take, "Py_IncRef") && find(a.drop, "Py_DecRef") &&
         find(a.forget_error, "PyErr_Clear") && find(a.bytes_type, "PyBytes_Type") &&
         find(a.string_type, "PyUnicode_Type");
}

class Reference {
 public:
  Reference(const Asked& asked, void* object) : asked_(asked), object_(object) {
    if (!object_) asked_.forget_error();
  }
  ~Reference() {
    if (object_) asked_.drop(object_);
  }
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;
  void* get() const { return object_; }
  void exchange(void* object) {
    if (object_) asked_.drop(object_);
    object_ = object;
  }

 private:
  const Asked& asked_;
  void* object_;
};

// The kernel reads it for us, and answers that it cannot where we would die.
bool readable(const void* p, size_t size) {
  char buffer[512];
  if (!plausible(p) || size > sizeof buffer) return false;
  iovec to{buffer, size}, from{const_cast<void*>(p), size};
  return syscall(SYS_process_vm_readv, syscall(SYS_getpid), &to, 1UL, &from, 1UL, 0UL) == long(size);
}

constexpr size_t kLongText =
    240;  // longer than any offset that is read by an unproven layout, so that all of them lie in the object

// `piece` again and again.
size_t fill(char (&text)[kLongText + 16], const char* piece) {
  size_t size = 0;
  for (const size_t more = strlen(piece); size < kLongText; size += more) memcpy(text + size, piece, more);
  text[size] = 0;
  return size;
}

bool reads_strings(const Layout& l, const Asked& a) {
  for (const char* piece : {"plain/text.py ", "größe ", "日本 ", "😀 "}) {
    char text[kLongText + 16], copy[sizeof text];
    const size_t size = fill(text, piece);
    const Reference string(a, a.new_string(text));
    if (!string.get() || at<const void*>(string.get(), l.object_type) != a.string_type) return false;
    if (copy_string(l, string.get(), copy, sizeof copy) != size || memcmp(copy, text, size) != 0) return false;
  }
  return true;
}

bool reads_bytes(const Layout& l, const Asked& a) {
  char text[kLongText + 16];
  const size_t size = fill(text, "\x80\x01 table");
  const Reference bytes(a, a.new_bytes(text, ptrdiff_t(size)));
  return bytes.get() && at<const void*>(bytes.get(), l.object_type) == a.bytes_type &&
         at<int64_t>(bytes.get(), l.bytes_size) == int64_t(size) &&
         memcmp(static_cast<const char*>(bytes.get()) + l.bytes_text, text, size) == 0;
}

bool has(const Layout& l, const Asked& a, const void* code, uint16_t field, const char* name, const void* type) {
  const Reference truth(a, a.attribute(const_cast<void*>(code), name));
  return truth.get() && at<const void*>(code, field) == truth.get() &&
         at<const void*>(truth.get(), l.object_type) == type;
}

// The frame that the interpreter shows as `truth` is the one that was read.
bool is_same(const Layout& l, const Asked& a, const Place& place, void* truth) {
  const void* code = place.code;
  if (!has(l, a, code, l.code_file, "co_filename", a.string_type)) return false;
  if (!has(l, a, code, l.code_name, l.version >= 311 ? "co_qualname" : "co_name", a.string_type)) return false;
  if (!has(l, a, code, l.code_lines, l.version >= 310 ? "co_linetable" : "co_lnotab", a.bytes_type)) return false;
  const Reference first(a, a.attribute(const_cast<void*>(code), "co_firstlineno"));
  if (!first.get() || a.as_long(first.get()) != at<int32_t>(code, l.code_first_line)) return false;
  const int line = a.line(truth);
  return line <= 0 || decode_line(l, code, place.unit) == line;  // an instruction may have none
}

size_t end_of(std::initializer_list<size_t> offsets) {
  size_t end = 0;
  for (const size_t offset : offsets) end = offset > end ? offset : end;
  return end + 8;
}

Checked reads_frames(const Layout& l, const Asked& a) {
  void* const innermost = a.frame();
  if (!innermost) return Checked::kCannotTell;
  a.take(innermost);
  Reference truth(a, innermost);
  const size_t frame_bytes = end_of({l.frame_code, l.frame_previous, l.frame_at, l.frame_owner, l.frame_copy});
  const size_t code_bytes =
      end_of({l.code_file, l.code_name, l.code_lines, l.code_first_line, l.code_begin, l.code_copies});
  const void* thread = l.this_thread();
  if (!readable(static_cast<const char*>(thread) + l.thread_frame, 8)) return Checked::kWrong;
  const void* frame = at<const void*>(thread, l.thread_frame);
  if (l.has_cframe) frame = readable(frame, l.through_cframe + 8u) ? innermost_frame(l, thread) : nullptr;
  int same = 0;
  for (int steps = 0; frame && truth.get() && same < kMostFrames && steps < kMostSteps; ++steps) {
    if (!readable(frame, frame_bytes)) return Checked::kWrong;
    Place place{nullptr, -1, true};
    if (!is_shim(l, frame)) {
      const Reference code(a, a.code(truth.get()));
      if (!readable(code_of(l, frame), code_bytes) || !read_frame(l, frame, place)) return Checked::kWrong;
      if (!place.skip && (place.code != code.get() || !is_same(l, a, place, truth.get()))) return Checked::kWrong;
    }
    if (!place.skip) {
      ++same;
      truth.exchange(a.back(truth.get()));
    }
    frame = at<const void*>(frame, l.frame_previous);
  }
  // Where our frames end before the interpreter's, they are not its frames.
  return same && (!truth.get() || same == kMostFrames) ? Checked::kRight : Checked::kWrong;
}

}  // namespace

Checked check(const Layout& l) {
  Asked a;
  if (!look_up(a) || !readable(&l, sizeof l)) return Checked::kCannotTell;  // a sandbox may forbid the question
  if (!reads_strings(l, a) || !reads_bytes(l, a)) return Checked::kWrong;
  return reads_frames(l, a);
}

}  // namespace millpond::probe::python
