#!/usr/bin/env bash
# fuzz.sh MINUTES [NAME ...]: all fuzzers of fuzz/ (or those named) under the address and undefined-behaviour sanitizers, MINUTES of processor time
# together in equal parts. Prints for each how many inputs ran and how much of the code they reached. What an input of an earlier run reached is kept in
# build-fuzz/corpus; what a fuzzer found is in build-fuzz/found, and ends this with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:?minutes of processor time}
shift
folder=build-fuzz
names=("$@")
if [ ${#names[@]} = 0 ]; then mapfile -t names < <(sed -n 's/^mp_fuzz(\([a-z0-9_]*\) .*/\1/p' fuzz/CMakeLists.txt); fi
command -v clang++ > /dev/null || { echo "fuzz: clang++ is needed (libFuzzer): apt-get install clang" >&2; exit 2; }
[ -f $folder/build.ninja ] || cmake -S . -B $folder -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ \
  -DMILLPOND_SANITIZE=address -DMILLPOND_FUZZ=ON > $folder.log 2>&1 || { cat $folder.log >&2; exit 1; }
rm -f $folder.log
cmake --build $folder -j "${JOBS:-$(nproc)}" --target "${names[@]/#/fuzz_}"

seconds=$(awk -v m="$minutes" -v n=${#names[@]} 'BEGIN { s = int(60 * m / n); print s < 1 ? 1 : s }')
mkdir -p $folder/found
failed=0
printf '%-16s %12s %10s %9s %9s %9s\n' fuzzer executions "a second" edges features corpus
for name in "${names[@]}"; do
  corpus=$folder/corpus/$name
  mkdir -p "$corpus"
  log=$folder/$name.log
  # Nearly every input ends in an exception, and unwinding through the stacks of detect_stack_use_after_return takes minutes.
  if ! ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=0 "$folder/bin/fuzz_$name" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=2560 \
      -max_len=65536 -len_control=20 -print_final_stats=1 -artifact_prefix="$folder/found/$name-" "$corpus" "fuzz/seeds/$name" > "$log" 2>&1; then
    failed=1
    echo "fuzz: $name found something: $(grep -o "$folder/found/[^ ]*" "$log" | tail -1); its words:" >&2
    grep -m 5 -E 'ERROR|SUMMARY|runtime error|timeout|out-of-memory' "$log" >&2 || tail -5 "$log" >&2
  fi
  awk -v name="$name" -v seconds="$seconds" '
    /stat::number_of_executed_units/ { runs = $2 }
    /cov: / { for (i = 1; i <= NF; ++i) { if ($i == "cov:") edges = $(i + 1); if ($i == "ft:") features = $(i + 1); if ($i == "corp:") corpus = $(i + 1) }; if ($1 ~ /^#/) last = substr($1, 2) }
    END { if (runs == "") runs = last; printf "%-16s %12d %10.0f %9d %9d %9s\n", name, runs, runs / seconds, edges, features, corpus }' "$log"
done
exit $failed
