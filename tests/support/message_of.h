// What an Error that was thrown says; nothing where none was.
#pragma once
#include <string>

#include "millpond/error.h"

namespace millpond {

inline std::string message_of(auto&& f) {
  try {
    (void)f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

}  // namespace millpond
