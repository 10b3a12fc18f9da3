#include <nlohmann/json.hpp>

#include "verdict/account.h"
#include "verdict/sentence.h"
#include "verdict/threads.h"
#include "verdict/verdict.h"

namespace millpond::verdict {
namespace {

using json = nlohmann::json;

json to_json(const std::optional<Place>& p) {
  if (!p) return nullptr;
  return {{"file", p->file}, {"line", p->line}, {"function", p->function}, {"snippet", p->snippet}};
}

json to_json(const Interval& i) { return json::array({i.low, i.high}); }

json to_json(const std::optional<Forecast>& f) {
  if (!f) return nullptr;
  json j = {{"limit", f->limit},          {"limit_bytes", f->bytes.value},
            {"seconds", f->seconds},      {"seconds_range", to_json(f->seconds_range)},
            {"unit", to_string(f->unit)}, {"unit_index", nullptr},
            {"units_left", nullptr}};
  if (f->unit_index) j["unit_index"] = *f->unit_index, j["units_left"] = f->units_left;
  return j;
}

json to_json(const std::optional<Change>& c) {
  if (!c) return nullptr;
  if (!c->variable.empty()) return {{"kind", "environment"}, {"variable", c->variable}, {"value", c->value}};
  json edits = json::array();
  for (const Edit& e : c->edits) edits.push_back({{"line", e.line}, {"old", e.before}, {"new", e.after}});
  return {{"kind", "edit"}, {"file", c->file}, {"digest", c->digest}, {"edits", std::move(edits)}};
}

json to_json(const Finding& f) {
  json links = json::array();
  for (const std::string& thread : f.threads) links.push_back(thread_address(thread));
  return {{"verdict", to_string(f.kind)},
          {"cause", f.cause},
          {"title", f.title},
          {"unit", to_string(f.unit)},
          {"each", each(f)},
          {"bytes_per_unit", f.bytes_per_unit},
          {"bytes_per_unit_range", to_json(f.bytes_per_unit_range)},
          {"units_seen", f.units_seen},
          {"total_bytes", f.total.value},
          {"confidence", nullptr},  // not told until it is calibrated; the key stays for those who read it
          {"blame", to_json(f.blame)},
          {"born_at", to_json(f.born_at)},
          {"holder", f.holder},
          {"evidence", f.evidence},
          {"fix", f.fix},
          {"fix_change", to_json(f.fix_change)},
          {"threads", f.threads},
          {"thread_links", std::move(links)},
          {"forecast", to_json(f.forecast)},
          {"forecast_words", forecast_words(f)},
          {"sets_verdict", f.sets_verdict},
          {"process", f.process ? json(f.process) : json()},
          {"processes", f.processes},
          {"space", f.space},
          {"account", f.account.empty() ? json() : json(f.account)},
          {"born", f.born ? to_json(*f.born) : json()},
          {"chain", f.chain}};
}

json to_json(const Account& a) {
  json parts = json::array();
  for (const AccountPart& p : a.parts)
    parts.push_back({{"kind", to_string(p.kind)},
                     {"name", p.name},
                     {"chain", p.chain},
                     {"born", to_json(p.born)},
                     {"bytes", p.bytes},
                     {"error", p.error()},
                     {"range", to_json(p.range)}});
  return {{"process", a.process ? json(a.process) : json()},
          {"tree", a.tree},
          {"space", a.space},
          {"level", a.level},
          {"growth", a.growth},
          {"error", a.error()},
          {"range", to_json(a.range)},
          {"rounds", a.rounds},
          {"unit", to_string(a.unit)},
          {"from", a.from},
          {"to", a.to},
          {"parts", std::move(parts)}};
}

}  // namespace

json to_json(const Verdict& v) {
  json findings = json::array(), advice = json::array(), accounts = json::array();
  for (const Finding& f : v.findings) findings.push_back(to_json(f));
  for (const Advice& a : v.advice) advice.push_back({{"what", a.what}, {"text", a.text}, {"place", to_json(a.place)}});
  if (v.accounts)
    for (const Account& a : *v.accounts) accounts.push_back(to_json(a));
  json j = {{"verdict", to_string(v.kind)},
            {"sentence", v.sentence},
            {"findings", std::move(findings)},
            {"advice", std::move(advice)},
            {"account", v.account ? to_json(*v.account) : json()},
            {"accounts", std::move(accounts)}};
  if (v.too_short) j["too_short"] = true;
  if (!v.would_settle.empty()) j["would_settle"] = v.would_settle;
  return j;
}

}  // namespace millpond::verdict
