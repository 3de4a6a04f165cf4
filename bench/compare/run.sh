#!/usr/bin/env bash
# The same events through Almanac and through what people use today; see main.go. Arguments go to the program:
# bench/compare/run.sh -events 200000 -rounds 1
set -euo pipefail
cd "$(dirname "$0")"
root=$(cd ../.. && pwd)
version=$(sed -n 's/^  version: //p' builder.yaml)
otelcol=$root/.tools/otelcol-$version/otelcol
if [ ! -x "$otelcol" ]; then
  mkdir -p "$root/.tools"
  # Pinned in builder.yaml; from the Go module proxy. A minute or two, once.
  go run "go.opentelemetry.io/collector/cmd/builder@v$version" --config builder.yaml
fi
go build -o "$root/bin/compare" .
cd "$root"
exec bin/compare -almanac bin/almanac -otelcol "$otelcol" -write bench "$@"
