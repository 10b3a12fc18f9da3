#include "watch/patient.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "millpond/error.h"
#include "watch/tree.h"

using namespace millpond;
using namespace millpond::watch;

namespace {

std::string refusal(const std::string& program) {
  try {
    find_program(program);
  } catch (const Error& e) {
    CHECK(e.code() == Code::kUsage);
    return e.what();
  }
  return "not refused";
}

Patient run(const std::string& script) {
  Start s;
  s.command = {"sh", "-c", script};
  s.more = {{"MILLPOND_TEST_WORD", "pond"}};
  return Patient::start(s, find_program("sh"));
}

Ending end_of(Patient p) {
  while (!p.wait(0.05)) {
  }
  return p.ending();
}

}  // namespace

TEST_CASE("find_program: what is missing, not executable or a bare Python file is refused with what to do") {
  CHECK(refusal("no-such-program-here") ==
        "watch: there is no program no-such-program-here; check its name, or give its path");
  char name[] = "/tmp/millpond_patient_XXXXXX.py";
  const int fd = mkstemps(name, 3);
  REQUIRE(fd >= 0);
  close(fd);
  CHECK(refusal(name) ==
        std::string("watch: ") + name + " is not executable; say `millpond watch -- python " + name + "`");
  unlink(name);
  CHECK(refusal("/no/such/file").find("/no/such/file cannot be started: No such file") != std::string::npos);
}

TEST_CASE("find_program: a program is found on the PATH, and what loads nothing is said") {
  CHECK(find_program("sh").path.ends_with("/sh"));
  CHECK(find_program("sh").blind.empty());
  // the smallest static program: an ELF header without segments
  char name[] = "/tmp/millpond_static_XXXXXX";
  const int fd = mkstemp(name);
  unsigned char head[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
  head[54] = 56;
  REQUIRE(write(fd, head, sizeof head) == sizeof head);
  fchmod(fd, 0700);
  close(fd);
  CHECK(find_program(name).blind.find("linked statically") != std::string::npos);
  unlink(name);
}

TEST_CASE("Patient: exit codes and signals are the program's own, as a shell says them") {
  CHECK(end_of(run("exit 7")).exit_code == 7);
  CHECK_FALSE(end_of(run("exit 0")).signal.has_value());
  const Ending killed = end_of(run("kill -9 $$"));
  CHECK(killed.exit_code == 137);
  CHECK(*killed.signal == SIGKILL);
  CHECK(end_of(run("test \"$MILLPOND_TEST_WORD\" = pond")).exit_code == 0);
}

TEST_CASE("Patient: a signal for the collector reaches the program") {
  Patient p = run("trap 'exit 42' TERM; while :; do sleep 0.02; done");
  CHECK_FALSE(p.wait(0.3));
  kill(getpid(), SIGTERM);
  for (int i = 0; i < 200 && !p.wait(0.05); ++i) {
  }
  CHECK(p.ending().exit_code == 42);
}

TEST_CASE("Patient: a process that is gone cannot be attached to") {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  Patient p = run("exit 0");
  while (!p.wait(0.05)) {
  }
  CHECK_THROWS_AS(Patient::attach(p.pid()), Error);
}

TEST_CASE("process_tree: children and theirs, and their memory in sum") {
  Patient p = run("sleep 5 & sleep 5 & wait");
  std::vector<Pid> tree;
  for (int i = 0; i < 100 && tree.size() < 3; ++i) {
    p.wait(0.05);
    tree = process_tree(p.pid());
  }
  REQUIRE(tree.size() == 3);
  const TreeMemory m = memory_of(tree, true);
  CHECK(m.processes == 3);
  CHECK(m.rss.value > 0);
  CHECK(process_name(tree[1]) == "sleep");
  for (const Pid pid : tree) kill(pid.value, SIGKILL);
  while (!p.wait(0.05)) {
  }
  for (int i = 0; i < 100 && memory_of(tree, true).processes > 0; ++i) usleep(20000);  // the system takes its time
  CHECK(memory_of(tree, true).processes == 0);
}
