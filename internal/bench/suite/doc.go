// Command suite measures what Almanac's developers watch: every figure that has a bar, how costs grow, and what
// steady loads cost. `make bench`, `bench-check`, `bench-record`, `bench-growth` and `bench-load` run it; users have
// `almanac bench`. It wants a machine that does nothing else. Exit code 1: a figure missed its bar, fell, or could
// not be measured; 2: wrong usage.
package main
