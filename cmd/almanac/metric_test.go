package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/query/series"
)

// Bad points are refused one by one, each for what is wrong with it, and the good ones are
// stored; of points of one series and instant the last one counts.
func TestSendMetric(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "cpu", "--kind", "metric")
	line := func(rest string) string { return `{"ts":"2026-02-01T00:00:00Z","type":"cpu",` + rest + "}\n" }
	r := b.run(line(`"value":41,"host":"a","region":"eu"`)+line(`"value":42,"region":"eu","host":"a"`)+line(`"value":7,"host":"b","unit":"%"`)+
		line(`"value":"NaN","host":"a"`)+line(`"host":"a"`)+line(`"value":1,"points":"gage"`)+
		line(`"count":3,"sum":6,"min":1,"max":3,"m2":2,"buckets":{"bounds":[2],"counts":[2,2]}`)+
		line(`"count":3,"sum":6,"min":1,"max":3,"m2":2,"buckets":{"bounds":[2],"counts":[2,1]}`)+
		line(`"value":1,"start":"2026-02-02T00:00:00Z"`)+line(`"value":9007199254740993`)+`{"ts":"2026-02-01T00:00:00Z","value":1}`+"\n",
		"send", "cpu", "--format", "ndjson")
	for _, want := range []string{
		`line 4 refused: bad value: value is "NaN", it must be a number`,
		"line 5 refused: bad value: value is missing, and so is count",
		`line 6 refused: bad value: points is "gage", it must be one of`,
		"line 7 refused: bad value: the counts of buckets add up to 4, count is 3",
		"line 9 refused: bad value: start is 2026-02-02T00:00:00Z, later than ts, which is 2026-02-01T00:00:00Z",
		"line 10 refused: bad value: value is 9007199254740993",
		"line 11 refused: bad value: type is missing",
		"11 read, 4 accepted, 7 refused",
	} {
		contains(t, r.err, want)
	}
	b.ok(`{"ts":"2026-02-01T00:00:00Z","type":"cpu","value":43,"host":"a","region":"eu"}`+"\n", "send", "cpu", "--format", "ndjson")
	const counted = "SELECT value, count, attributes['host'] AS host FROM cpu_once ORDER BY value"
	want := `{"value":0,"count":3,"host":""}
{"value":7,"count":0,"host":"b"}
{"value":43,"count":0,"host":"a"}
`
	listed := "SELECT unit, labels, first FROM (SELECT type, any(unit) AS unit, any(labels) AS labels, min(first) AS first FROM `cpu.series` WHERE type != '' GROUP BY type, series) ORDER BY unit, labels['host']"
	wantListed := `{"unit":"","labels":{},"first":"2026-02-01T00:00:00.000000000Z"}
{"unit":"","labels":{"host":"a","region":"eu"},"first":"2026-02-01T00:00:00.000000000Z"}
{"unit":"%","labels":{"host":"b"},"first":"2026-02-01T00:00:00.000000000Z"}
`
	b.derived("cpu", 2)
	if got := b.ok("", "sql", "-o", "ndjson", counted); got != want {
		t.Errorf("points are\n%s", got)
	}
	if got := b.ok("", "sql", "-o", "ndjson", listed); got != wantListed {
		t.Errorf("series are\n%s", got)
	}
	for call, says := range map[string]string{
		"topics apply cpu --field region:string":                      `field "region" cannot be declared`,
		"topics apply cpu --pii user_id:drop":                         "told apart by it",
		"topics apply cpu --anonymise-after 1 --anonymise host --yes": "tells events of topic",
		"topics apply cpu --once-by host":                             "once_by cannot be given",
	} {
		if r := b.run("", strings.Fields(call)...); r.code == exitOK || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s, want %s", call, r.code, r.err, says)
		}
	}
}

// A topic that describes its metrics completes points and refuses others, by whatever way they
// come.
func TestDescribedMetrics(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "cpu", "--kind", "metric", "--strict", "true", "--metric", "{name: load, unit: '%', points: gauge, labels: [host, region], required: [host], defaults: {region: eu}}")
	b.ok("", "topics", "apply", "-f", b.write("topics.yaml", `topics:
  - name: net
    kind: metric
    strict: true
    metrics:
      - {name: bytes, unit: By, points: cumulative, type: int64}
`))
	r := b.run(`{"ts":"2026-02-01T00:00:00Z","type":"load","value":1,"host":"a"}
{"ts":"2026-02-01T00:00:00Z","type":"lod","value":1}
{"ts":"2026-02-01T00:00:00Z","type":"load","value":1,"rack":"a"}
{"ts":"2026-02-01T00:00:00Z","type":"load","value":1,"region":"us"}
`, "send", "cpu", "--format", "ndjson")
	contains(t, r.err, `line 2 refused: bad value: metric "lod" is not described, and topic "cpu" is strict`,
		`line 3 refused: bad labels: metric "load" has no label "rack"; its labels are host, region`, `line 4 refused: bad labels: points of metric "load" must have the label "host"`, "4 read, 1 accepted, 3 refused")
	b.publish("events.cpu.2026-02.0", `{"ts":"2026-02-01T00:01:00Z","type":"load","value":2,"host":"a"}`)
	got := b.ok("", "align", "cpu", "--metric", "load", "--from", "2026-01-31", "--to", "2026-02-02", "-o", "csv")
	if want := "host,region,unit,time,value\na,eu,%,2026-02-01T00:00:00Z,1\na,eu,%,2026-02-01T00:01:00Z,2\n"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if r := b.run(`{"type":"bytes","value":1.5}`+"\n", "send", "net", "--format", "ndjson"); !strings.Contains(r.err, `metric "bytes" has values of type int64`) {
		t.Error(r.err)
	}
	contains(t, b.ok("", "topics", "show", "cpu"), "strict: true", "name: load", "unit: '%'", "required:")
	b.ok("", "topics", "apply", "plain", "--kind", "metric")
	b.ok(`{"ts":"2026-02-01T00:00:00Z","type":"bytes","value":9,"if":"eth0"}`+"\n"+pointLine("more", "2026-02-01T00:00:30Z", `"if":"eth1"`, 3), "send", "plain", "--format", "ndjson")
	got = b.ok("", "align", "plain", "--metric", "bytes", "--metric", "more", "--from", "2026-02-01", "--to", "2026-02-02", "-o", "csv")
	if want := "metric,if,unit,time,value\nbytes,eth0,,2026-02-01T00:00:00Z,9\nmore,eth1,,2026-02-01T00:00:30Z,3\n"; got != want {
		t.Errorf("two metrics are %s, want %s", got, want)
	}
	if r := b.run("", "align", "plain", "--metric", "bytes", "--metric", "bytes", "--from", "2026-02-01"); r.code != exitUsage || !strings.Contains(r.err, "is named twice") {
		t.Errorf("a metric twice: %d %s", r.code, r.err)
	}
}

// pointLine is a point as JSON.
func pointLine(metric, ts, labels string, value float64) string {
	return fmt.Sprintf(`{"ts":%q,"type":%q,"value":%g,%s}`, ts, metric, value, labels) + "\n"
}

// Points are listed as series, aligned and reduced, in every format, and what cannot be
// answered is refused with what would do.
func TestAlign(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.up("--profile", "test")
	b.ok("", "topics", "apply", "cpu", "--kind", "metric")
	var lines strings.Builder
	for range 3 {
		for i, v := range []float64{123, 98, 121, 103, 105, 106} {
			ts := time.Date(2026, 2, 1, 12, 4, 24+30*i, 0, time.UTC).Format(time.RFC3339)
			lines.WriteString(pointLine("cpu", ts, `"host":"a","region":"eu","unit":"%"`, v))
			lines.WriteString(pointLine("cpu", ts, `"unit":"%","region":"us","host":"b"`, v/2))
		}
	}
	b.ok(lines.String(), "send", "cpu", "--format", "ndjson")
	align := func(flags string) []string {
		return strings.Fields("align cpu --metric cpu --from 2026-02-01T12:00:00Z --to 2026-02-01T12:10:00Z " + flags)
	}
	for flags, want := range map[string]string{
		"--period 1m --align count --where attributes.host='a' -o csv": "host,region,unit,time,value\na,eu,1,2026-02-01T12:05:00Z,2\na,eu,1,2026-02-01T12:06:00Z,2\na,eu,1,2026-02-01T12:07:00Z,2\n",
		"--period 5m --align summary --reduce summary -o csv": "unit,time,count,mean,sum,min,max,m2\n" +
			"%,2026-02-01T12:05:00Z,4,82.875,331.5,49,123,3443.1875\n%,2026-02-01T12:10:00Z,8,81.5625,652.5,51.5,121,6169.21875\n",
		"--period 5m --align mean --reduce max --by region -o ndjson": `{"labels":{"region":"eu"},"unit":"%","time":"2026-02-01T12:05:00.000000000Z","value":110.5}
{"labels":{"region":"eu"},"unit":"%","time":"2026-02-01T12:10:00.000000000Z","value":108.75}
{"labels":{"region":"us"},"unit":"%","time":"2026-02-01T12:05:00.000000000Z","value":55.25}
{"labels":{"region":"us"},"unit":"%","time":"2026-02-01T12:10:00.000000000Z","value":54.375}
`,
	} {
		if got := b.ok("", align(flags)...); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", flags, got, want)
		}
	}
	contains(t, b.ok("", align("--period 5m --align mean --by host --reduce mean")...), "host  unit  time", "110.5  █")
	a := decoded[series.Answer](b, align("--period 5m --align max -o json")...)
	if a.Series != 2 || len(a.Groups) != 2 || a.Period != "5m" || a.Groups[0].Labels["host"] != "a" || float64(*a.Groups[0].Points[0].Value) != 123 {
		t.Errorf("%+v", a)
	}
	for flags, want := range map[string]string{
		"-o csv":            "metric,service,user_id,unit,labels,points,first,last\ncpu,,,%,host=a region=eu,,2026-02-01T12:04:24Z,2026-02-01T12:06:54Z\ncpu,,,%,host=b region=us,,2026-02-01T12:04:24Z,2026-02-01T12:06:54Z\n",
		"--names -o csv":    "name,series\ncpu,2\n",
		"--labels -o csv":   "name,values,series\nhost,2,2\nregion,2,2\n",
		"--values host":     "name  series\na          1\nb          1\n",
		"--metric x -o csv": "metric,service,user_id,unit,labels,points,first,last\n",
	} {
		if got := b.ok("", strings.Fields("series cpu "+flags)...); got != want {
			t.Errorf("series %s:\n%s\nwant\n%s", flags, got, want)
		}
	}
	for flags, says := range map[string]string{
		"--period 59s --align mean":                      "it must be a multiple of 1m0s",
		"--period 90s --align mean":                      "it must be a multiple of 1m0s",
		"--reduce mean":                                  "needs an aligner and a period",
		"--align mean":                                   "align mean needs a period",
		"--period 1m --align meen":                       "is not one of none, delta",
		"--period 1m --align mean --by host":             "only with a reducer",
		"--period 1m --align mean --reduce sum --by hst": `no series with the label "hst" in that range; its labels are host, region`,
		"--where level='i'":                              "--where selects series",
		"--where attributes.hst='a'":                     `no series with the label "hst"`,
	} {
		if r := b.run("", align(flags)...); r.code == exitOK || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s, want %s", flags, r.code, r.err, says)
		}
	}
}
