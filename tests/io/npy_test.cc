#include "io/npy.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/half.h"
#include "base/segment.h"
#include "io/scratch.h"

using namespace millpond;
using namespace millpond::io;

namespace {
// A .npy file by hand: the header text is padded as NumPy does unless `exact`.
std::string npy(std::string header, const std::string& values, int major = 1, bool exact = false) {
  const size_t fixed = major == 1 ? 10 : 12;
  if (!exact) {
    header.resize((fixed + header.size() + 1 + 63) / 64 * 64 - fixed - 1, ' ');
    header += '\n';
  }
  std::string s = "\x93NUMPY";
  s += char(major);
  s += '\0';
  for (size_t i = 0; i < fixed - 8; ++i) s += char(header.size() >> (8 * i) & 255);
  return s + header + values;
}
template <class... T>
std::string raw(T... values) {
  std::string s;
  (s.append(reinterpret_cast<const char*>(&values), sizeof values), ...);
  return s;
}
Error refusal(const std::string& file) {
  Error from_read(Code::kUsage, "not refused"), from_map = from_read;
  try {
    static_cast<void>(read_npy(file, "test/npy"));
  } catch (const Error& e) {
    from_read = e;
  }
  try {
    static_cast<void>(map_npy(file));
  } catch (const Error& e) {
    from_map = e;
  }
  CHECK(from_read.text() == from_map.text());
  return from_read;
}
const char* kGood = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
}  // namespace

TEST_CASE("npy: a file as NumPy writes it is read and mapped with its type, shape and values") {
  Scratch dir;
  for (int major : {1, 2, 3}) {
    const std::string file = dir.put("a.npy", npy(kGood, raw(1.f, 2.f, 3.f, 4.f, 5.f, 6.f), major));
    for (const Tensor& t : {read_npy(file, "test/npy"), map_npy(file)}) {
      CHECK(t.dtype() == DType::kFloat32);
      CHECK(t.shape() == Shape{2, 3});
      CHECK(t.at(5) == 6);
    }
  }
}

TEST_CASE("npy: what is written is read back bit by bit, in every type and rank") {
  Scratch dir;
  const std::string file = dir.path("b.npy");
  for (DType dtype : kAllDTypes) {
    if (dtype == DType::kBFloat16) continue;
    for (const Shape& shape :
         {Shape{}, Shape{1}, Shape{0}, Shape{7}, Shape{3, 0, 2}, Shape{2, 3, 5}, Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
      Tensor t(dtype, shape);
      for (int64_t i = 0; i < t.bytes().value; ++i)
        t.data()[i] = dtype == DType::kBool ? std::byte(i & 1) : std::byte(i * 7 + 1);
      write_npy(file, t);
      CHECK(std::filesystem::file_size(file) == size_t(128 + t.bytes().value));
      for (const Tensor& back : {read_npy(file, "test/npy"), map_npy(file)}) {
        CHECK(back.dtype() == dtype);
        CHECK(back.shape() == shape);
        CHECK(std::memcmp(back.data(), t.data(), size_t(t.bytes().value)) == 0);
      }
    }
  }
}

TEST_CASE("npy: every spelling of a header that means the same is accepted") {
  Scratch dir;
  const std::string values = raw(int64_t{5}, int64_t{6});
  for (const char* header :
       {"{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
        "{\"shape\":(2L,),\"descr\":\"=i8\",\"fortran_order\":False}",
        "{'fortran_order': True, 'shape': (2,), 'descr': 'i8'}", "{'descr':'<i8','fortran_order':True,'shape':(1,2,1)}",
        " {  'descr' : '<i8' , 'fortran_order' : False , 'shape' : ( 2 , ) , } \n"}) {
    CAPTURE(header);
    CHECK(read_npy(dir.put("c.npy", npy(header, values)), "test/npy").at(1) == 6);
  }
  CHECK(read_npy(dir.put("c.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (), }", "\x07")), "test/npy")
            .at(0) == 7);
}

TEST_CASE("npy: a mapping outlives file name and reader, costs no memory of its own, and rows of it keep it alive") {
  Scratch dir;
  const int64_t n = 1 << 20;
  {
    Tensor t(DType::kFloat32, {n});
    for (int64_t i = 0; i < n; ++i) t.values<float>()[size_t(i)] = float(i);
    write_npy(dir.path("d.npy"), t);
  }
  Bytes held;
  Tensor mapped = map_npy(dir.path("d.npy"));
  each_holding([&](const std::string&, Bytes b) { held += b; });
  CHECK(held == Bytes{0});
  unlink(dir.path("d.npy").c_str());
  Tensor last = mapped.rows(n - 1, n);
  const std::byte* at = last.data();
  mapped = Tensor();
  CHECK(last.at(0) == double(n - 1));
  last = Tensor();
  unsigned char in = 0;
  CHECK(mincore(const_cast<std::byte*>(at - reinterpret_cast<uintptr_t>(at) % 4096), 4096, &in) == -1);
}

TEST_CASE("npy: values that lie unaligned are still right") {
  Scratch dir;
  for (size_t pad = 0; pad < 8; ++pad) {
    const std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }" + std::string(pad, ' ');
    const Tensor t = map_npy(dir.put("e.npy", npy(header, raw(1.5, -2.5), 1, true)));
    CHECK(reinterpret_cast<uintptr_t>(t.data()) % 8 == 0);
    CHECK(t.at(1) == -2.5);
  }
}

TEST_CASE("npy: a damaged file is refused with file, position, what was expected and what was found") {
  Scratch dir;
  const std::string six = raw(1.f, 2.f, 3.f, 4.f, 5.f, 6.f);
  const auto header = [&](std::string descr, std::string order, std::string shape) {
    return npy(format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr, order, shape), six);
  };
  struct Case {
    std::string bytes, position, expected, found;
  };
  std::string long_header = npy(kGood, six, 2);
  long_header[11] = char(0x7f);  // two gigabytes
  std::string past_end = npy(kGood, six);
  past_end[9] = 8;
  const std::vector<Case> cases = {
      {"", "byte 0", "\"\\x93NUMPY\"", "an empty file"},
      {"PK\x03\x04zip", "byte 0", "\"\\x93NUMPY\"", "\"PK\\x03\\x04zi\""},
      {std::string("\x93NUMPY\x01"), "byte 6", "a version and a header length", "the end of the file, after 7 bytes"},
      {npy(kGood, six, 4), "byte 6", "version 1.0, 2.0 or 3.0", "4.0"},
      {std::string("\x93NUMPY\x02\x00\x10\x00", 10), "byte 8", "a header length of 4 bytes", "the end of the file"},
      {long_header, "byte 8", "a header of at most 65524 bytes", "2130706548"},
      {past_end, "byte 8", "a header that fits into the file's 152 bytes", "a length of 2166"},
      {npy("nonsense", six), "byte 10", "'{'", ""},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)", six, 1, true), "byte 66", "'}'",
       "the end of the header"},
      {header("<f4", "False", "(2, 3)"), "byte 20", "a quoted string", ""},
      {header("'<f4", "False", "(2, 3)"), "", "", ""},
      {header("''", "False", "(2, 3)"), "byte 20", "a type such as '<f4'", "\"\""},
      {header("'<q\\x01'", "False", "(2, 3)"), "byte 20", "a type such as '<f4'", ""},
      {header("'<f4'", "0", "(2, 3)"), "byte 44", "True or False", ""},
      {header("'<f4'", "False", "[2, 3]"), "byte 60", "'('", ""},
      {header("'<f4'", "False", "(2, -3)"), "byte 64", "a whole number that is not negative", ""},
      {header("'<f4'", "False", "(2 3)"), "byte 63", "')'", ""},
      {header("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), "byte 77", "at most 8 dimensions", ""},
      {header("'<f4'", "False", "(99999999999999999999,)"), "byte 61", "a dimension below 2^63", ""},
      {header("'<f4'", "False", "(4294967296, 4294967296)"), "byte 10", "a shape of less than 2^63 elements",
       "[4294967296, 4294967296]"},
      {header("'<f4'", "False", "(0, 4294967296, 4294967296)"), "byte 10", "a shape of less than 2^63 elements",
       "[0, 4294967296, 4294967296]"},
      {header("'<f8'", "False", "(4611686018427387904,)"), "byte 10", "less than 2^63 bytes of values",
       "the shape [4611686018427387904] of float64"},
      {header("'<f4'", "False", "(1000000000, 1000)"), "byte 128",
       "4000000000000 bytes of values for the shape [1000000000, 1000] of float32", "24"},
      {header("'<f4'", "False", "(2, 2)"), "byte 128", "16 bytes of values for the shape [2, 2] of float32", "24"},
      {header("'<f4'", "False", "(0,)"), "byte 128", "0 bytes of values for the shape [0] of float32", "24"},
      {npy("{'descr': '<f4', 'fortran_order': False, }", six), "byte 10", "the key 'shape'", "a header without it"},
      {npy("{'descr': '<f4', 'descr': '<f8', 'fortran_order': False, 'shape': (6,)}", six), "byte 27", "each key once",
       "\"descr\" again"},
      {npy("{'descr': '<f4', 'order': False, 'shape': (6,)}", six), "byte 27", "'descr', 'fortran_order' or 'shape'",
       "\"order\""},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} or not", six), "byte 66",
       "blanks up to the end of the header", ""},
      {npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", std::string("\x01\x02")), "byte 129",
       "a bool, 0 or 1", "2"},
  };
  for (const Case& c : cases) {
    const std::string file = dir.put("f.npy", c.bytes);
    const Error e = refusal(file);
    CAPTURE(std::string(e.what()));
    CHECK(e.code() == Code::kFormat);
    REQUIRE(e.details().size() == 4);
    CHECK(e.details()[0].second == file);
    if (!c.position.empty()) CHECK(e.details()[1].second == c.position);
    if (!c.expected.empty()) CHECK(e.details()[2].second == c.expected);
    if (!c.found.empty()) CHECK(e.details()[3].second == c.found);
  }
}

TEST_CASE("npy: every prefix of a good file is refused, and so is a good file with a byte more") {
  Scratch dir;
  const std::string whole = npy(kGood, raw(1.f, 2.f, 3.f, 4.f, 5.f, 6.f));
  for (size_t n = 0; n < whole.size(); ++n)
    CHECK(refusal(dir.put("g.npy", whole.substr(0, n))).code() == Code::kFormat);
  CHECK(refusal(dir.put("g.npy", whole + "x")).code() == Code::kFormat);
}

TEST_CASE("npy: an order or type we do not read is refused with the line of Python that cures it") {
  Scratch dir;
  const auto what = [&](const char* header) {
    const Error e = refusal(dir.put("h.npy", npy(header, std::string(24, '\0'))));
    CHECK(e.code() == Code::kUnsupported);
    return e.text().substr(e.text().find(": ") + 2) + "; " + e.hint();
  };
  CHECK(what("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }") ==
        "its values of shape [2, 3] lie in Fortran order; in Python: np.save(file, np.ascontiguousarray(x))");
  CHECK(what("{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }") ==
        "its values are big endian (>f4); in Python: np.save(file, x.astype(\"<f4\"))");
  CHECK(what("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }")
            .starts_with("values of type <c8 are not supported"));
  CHECK(what("{'descr': '<U3', 'fortran_order': False, 'shape': (2,), }")
            .starts_with("values of type <U3 are not supported"));
  CHECK(what("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, 'shape': (3,), }")
            .starts_with("its values are records of several fields"));
}

TEST_CASE("npy: what is no plain file is refused without waiting for it") {
  Scratch dir;
  mkfifo(dir.path("pipe").c_str(), 0600);
  CHECK(refusal(dir.path("pipe")).code() == Code::kFile);
  CHECK(refusal("/dev/zero").code() == Code::kFile);
  CHECK(refusal(dir.path(".")).code() == Code::kFile);
  CHECK(refusal(dir.path("absent.npy")).code() == Code::kFile);
}

TEST_CASE("npy: every dtype is written and read back; bfloat16 lies there as NumPy writes it, V2") {
  Scratch dir;
  for (const DType t : kAllDTypes) {
    const Tensor x = Tensor::of<double>(std::vector<double>{0, 1, 2, 100}, {2, 2}).astype(t);
    write_npy(dir.path("x.npy"), x);
    const Tensor y = read_npy(dir.path("x.npy"));
    CHECK(y.dtype() == t);
    CHECK(y.shape() == x.shape());
    CHECK(std::memcmp(x.data(), y.data(), size_t(x.bytes().value)) == 0);
  }
}

TEST_CASE("npy: a tensor that holds nothing is not written") {
  Scratch dir;
  CHECK_THROWS_AS(write_npy(dir.path("i.npy"), Tensor()), Error);
  CHECK(dir.empty());
}
