// Variable: memory that outlives a step: a weight, an optimiser's slot, a counter. Programs read and update it in
// place, so whoever looks between two steps sees the current value. It lies where the backend that was named when it
// was placed has its memory; the host comes to its values through the functions here.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>

#include "backend/backend.h"
#include "graph/graph.h"
#include "millpond/tensor.h"

namespace millpond::runtime {

class Variable {
 public:
  /// Who has handed out the values as they are now, and keeps them for those who have them when they change
  /// (eager/live.h).
  class Reader {
   public:
    virtual ~Reader() = default;
    virtual void before_change() = 0;
  };

  Variable(std::string account, graph::TensorType type) : account_(std::move(account)), type_(std::move(type)) {}
  Variable(const Variable&) = delete;  // programs bind its address

  /// "weights/dense_1/kernel", "slots/adam.m/dense_1/kernel"
  const std::string& account() const { return account_; }
  void rename(std::string account) { account_ = std::move(account); }
  const graph::TensorType& type() const { return type_; }
  bool placed() const { return bool(memory_); }
  /// Exactly its bytes. The rest is for placed variables only.
  const backend::Memory& memory() const { return memory_; }

  /// The live values, where the host sees them; otherwise throws Error(kUnsupported).
  Tensor view() const;
  /// The values for reading: the live ones where the host sees them, otherwise a copy of now, charged to `account`.
  Tensor seen(std::string account) const;
  /// A copy of its own.
  Tensor copy(std::string account) const;
  /// `values` has its type and size; the shape may differ.
  void write(const Tensor& values);
  /// f(Tensor&) writes all values: in place where the host sees them, otherwise in zeros of its own, which are then
  /// written here.
  template <class F>
  void overwrite(F&& f) {
    changing();
    if (memory_.host()) {
      Tensor live = view();
      return f(live);
    }
    Tensor values(type_.dtype, type_.shape, account_);
    f(values);
    write(values);
  }
  void zero() { changing(), memory_.zero(); }
  /// Of a scalar. T is its type.
  template <class T>
  T get() const {
    T value;
    return memory_.read(&value), value;
  }
  template <class T>
  void put(T value) {
    changing();
    memory_.write(&value);
  }

  /// How often values were handed out so far, of all variables: whoever changes some by a program, again and again, calls
  /// changing() when this has moved.
  static uint64_t reads() { return reads_.load(std::memory_order_relaxed); }
  static void count_read() { reads_.fetch_add(1, std::memory_order_relaxed); }

  Reader* reader() const { return reader_.get(); }
  void set_reader(std::unique_ptr<Reader> r) { reader_ = std::move(r); }
  /// For those who change the values by a program.
  void changing() const {
    if (reader_) reader_->before_change();
  }

 private:
  friend void place(std::span<Variable* const> variables, std::string account, const backend::Backend& backend);
  std::string account_;
  graph::TensorType type_;
  static inline std::atomic<uint64_t> reads_{0};
  std::unique_ptr<Reader> reader_;
  backend::Memory memory_;  // shares its keeper with the variables placed together with this one
};

/// Gives every variable that has no memory yet its place, all in one piece of the backend's memory in this order,
/// 64-byte aligned, zeros. It goes back with the last of them. It is charged to `account` ("weights", "slots").
void place(std::span<Variable* const> variables, std::string account,
           const backend::Backend& backend = backend::default_backend());
/// What place() would take for all of them.
Bytes bytes_to_place(std::span<const Variable* const> variables);

}  // namespace millpond::runtime
