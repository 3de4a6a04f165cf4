package query_test

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/query"
)

// Times are given as a date, as RFC 3339, or by how long ago they were.
func ExampleParseTime() {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"2026-11-01", "2026-11-01T08:30:00Z", "-15m", "-7d", "now"} {
		t, err := query.ParseTime(text, now)
		fmt.Println(t.Format(time.RFC3339), err)
	}
	// Output:
	// 2026-11-01T00:00:00Z <nil>
	// 2026-11-01T08:30:00Z <nil>
	// 2026-11-26T11:45:00Z <nil>
	// 2026-11-19T12:00:00Z <nil>
	// 2026-11-26T12:00:00Z <nil>
}

// A list of names may have names with commas, in brackets.
func ExampleSplitNames() {
	for _, name := range query.SplitNames("ts,attributes['a,b'],message") {
		fmt.Println(name)
	}
	// Output:
	// ts
	// attributes['a,b']
	// message
}
