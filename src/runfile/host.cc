#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

#include "base/format.h"
#include "runfile/writer.h"

namespace millpond::runfile {

Meta host_facts() {
  Meta facts;
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t at = line.find(": ");
    if (at != line.npos) facts["host.cpu"] = line.substr(at + 2);
    break;
  }
  facts["host.cores"] = std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
  facts["host.page_bytes"] = std::to_string(sysconf(_SC_PAGESIZE));
  facts["host.memory_bytes"] = std::to_string(int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE));
  utsname name{};
  if (uname(&name) == 0) facts["host.kernel"] = format("{} {} {}", name.sysname, name.release, name.machine);
  return facts;
}

std::string time_now() {
  char text[32];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
  return text;
}

}  // namespace millpond::runfile
