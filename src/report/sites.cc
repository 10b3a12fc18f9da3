#include "report/sites.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/format.h"
#include "report/text.h"

namespace millpond::report {
namespace {

using verdict::Evidence;
using verdict::Frame;
using Json = nlohmann::ordered_json;

std::string per_cent(double share) { return format("{:.1f} %", 100 * share); }

std::string line_of(const std::string& file, int line, size_t most) {
  return line > 0 ? format("{}:{}", short_path(file, most), line) : short_path(file, most);
}

/// The frames of a stack that a person wants, outermost first.
std::vector<const Frame*> condensed(const verdict::Site& site) {
  std::vector<const Frame*> named, kept;
  for (const Frame& f : site.frames)
    if (f.user || has_name(f)) named.push_back(&f);
  if (named.empty() && !site.frames.empty()) named.push_back(&site.frames.front());
  bool library = false;
  for (auto f = named.rbegin(); f != named.rend(); ++f) {
    if ((*f)->user || !library || f + 1 == named.rend()) kept.push_back(*f);
    library = !(*f)->user;
  }
  return kept;
}

struct FrameLess {
  bool operator()(const Frame* a, const Frame* b) const {
    return std::tie(a->file, a->line, a->function) < std::tie(b->file, b->line, b->function);
  }
};

struct Node {
  const Frame* frame = nullptr;
  Bytes bytes;
  std::map<const Frame*, std::unique_ptr<Node>, FrameLess> below;
  std::vector<const Node*> by_size() const {
    std::vector<const Node*> list;
    for (const auto& [frame_of, node] : below) list.push_back(node.get());
    std::ranges::stable_sort(list, std::ranges::greater{}, &Node::bytes);
    return list;
  }
};

Node tree_of(const Evidence& e, const Moment& moment) {
  Node root;
  for (const verdict::SiteState& s : moment.mark->sites) {
    if (s.site < 0 || size_t(s.site) >= e.sites.size()) continue;
    Node* at = &root;
    at->bytes += s.bytes;
    for (const Frame* f : condensed(e.sites[size_t(s.site)])) {
      std::unique_ptr<Node>& next = at->below[f];
      if (!next) next = std::make_unique<Node>(Node{f, {}, {}});
      at = next.get();
      at->bytes += s.bytes;
    }
  }
  return root;
}

size_t nodes_of(const Node& node, double least) {
  size_t n = 0;
  for (const auto& [frame, below] : node.below)
    if (double(below->bytes.value) >= least) n += 1 + nodes_of(*below, least);
  return n;
}

/// The least bytes a node must have so that at most `limit` are shown.
double least_bytes(const Node& root, int limit) {
  double least = std::max(1.0, 0.005 * double(root.bytes.value));
  while (nodes_of(root, least) > size_t(limit) && least < double(root.bytes.value)) least *= 1.3;
  return least;
}

std::string frame_text(const Frame& f, size_t most) {
  const std::string function = f.function.empty() ? "?" : short_function(f.function, 48);
  return f.file.empty() ? function : format("{}  {}", function, line_of(f.file, f.line, most));
}

void draw(const Node& node, double least, double all, int depth, const TextStyle& style, std::string& out) {
  for (const Node* below : node.by_size()) {
    if (double(below->bytes.value) < least) break;
    const std::string text =
        format("{:>9} {:>7}  {}{}", to_string(below->bytes), per_cent(double(below->bytes.value) / all),
               std::string(size_t(std::min(depth, 30)) * 2, ' '), frame_text(*below->frame, 48));
    out += "  " + (columns(text) > size_t(style.width) ? shown(text, size_t(style.width)) : text) + "\n";
    draw(*below, least, all, depth + 1, style, out);
  }
}

Json tree_node(const Node& node, double least) {
  Json list = Json::array();
  for (const Node* below : node.by_size()) {
    if (double(below->bytes.value) < least) break;
    list.push_back({{"function", below->frame->function},
                    {"file", below->frame->file},
                    {"line", below->frame->line},
                    {"user", below->frame->user},
                    {"bytes", below->bytes.value},
                    {"calls", tree_node(*below, least)}});
  }
  return list;
}

}  // namespace

std::string table_text(const Evidence& e, const Moment& moment, const TextStyle& style, int limit) {
  const Places places = places_at(e, *moment.mark);
  std::string out = format("Alive {}: {} in sampled blocks\n", moment.text, places.sum);
  const bool growth = !places.unit.empty();
  Table table(growth ? std::vector<std::string>{"bytes", "share", "blocks", "each " + places.unit, "<line", "<function"}
                     : std::vector<std::string>{"bytes", "share", "blocks", "<line", "<function"});
  Bytes rest;
  size_t left = 0;
  for (const PlaceBytes& row : places.rows) {
    if (row.bytes.value <= 0) break;
    if (limit-- <= 0) {
      rest += row.bytes, ++left;
      continue;
    }
    std::vector<std::string> cells{with_error(row.bytes, row.error), per_cent(row.share), format("{:.0f}", row.blocks)};
    if (growth) cells.push_back(std::fabs(row.per_period.value_or(0)) < 1 ? "-" : signed_bytes(*row.per_period));
    cells.push_back(line_of(row.place.file, row.place.line, 32));
    cells.push_back(short_function(row.place.function, 40) +
                    (row.through.empty() ? "" : format(" > {}", short_function(row.through, 40))));
    table.add(std::move(cells));
  }
  out += table.text(style.width);
  if (left) out += format("  {} more places hold {} (--rows shows more)\n", left, rest);
  return out;
}

Json table_json(const Evidence& e, const Moment& moment, int limit) {
  const Places places = places_at(e, *moment.mark);
  Json rows = Json::array();
  for (const PlaceBytes& row : places.rows) {
    if (row.bytes.value <= 0 || limit-- <= 0) break;
    rows.push_back({{"file", row.place.file},
                    {"line", row.place.line},
                    {"function", row.place.function},
                    {"user", row.user},
                    {"through", row.through},
                    {"bytes", row.bytes.value},
                    {"bytes_error", row.error},
                    {"blocks", row.blocks},
                    {"share", row.share},
                    {"bytes_per_period", row.per_period ? Json(*row.per_period) : Json()}});
  }
  return {{"t", moment.mark->t},
          {"kind", moment.mark->kind},
          {"index", moment.mark->index},
          {"bytes", places.sum.value},
          {"period", places.unit.empty() ? Json() : Json(places.unit)},
          {"places", rows}};
}

std::string tree_text(const Evidence& e, const Moment& moment, const TextStyle& style, int limit) {
  const Node root = tree_of(e, moment);
  const double least = least_bytes(root, limit);
  std::string out = format("Held by calls {}: {} in sampled blocks; calls that hold less than {} are left out\n",
                           moment.text, root.bytes, to_bytes(least));
  draw(root, least, std::max(1.0, double(root.bytes.value)), 0, style, out);
  return out;
}

Json tree_json(const Evidence& e, const Moment& moment, int limit) {
  const Node root = tree_of(e, moment);
  return {{"t", moment.mark->t},
          {"kind", moment.mark->kind},
          {"index", moment.mark->index},
          {"bytes", root.bytes.value},
          {"calls", tree_node(root, least_bytes(root, limit))}};
}

}  // namespace millpond::report
