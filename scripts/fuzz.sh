#!/usr/bin/env bash
# fuzz.sh MINUTES [NAME ...]: all fuzzers of fuzz/ (or those named) under the address and undefined-behaviour sanitizers, MINUTES of processor time
# together in equal parts. Prints for each how many inputs ran, in how many seconds of the processor, and how much of the code they reached; so too when it is
# stopped before its time (SIGINT, SIGTERM). What an input of an earlier run reached is kept in build-fuzz/corpus; what a fuzzer found is in build-fuzz/found,
# and ends this with 1.
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
declare -A spent runs reached
failed=0 fuzzer=

table() {
  printf '%-16s %12s %9s %10s %9s %9s %9s\n' fuzzer executions cpu-s "a second" edges features corpus
  for name in "${names[@]}"; do
    awk -v name="$name" -v runs="${runs[$name]:-0}" -v spent="${spent[$name]:-0}" -v reached="${reached[$name]:-0 0 0}" \
      'BEGIN { split(reached, r); printf "%-16s %12d %9.0f %10.0f %9d %9d %9s\n", name, runs, spent, spent > 0 ? runs / spent : 0, r[1], r[2], r[3] }'
  done
  awk -v s="${spent[*]:-0}" 'BEGIN { n = split(s, all); for (i = 1; i <= n; ++i) sum += all[i]; printf "%.1f minutes of processor time\n", sum / 60 }'
}
trap 'trap "" INT TERM; [ -z "$fuzzer" ] || kill $fuzzer 2> /dev/null; table; exit 130' INT TERM

# Seconds of the processor that a process that has been waited for took: what all children took so far, less what they had taken before.
children_took() { awk '{ print ($16 + $17) / hz }' hz="$(getconf CLK_TCK)" /proc/$$/stat; }

# fuzz NAME SECONDS: by the clock the fuzzer may run so long; on a busy machine it has less of the processor then.
fuzz() {
  local name=$1 log=$folder/$1.log before
  before=$(children_took)
  mkdir -p "$folder/corpus/$name"
  # Nearly every input ends in an exception, and unwinding through the stacks of detect_stack_use_after_return takes minutes.
  ASAN_OPTIONS=strict_string_checks=1:detect_stack_use_after_return=0 "$folder/bin/fuzz_$name" -max_total_time="$2" -timeout=30 -rss_limit_mb=2560 \
    -max_len=65536 -len_control=20 -print_final_stats=1 -artifact_prefix="$folder/found/$name-" "$folder/corpus/$name" "fuzz/seeds/$name" > "$log" 2>&1 &
  fuzzer=$!
  if ! wait $fuzzer; then
    failed=1
    echo "fuzz: $name found something: $(grep -o "$folder/found/[^ ]*" "$log" | tail -1); its words:" >&2
    grep -m 5 -E 'ERROR|SUMMARY|runtime error|timeout|out-of-memory' "$log" >&2 || tail -5 "$log" >&2
  fi
  fuzzer=
  spent[$name]=$(awk -v a="${spent[$name]:-0}" -v b="$before" -v c="$(children_took)" 'BEGIN { print a + c - b }')
  read -r ran "reached[$name]" < <(awk '
    /stat::number_of_executed_units/ { runs = $2 }
    /cov: / { for (i = 1; i <= NF; ++i) { if ($i == "cov:") edges = $(i + 1); if ($i == "ft:") features = $(i + 1); if ($i == "corp:") corpus = $(i + 1) }; if ($1 ~ /^#/) last = substr($1, 2) }
    END { print runs == "" ? last + 0 : runs, edges + 0, features + 0, corpus == "" ? 0 : corpus }' "$log")
  runs[$name]=$((${runs[$name]:-0} + ran))
}

# In turns of at most a minute, so that all have had their share whenever it is stopped.
left() { awk -v s="$seconds" -v t="${spent[$1]:-0}" 'BEGIN { l = s - t; print l < 1 ? 0 : int(l < 60 ? l : 60) }'; }
more=1
while [ $more = 1 ] && [ $failed = 0 ]; do
  more=0
  for name in "${names[@]}"; do
    turn=$(left "$name")
    [ "$turn" -gt 0 ] || continue
    fuzz "$name" "$turn"
    more=1
  done
done
table
exit $failed
