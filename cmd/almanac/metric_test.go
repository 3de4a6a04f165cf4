package main

import (
	"strings"
	"testing"
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
		line(`"value":"NaN","host":"a"`)+line(`"host":"a"`)+line(`"value":1,"points":"guage"`)+
		line(`"count":3,"sum":6,"min":1,"max":3,"m2":2,"buckets":{"bounds":[2],"counts":[2,2]}`)+
		line(`"count":3,"sum":6,"min":1,"max":3,"m2":2,"buckets":{"bounds":[2],"counts":[2,1]}`)+
		line(`"value":1,"start":"2026-02-02T00:00:00Z"`)+line(`"value":9007199254740993`)+`{"ts":"2026-02-01T00:00:00Z","value":1}`+"\n",
		"send", "cpu", "--format", "ndjson")
	for _, want := range []string{
		`line 4 refused: bad value: value is "NaN", it must be a number`,
		"line 5 refused: bad value: value is missing, and so is count",
		`line 6 refused: bad value: points is "guage", it must be one of`,
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
