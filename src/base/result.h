// Result<T>: a value, or the Error that says why there is none; for outcomes a caller expects and handles.
#pragma once
#include <utility>
#include <variant>

#include "millpond/error.h"

namespace millpond {

template <class T>
class Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Error error) : held_(std::move(error)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& value() & { return or_throw(), std::get<0>(held_); }
  T&& value() && { return or_throw(), std::get<0>(std::move(held_)); }
  const Error& error() const { return std::get<1>(held_); }

 private:
  void or_throw() {
    if (held_.index() == 1) throw std::get<1>(held_);
  }
  std::variant<T, Error> held_;
};

}  // namespace millpond
