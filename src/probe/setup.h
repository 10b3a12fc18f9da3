// The steps by which the probe begins in a process, preloaded or at run time (enter.h).
#pragma once

namespace millpond::probe::setup {

extern bool follow;  // forked children get a file of their own

void look_around();    // what the allocator, the loader and the interpreter offer; not for hooks
void begin();          // the tables of a new file, and what sees them; the file is open to all then
void forget();         // all that was known of blocks, stacks and modules: what follows is another file
void hear_of_forks();  // from now on; once is enough

}  // namespace millpond::probe::setup
