package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/query/series"
)

// Points that come three times and late mean the same after a kill, a rebuild and a replay into
// another topic; a tenant that is erased is in no answer and in nothing that is derived.
func TestMetricLife(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	up := b.up("--profile", "test")
	for _, topic := range []string{"cpu", "copy"} {
		b.ok("", "topics", "apply", topic, "--kind", "metric")
	}
	example := func(late bool) string {
		var lines strings.Builder
		for range 3 {
			for i, v := range []float64{123, 98, 121, 103, 105, 106} {
				if (i == 3) == late {
					ts := time.Date(2026, 2, 1, 12, 4, 24+30*i, 0, time.UTC).Format(time.RFC3339)
					lines.WriteString(pointLine("cpu", ts, `"host":"a","user_id":"t-1"`, v) + pointLine("cpu", ts, `"host":"a","user_id":"t-2"`, -v))
				}
			}
		}
		return lines.String()
	}
	answer := func(topic, flags string) string {
		return b.ok("", strings.Fields("align "+topic+" --metric cpu --from 2026-02-01T12:00:00Z --to 2026-02-01T12:10:00Z --align summary -o csv "+flags)...)
	}
	const first = "host,user_id,unit,time,count,mean,sum,min,max,m2\na,t-1,,2026-02-01T12:05:00Z,2,110.5,221,98,123,312.5\na,t-1,,2026-02-01T12:06:00Z,2,112,224,103,121,162\na,t-1,,2026-02-01T12:07:00Z,2,105.5,211,105,106,0.5\n"
	check := func(when, topic string) {
		t.Helper()
		if got := answer(topic, "--period 1m --where user_id='t-1'"); got != first {
			t.Errorf("%s:\n%s", when, got)
		}
	}
	b.ok(example(false), "send", "cpu", "--format", "ndjson")
	b.derived("cpu", 20)
	up.stop(syscall.SIGKILL)
	up = b.up("--profile", "test")
	b.ok(example(true), "send", "cpu", "--format", "ndjson")
	check("late and after a kill", "cpu")
	b.derived("cpu", 24)
	check("derived", "cpu")
	b.ok("", "rebuild", "cpu", "--yes", "--drop-old")
	check("rebuilt", "cpu")
	b.derived("cpu", 24)
	check("derived after the rebuild", "cpu")
	b.ok("", "replay", "cpu", "--into", "copy")
	check("replayed", "copy")
	up.stop(syscall.SIGKILL)
	b.up("--profile", "test")
	b.derived("copy", 24)
	check("replayed and derived", "copy")
	if r := b.run("", "replay", "cpu", "--into", "nothing"); r.code == exitOK {
		t.Error("replayed into a topic that does not exist")
	}

	b.ok("", "erase", "cpu", "--user", "t-2", "--yes")
	without := func(when string) {
		t.Helper()
		check(when, "cpu")
		if got := answer("cpu", "--period 1m"); got != first {
			t.Errorf("%s:\n%s", when, got)
		}
		list := decoded[[]series.Series](b, "series", "cpu", "-o", "json")
		if len(list) != 1 || list[0].Tenant != "t-1" {
			t.Errorf("%s: %+v", when, list)
		}
	}
	without("erased")
	b.derived("cpu", 12)
	without("derived after the erasure")
	b.countsNone("SELECT count() AS n FROM `cpu.series` WHERE user_id = 't-2'", "SELECT count() AS n FROM cpu WHERE user_id = 't-2'")
	b.ok("", "verify", "cpu")
}

// Series of the Numenta Anomaly Benchmark, some of whose instants come twice: the later value
// counts, whatever the order in which shards are examined.
func TestRealSeries(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "nab", "--kind", "metric")
	for name, c := range map[string]struct{ sent, points int }{"machine_temperature_system_failure": {22695, 22683}, "ec2_disk_write_bytes_1ef3de": {4730, 4719}} {
		records, err := csv.NewReader(bytes.NewReader(inputtest.RecordedBytes(t, "../metrics/"+name+".csv"))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var lines strings.Builder
		want := map[time.Time]float64{}
		for _, r := range records[1:] {
			at, err := time.Parse(time.DateTime, r[0])
			if err != nil {
				t.Fatal(err)
			}
			if want[at], err = strconv.ParseFloat(r[1], 64); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&lines, `{"ts":%q,"type":%q,"value":%s}`+"\n", at.Format(time.RFC3339), name, r[1])
		}
		if len(records)-1 != c.sent || len(want) != c.points {
			t.Fatalf("%s has %d rows of %d instants", name, len(records)-1, len(want))
		}
		b.ok(lines.String(), "send", "nab", "--format", "ndjson")
		got := map[time.Time]float64{}
		for _, line := range strings.Split(strings.TrimSpace(b.ok("", "align", "nab", "--metric", name, "--from", "2013-01-01", "--to", "2015-01-01", "-o", "ndjson")), "\n") {
			var p struct {
				Time  time.Time `json:"time"`
				Value float64   `json:"value"`
			}
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			if _, twice := got[p.Time]; twice || want[p.Time] != p.Value {
				t.Errorf("%s at %s: %g, want %g once", name, p.Time, p.Value, want[p.Time])
			}
			got[p.Time] = p.Value
		}
		if len(got) != c.points {
			t.Errorf("%s: %d points, want %d", name, len(got), c.points)
		}
	}
	if rep := decoded[verify.Report](b, "verify", "nab", "-o", "json"); len(rep.Topics) != 1 || rep.Topics[0].Accepted != 22695+4730 {
		t.Errorf("%+v", rep)
	}
}
