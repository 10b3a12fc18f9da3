// millpond: parse, call, print, exit code. 0 all went well, 1 it did not, 2 the command line is wrong, 130 stopped by
// Ctrl-C.
#include "cli/command.h"
#include "cli/self.h"

int main(int argc, char** argv) {
  millpond::cli::note_start();
  millpond::cli::fill_standard_streams();
  return millpond::cli::run(argc, argv);
}
