// Rounds of a program without Python: lines that it prints and that count them ("epoch 7: loss 0.12"). The agent does
// the same for Python (millpond_agent/lines.py). What is printed is looked at and forgotten; the run file is told the
// word that counts, of a fixed list, and how often.
#pragma once

namespace millpond::probe::native_prints {

void start();   // not in a process that has Python
void forget();  // in a child by fork

}  // namespace millpond::probe::native_prints
