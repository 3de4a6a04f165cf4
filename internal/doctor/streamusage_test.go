package doctor

import (
	"strings"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

// What doctor says of a stream follows from how full it is, and so does what it
// says of producers.
func TestStreamUsage(t *testing.T) {
	t.Parallel()
	const limit = 1 << 30
	for _, c := range []struct {
		events, shards      uint64
		clickhouse          bool
		ofEvents, ofShards  string
		producers, contains string
	}{
		{0, 0, true, OK, OK, OK, "accepted"},
		{limit / 2, limit * 9 / 10, true, OK, Warn, Warn, "EVENTS is full (50 %, SHARDS 90 %)"},
		{limit * 9 / 10, limit - 1000, true, Warn, Fail, Warn, "90 %"},
		{limit, limit, true, Fail, Fail, Fail, "EVENTS is full, nothing is accepted"},
		{0, 0, false, OK, OK, Warn, "drop_newest"},
	} {
		made := &check{usage: map[string]streamUsage{schemas.StreamEvents: {used: c.events, limit: limit}, schemas.StreamShards: {used: c.shards, limit: limit}}}
		if got, do := made.usage[schemas.StreamEvents].result(schemas.StreamEvents); got != c.ofEvents || (do == "") != (got == OK) {
			t.Errorf("%+v: EVENTS %s, do %q", c, got, do)
		}
		if got, do := made.usage[schemas.StreamShards].result(schemas.StreamShards); got != c.ofShards || (do == "") != (got == OK) {
			t.Errorf("%+v: SHARDS %s, do %q", c, got, do)
		}
		made.producers(c.clickhouse)
		if f := made.found[0]; f.Status != c.producers || !strings.Contains(f.Found, c.contains) {
			t.Errorf("%+v: producers %+v", c, f)
		}
	}
	if r := (streamUsage{used: 1 << 40}); r.full() || !strings.Contains(r.String(), "without a bound") {
		t.Errorf("a stream without a bound: %s, full %t", r, r.full())
	}
}
