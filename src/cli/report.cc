#include "cli/report.h"

#include <cstdio>
#include <cstring>
#include <span>

#include "base/format.h"
#include "cli/command.h"
#include "io/atomic_file.h"

namespace millpond::cli {

void JsonTarget::write(const Json& object) const {
  if (!wanted()) return;
  // Text of strangers (a path, a layer's name) may not be UTF-8: it is shown with marks in place of what cannot be
  // read.
  write_to(where, object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

void write_to(const std::string& where, std::string_view bytes) {
  if (where == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    std::fflush(stdout);
    return;
  }
  io::AtomicFile file(where);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

JsonTarget json_target(int argc, char** argv) {
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    if (std::strcmp(argv[i], "--json") == 0 && i + 1 < argc) return {argv[i + 1]};
    if (std::strncmp(argv[i], "--json=", 7) == 0) return {argv[i] + 7};
  }
  return {};
}

int report(const Error& error, const JsonTarget& target) {
  std::fprintf(stderr, "millpond: %s\n", error.what());
  if (target.wanted()) {
    Json details = Json::object();
    for (const auto& [key, value] : error.details()) details[key] = value;
    try {
      target.write({{"error",
                     {{"code", to_string(error.code())},
                      {"text", error.text()},
                      {"hint", error.hint()},
                      {"details", details}}}});
    } catch (const Error& second) {
      std::fprintf(stderr, "millpond: %s\n", second.what());
    }
  }
  return error.code() == Code::kUsage ? kUsageError : kFailed;
}

Json to_json(const MemoryPlan::Layer& l) {
  return {{"name", l.name},
          {"weights", l.weights.value},
          {"slots", l.slots.value},
          {"gradients", l.gradients.value},
          {"activations", l.activations.value},
          {"workspace", l.workspace.value},
          {"most", l.most.value}};
}

}  // namespace millpond::cli
