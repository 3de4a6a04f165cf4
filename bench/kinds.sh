#!/bin/sh
# Points of metrics and records of an audit trail through the whole pipeline: from `almanac send` on until SQL counts
# them. ALMANAC is the program, by default the one on the path. The argument is how many of each, 200,000 by default.
set -eu
n=${1:-200000}
almanac=${ALMANAC:-almanac}
dir=$(mktemp -d)
"$almanac" up --data "$dir/data" --ports auto >"$dir/up.log" 2>&1 &
up=$!
trap 'kill "$up" 2>/dev/null; wait "$up" 2>/dev/null || :; rm -rf "$dir"' EXIT
awk -v n="$n" 'BEGIN { for (i = 0; i < n; i++) { s = i % 1000; t = int(i / 1000) * 10
  printf "{\"ts\":\"2026-11-01T%02d:%02d:%02dZ\",\"type\":\"load\",\"value\":%.3f,\"unit\":\"%%\",\"points\":\"gauge\",\"host\":\"h-%d\",\"region\":\"r-%d\"}\n", int(t / 3600) % 24, int(t / 60) % 60, t % 60, (i * 7919 % 10000) / 100, s, s % 7 } }' >"$dir/points"
awk -v n="$n" 'BEGIN { for (i = 0; i < n; i++)
  printf "{\"ts\":\"2026-11-01T%02d:%02d:%02dZ\",\"type\":\"change\",\"state\":\"committed\",\"request_id\":\"r-%d\",\"scope\":\"s-%d\",\"service\":\"billing\",\"method\":\"Update\",\"resource\":\"doc-%d\",\"resource_type\":\"document\",\"user_id\":\"u-%d\",\"before\":{\"n\":%d},\"after\":{\"n\":%d}}\n", int(i / 3600) % 24, int(i / 60) % 60, i % 60, i, i % 100, i % 5000, i % 300, i, i + 1 }' >"$dir/records"
for _ in $(seq 240); do ! grep -q ready "$dir/up.log" || break; sleep 0.5; done
for kind in metric:points audit:records; do
  topic=bench_${kind%%:*}
  ALMANAC_DATA=$dir/data "$almanac" topics apply "$topic" --kind "${kind%%:*}" >/dev/null 2>&1
  begin=$(date +%s%N)
  ALMANAC_DATA=$dir/data "$almanac" send "$topic" --format ndjson <"$dir/${kind##*:}" 2>/dev/null
  sent=$(date +%s%N)
  rows=$(ALMANAC_DATA=$dir/data "$almanac" sql "SELECT count() AS n FROM $topic" -o ndjson 2>/dev/null)
  end=$(date +%s%N)
  echo "$rows of $topic, load $(cut -d' ' -f1 /proc/loadavg): accepted $((n * 1000000000 / (sent - begin)))/s, in SQL $((n * 1000000000 / (end - begin)))/s"
done
