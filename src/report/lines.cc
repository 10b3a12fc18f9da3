#include "report/lines.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "report/moment.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using Json = nlohmann::ordered_json;

struct Lines {
  std::vector<PlaceBytes> rows;
  std::string unit, when;
};

Lines lines_of(const Evidence& e, int limit) {
  // A program that ended by itself has freed much at its end: the last period tells more than that.
  std::optional<Moment> last;
  for (const verdict::Mark& m : e.marks)
    if (m.period && !m.sites.empty()) last = Moment{&m, ""};
  if (!last) last = end_moment(e);
  if (!last) return {};
  Places places = places_at(e, *last->mark);
  // What is freed as the program ends says nothing of its training: freed is what was by then.
  for (PlaceBytes& row : places.rows) row.freed = Bytes{std::max<int64_t>(0, row.allocated.value - row.bytes.value)};
  Lines lines{{}, places.unit, format("{:.1f} s", last->mark->t)};
  double allocated = 0, held = 0;
  for (const PlaceBytes& row : places.rows) allocated += double(row.allocated.value), held += double(row.bytes.value);
  const auto weight = [&](const PlaceBytes& row) {
    return std::max(allocated > 0 ? double(row.allocated.value) / allocated : 0,
                    held > 0 ? double(row.bytes.value) / held : 0);
  };
  std::erase_if(places.rows, [&](const PlaceBytes& row) { return !row.user || weight(row) < 0.01; });
  std::ranges::stable_sort(places.rows,
                           [&](const PlaceBytes& a, const PlaceBytes& b) { return weight(a) > weight(b); });
  if (places.rows.size() > size_t(std::max(0, limit))) places.rows.resize(size_t(std::max(0, limit)));
  std::ranges::stable_sort(places.rows, [](const PlaceBytes& a, const PlaceBytes& b) {
    return std::tie(a.place.file, a.place.line) < std::tie(b.place.file, b.place.line);
  });
  lines.rows = std::move(places.rows);
  return lines;
}

}  // namespace

std::string lines_text(const Evidence& e, const SourceLine& source, const TextStyle& style, int limit) {
  const Lines lines = lines_of(e, limit);
  if (lines.rows.empty()) return "Lines: no line of the user's own was seen to allocate much\n";
  std::string out;
  for (size_t i = 0; i < lines.rows.size();) {
    const std::string& file = lines.rows[i].place.file;
    out += format("{}{} (freed and held: after {})\n", out.empty() ? "" : "\n",
                  short_path(file, size_t(std::max(40, style.width - 30))), lines.when);
    std::vector<std::string> head{"line", "allocated", "freed", "held"};
    if (!lines.unit.empty()) head.push_back("each " + lines.unit);
    head.push_back("<source");
    Table table(head);
    for (; i < lines.rows.size() && lines.rows[i].place.file == file; ++i) {
      const PlaceBytes& row = lines.rows[i];
      std::vector<std::string> cells{std::to_string(row.place.line), to_string(row.allocated), to_string(row.freed),
                                     with_error(row.bytes, row.error)};
      if (!lines.unit.empty())
        cells.push_back(std::fabs(row.per_period.value_or(0)) < 1 ? "-" : signed_bytes(*row.per_period));
      const std::string text = source ? source(file, row.place.line) : "";
      cells.push_back(text.empty() ? format("(in {})", shown(row.place.function, 60)) : shown(text, 120));
      table.add(std::move(cells));
    }
    out += table.text(style.width);
  }
  return out;
}

Json lines_json(const Evidence& e, const SourceLine& source, int limit) {
  Json list = Json::array();
  const Lines lines = lines_of(e, limit);
  for (const PlaceBytes& row : lines.rows)
    list.push_back({{"file", row.place.file},
                    {"line", row.place.line},
                    {"function", row.place.function},
                    {"allocated", row.allocated.value},
                    {"freed", row.freed.value},
                    {"held", row.bytes.value},
                    {"held_error", row.error},
                    {"bytes_per_period", row.per_period ? Json(*row.per_period) : Json()},
                    {"source", source ? source(row.place.file, row.place.line) : ""}});
  return list;
}

}  // namespace millpond::report
