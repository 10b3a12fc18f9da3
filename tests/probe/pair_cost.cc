// What a malloc and a free cost: pair_cost [millions]. Blocks of 64 to 127 bytes, 1,024 of them alive; prints the
// fastest of several rounds in ns for a pair. Run it with and without LD_PRELOAD; it asserts nothing, for the machine
// is shared.
//   pair_cost 5
//   MILLPOND_WATCH=/dev/shm/w LD_PRELOAD=libmillpond_probe.so pair_cost 5
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

namespace {
double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}
void* volatile window[1024];
}  // namespace

int main(int argc, char** argv) {
  const long pairs = (argc > 1 ? atol(argv[1]) : 2) * 1000000;
  double best = 1e9;
  for (int round = 0; round < 12; ++round) {
    uint32_t random = 12345;
    const double begin = now();
    for (long i = 0; i < pairs; ++i) {
      random = random * 1664525 + 1013904223;
      free(window[i & 1023]);
      window[i & 1023] = malloc(64 + (random >> 26));
    }
    const double each = (now() - begin) / double(pairs);
    if (each < best) best = each;
  }
  printf("%.2f ns for a pair\n", best);
}
