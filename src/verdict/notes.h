// The agent's notes as plain values: what they say at the end of the run, joined over all of them. Keys that are
// missing are left empty.
#pragma once
#include <cmath>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "verdict/scans.h"
#include "verdict/verdict.h"
#include "verdict/walks.h"

namespace millpond::verdict {

/// A part of a statement's text, in bytes; `atom`: a method can be called on it without brackets around it.
struct Span {
  size_t begin = 0, end = 0;
  bool atom = false;
};

/// A statement of the program that a fix would change, as it stands in the file and taken apart by the agent.
struct Statement {
  std::string text, digest;  // whole lines; of the whole file
  std::string file;          // empty: that of the place it belongs to
  int line = 0;
  std::string how;          // "append", "item" (target[...] = value), "aug", "set", "decorator", "close", "argument",
                            // "tf.function", ...
  Span target, value;       // empty: there is none
  std::vector<Span> parts;  // of a value that is a tuple, list or dictionary
  std::optional<Span> jit;  // the True of jit_compile=True
  size_t end = 0;           // of the statement; what follows is a comment, or another one
  size_t indent = 0;
  bool alone = false;       // on its lines
  int given = 0;            // arguments with a name that a decorator has
  std::string name;         // what stands in the place of the old, or is called
  std::string before_loop;  // the first line of the loop that a lambda could stand before
  int loop_line = 0;
  size_t loop_indent = 0;

  std::string of(const Span& s) const { return text.substr(s.begin, s.end - s.begin); }
};

/// What kind of thing is kept, by its type: "torch", "tensorflow", "jax", "numpy", "exception", "number", "array" (the
/// holder itself) or "object".
struct Kept {
  std::string family;
  double elements = 0, dimensions = 0;  // of an array that grows itself `elements` is the size of one
  bool graph = false, traceback = false;
  std::vector<Kept> parts{};  // of tuples, lists and dictionaries that are alike
};

/// A container that grew when it was looked at.
struct Container {
  std::string type, item_type, holder;
  std::string of, held_in;  // types with their modules: its own, and that of a library's object it belongs to
  std::vector<std::string> chain;
  double length = 0, per_period = 0, bytes_per_period = 0;
  double step = 0;  // of what grows itself and is counted in bytes: every rise is a multiple of it; 0: not known
  bool exact = false;
  std::optional<double> bounded;
  double alike = 1;  // for how many containers it speaks
  std::optional<Kept> items;
  std::optional<Statement> statement;  // what adds to it
  Place place;
  bool still = true;    // the last look told of it too
  bool rising = true;   // and it grew then, not only at the look before
  bool full = false;    // it had reached its own limit before anybody looked: it does not grow
  int looks = 1;        // how many found it growing
  std::string rounds;   // the kind of rounds that the last of them followed
  bool is_user = true;  // its place is in the user's own code
  bool hook = false;    // its line is of a function in a torch module's table of hooks
  /// An array, text or buffer that grows itself: its length is in bytes.
  bool is_buffer() const { return item_type.empty() && per_period > 0 && std::abs(per_period - bytes_per_period) <= 1; }
};

/// Which step of a container's chain a holder of the walk is: 1 is the container itself, more is around it; 0: none.
/// Both tell the same steps, the walk with a word more ("item 'x' of dict").
size_t step_of(const Container& container, const Holder& holder);
/// The container itself; of a chain of objects, or of lists that are told as one, what they begin in.
bool is_same(const Container& container, const Holder& holder);

struct GrowingType {
  std::string type;
  double count = 0, per_period = 0;
};

/// Why tf.functions were traced under a line, how often each.
struct TraceReasons {
  double fresh = 0;    // a function that was not traced before
  double object = 0;   // another Python object given to it: a lambda, a bound method
  double literal = 0;  // another Python value
  double shape = 0;    // tensors of another shape or type
  double jit = 0;      // of all: XLA compiles it
  double all() const { return fresh + object + literal + shape; }
};

struct CountedLine {
  std::string what;
  Place place;
  double count = 0;
  std::optional<Place> loop{};  // the innermost line of the user's stack that stands in a loop
  TraceReasons why{};           // of traces
  std::optional<Statement> statement{};
};

struct FitArray {
  std::string dtype, type;
  double bytes = 0;
};

struct FitData {
  std::vector<FitArray> arrays;
  Place place;
};

struct Stage {  // of a tf.data pipeline
  std::string op;
  std::optional<double> buffer;
  Place place;
  int count = 1;
};

struct SeenAdvice {
  std::string what;
  Place place;
  double count = 0;
};

struct Notes {
  std::set<std::string> frameworks;
  std::string keras_backend;
  std::string folder;                 // where the program was started
  std::set<std::string> variants;     // of `bisect`: what one changed, or could
  std::string lead;                   // kind of the marks that the agent's rates and probes follow
  std::vector<Container> containers;  // those that still grow first, then by bytes
  std::vector<GrowingType> types;     // of the last look
  std::vector<CountedLine> lines;     // most counted first
  std::vector<FitData> data;
  std::vector<Stage> stages;
  std::vector<SeenAdvice> advice;
  std::map<std::string, double> gc_types;  // what probes collected
  std::optional<HeapWalk> walk;            // the last one
  std::vector<HeapWalk> earlier;           // those before it
  std::optional<NativeScan> scan;          // the last one
  std::string no_scan;                     // why none was made
  bool agent = false;                      // it ran

  const std::vector<Holder>& holders() const;  // of that walk; none without one
  bool has(std::string_view framework) const { return frameworks.contains(std::string(framework)); }
  const CountedLine* line(std::string_view what) const;  // the most counted, or null
  double count(std::string_view what) const;             // over all lines
  const Stage* stage(std::string_view op) const;         // or null
};

Notes read_notes(const Evidence& evidence);

/// A note as the agent writes them; nothing when it is no JSON object, or nested deeper than any of them: what prints a
/// value goes down with it.
std::optional<nlohmann::json> parse_note(const std::string& text);

std::string lower(std::string text);
bool contains(std::string_view text, std::string_view part);
/// The user's own code: not installed, not of the standard library, not made up by Python.
bool user_file(std::string_view file);

}  // namespace millpond::verdict
