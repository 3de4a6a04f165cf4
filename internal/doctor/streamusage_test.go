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

// A disk is worth a warning where little is free, or little of what it has; and a stream from 80 % on.
func TestLow(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		free, all float64
		want      string
	}{
		{1 << 40, 4 << 40, ""}, {4<<40/10 + 1, 4 << 40, ""}, {4<<40/10 - 1<<20, 4 << 40, "less than 10 % of its 4 TiB"},
		{2 << 30, 10 << 30, ""}, {2<<30 - 1, 10 << 30, "less than 2 GiB"}, {1 << 30, 4 << 30, "less than 2 GiB"},
	} {
		if got := diskLow(c.free, c.all); got != c.want {
			t.Errorf("%.0f of %.0f: %q, want %q", c.free, c.all, got, c.want)
		}
	}
	for _, stream := range []string{schemas.StreamEvents, schemas.StreamShards, schemas.KVStream} {
		for used, want := range map[uint64]string{799 << 20: OK, 800 << 20: Warn} {
			if got, _ := (streamUsage{used: used, limit: 1000 << 20}).result(stream); got != want {
				t.Errorf("%s with %d MiB of 1000: %s, want %s", stream, used>>20, got, want)
			}
		}
	}
}
