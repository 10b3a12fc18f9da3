#include "probe/codes.h"

#include <string.h>

#include "probe/file.h"
#include "probe/lock.h"
#include "probe/python_layout.h"
#include "probe/python_text.h"
#include "probe/system.h"

namespace millpond::probe::codes {
namespace {

using python::at;

constexpr uint32_t kPlaces = 2 * kCodes;
alignas(sys::kPageSize) uint32_t index[kPlaces];  // by hash: the number + 1, or 0. Only added to
constexpr uint32_t kFiles = 2048;
alignas(sys::kPageSize) Text files[kFiles];  // the last one put in, by hash
Lock adding;

constexpr char kImportlib[] = "<frozen importlib._bootstrap";

struct Key {
  uint64_t object, file, name;
  uint32_t first_line;
};
Key key_of(const void* object) {
  const python::Layout& l = python::layout;
  return {uint64_t(object), at<uint64_t>(object, l.code_file), at<uint64_t>(object, l.code_name),
          at<uint32_t>(object, l.code_first_line)};
}
bool same(const Code& code, const Key& key) {
  return code.object == key.object && code.file_object == key.file && code.name_object == key.name &&
         code.first_line == key.first_line;
}

// The number of the code, or -1 and the empty place where it belongs.
int find(const Key& key, uint32_t& place) {
  for (place = uint32_t(((key.object >> 4) * 0x9e3779b97f4a7c15u) >> 48) % kPlaces;; place = (place + 1) % kPlaces) {
    const uint32_t number = __atomic_load_n(&index[place], __ATOMIC_ACQUIRE);
    if (number == 0) return -1;
    if (same(file::codes()[number - 1], key)) return int(number - 1);
  }
}

bool keep(const char* bytes, uint32_t size, Text& text) {
  Shared& shared = *file::shared;
  if (shared.text + size > kTextBytes || (size && !file::reserve(file::text() + shared.text, size))) return false;
  memcpy(file::text() + shared.text, bytes, size);
  text = {shared.text, size};
  __atomic_store_n(&shared.text, shared.text + size, __ATOMIC_RELAXED);
  return true;
}
bool keep_file(const char* bytes, uint32_t size, Text& text) {
  uint32_t hash = size;
  for (uint32_t i = 0; i < size; ++i) hash = (hash ^ uint8_t(bytes[i])) * 16777619u;
  Text& last = files[(hash ^ hash >> 15) % kFiles];
  if (last.size == size && size && memcmp(file::text() + last.at, bytes, size) == 0) {
    text = last;
    return true;
  }
  if (!keep(bytes, size, text)) return false;
  last = text;
  return true;
}

int put(const Key& key) {
  char buffer[1024];
  Locked locked(adding);
  uint32_t place;
  if (const int number = find(key, place); number >= 0) return number;
  Shared& shared = *file::shared;
  const uint32_t number = shared.codes;
  Code& code = file::codes()[number];
  if (number >= kCodes || !file::reserve(&code, sizeof code)) return -1;
  const uint32_t size =
      python::copy_string(python::layout, reinterpret_cast<const void*>(key.file), buffer, sizeof buffer);
  if (!keep_file(buffer, size, code.file)) return -1;
  code.unused = size >= sizeof kImportlib - 1 && memcmp(buffer, kImportlib, sizeof kImportlib - 1) == 0;
  if (!keep(buffer, python::copy_string(python::layout, reinterpret_cast<const void*>(key.name), buffer, sizeof buffer),
            code.name))
    return -1;
  code.object = key.object;
  code.file_object = key.file;
  code.name_object = key.name;
  code.first_line = key.first_line;
  __atomic_store_n(&shared.codes, number + 1, __ATOMIC_RELEASE);
  __atomic_store_n(&index[place], number + 1, __ATOMIC_RELEASE);
  return int(number);
}

}  // namespace

void forget() {
  adding = {};
  sys::wipe(index, sizeof index);
  sys::wipe(files, sizeof files);
}

bool is_importlib(int number) { return file::codes()[number].unused != 0; }

int number_of(const void* code_object) {
  const Key key = key_of(code_object);
  uint32_t place;
  int number = find(key, place);
  if (number < 0) number = put(key);
  if (number < 0) file::add(file::shared->lost_codes);
  return number;
}

}  // namespace millpond::probe::codes
