#include "millpond/history.h"

#include "base/format.h"
#include "millpond/error.h"

namespace millpond {
namespace {

template <class List, class Name>
[[noreturn]] void unknown(std::string_view name, const List& list, Name&& of) {
  std::string known;
  for (const auto& e : list) known += format("{}{}", known.empty() ? "" : ", ", of(e));
  throw Error(Code::kUsage, format("there is no \"{}\"", name))
      .hint(known.empty() ? "there is nothing" : "there are " + known);
}

}  // namespace

bool Logs::has(std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return true;
  return false;
}
double Logs::operator[](std::string_view name) const {
  for (const Entry& e : entries_)
    if (e.name == name) return e.value;
  unknown(name, entries_, [](const Entry& e) { return e.name; });
}

bool Results::has(std::string_view name) const {
  for (const auto& [n, v] : *this)
    if (n == name) return true;
  return false;
}
double Results::operator[](std::string_view name) const {
  for (const auto& [n, v] : *this)
    if (n == name) return v;
  unknown(name, *this, [](const auto& e) { return e.first; });
}

bool History::has(std::string_view name) const {
  for (const auto& [n, v] : history)
    if (n == name) return true;
  return false;
}
const std::vector<double>& History::operator[](std::string_view name) const {
  for (const auto& [n, v] : history)
    if (n == name) return v;
  unknown(name, history, [](const auto& e) { return e.first; });
}

}  // namespace millpond
