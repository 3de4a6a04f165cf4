package series

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
	"github.com/almanac-events/almanac/schemas/sql"
)

// The statements of reads are written down: a change of one shows.
// UPDATE_GOLDEN=1 writes them again.
func TestStatements(t *testing.T) {
	var b strings.Builder
	write := func(name, statement string) { fmt.Fprintf(&b, "-- %s\n%s;\n\n", name, statement) }
	for _, c := range []struct {
		align, reduce Aligner
		by            []string
		distributions bool
	}{
		{align: None},
		{align: Summary},
		{align: Mean, distributions: true},
		{align: P95},
		{align: Rate},
		{align: Rate, distributions: true},
		{align: Sum, reduce: Max, by: []string{"host", "service"}},
		{align: Summary, reduce: Stddev, by: []string{"host"}},
		{align: Summary, reduce: P50},
		{align: P95, reduce: Mean, distributions: true},
	} {
		if c.reduce == "" {
			c.reduce = None
		}
		req := &Request{Topic: "cpu", Metric: "m", Align: c.align, Reduce: c.reduce, By: c.by, Period: time.Minute}
		s := listedSelection(t, "m", "")
		s.distributions = c.distributions
		write(fmt.Sprintf("align %s reduce %s by %v, distributions %t", c.align, c.reduce, c.by, c.distributions), s.statement(req, 10))
	}

	s := listedSelection(t, "m", "attributes.host = 'a'")
	req := &Request{Topic: "cpu", Metric: "m", Align: Rate, Period: time.Minute}
	write("found in the list alone", s.findSQL(req, s.listedAlone(req), true))
	s.snap.Shards[1].Examined, s.snap.Shards[1].Series = 3, 4
	write("found in the list and in rows above it", s.findSQL(req, s.listed(), false))

	s = listedSelection(t, "", "service = 'a'")
	listed, where := s.listed(), s.condition()
	write("list", sql.SeriesList{Listed: listed, Where: where, Limit: 7}.SQL())
	write("list with keys", sql.SeriesList{Listed: listed, Where: where, Keyed: true, Limit: 7}.SQL())
	write("names", sql.SeriesNames{Listed: listed, Where: where}.SQL())
	write("counts of metrics", sql.SeriesCounts{Listed: listed, Where: where, NameSQL: "type", Limit: 7}.SQL())
	write("counts of labels", sql.SeriesCounts{Listed: listed, Where: where, Limit: 7}.SQL())
	write("narrower", sql.SeriesNarrower{Listed: listed, Where: where, Series: 1500.5, Limit: 5}.SQL())
	write("narrower by pairs", sql.SeriesNarrower{Listed: listed, Where: where, Pairs: true, Series: 1500.5, Limit: 5}.SQL())
	write("estimate", sql.SeriesEstimate{Table: s.table(), Name: sql.QuoteText("cpu"), Where: "1"}.SQL())
	write("samples", samplesSQL(s.snap, &SampleRequest{From: s.from, To: s.to, Series: []Keyed{{Series{Metric: "it's"}, Key{1}}, {Series{Metric: "b"}, Key{2}}}}))

	const file = "testdata/statements.sql"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("%s differs; it is now\n%s", file, b.String())
	}
}

// listedSelection selects among the series of a topic with two shards that are examined and listed.
func listedSelection(t *testing.T, metric, where string) *selection {
	t.Helper()
	topic := schemas.NewTopicOf(kinds.Metric, "cpu")
	snap := &snapshot{Snapshot: &once.Snapshot{Topic: &topic, Database: "db", Marks: 2}, keep: "1"}
	for lane := range uint64(2) {
		sh := once.Shard{Ref: schemas.ShardRef{Topic: "cpu", Month: 202601, ID: schemas.Shard(lane << schemas.LaneShift)}}
		sh.Stored, sh.Examined, sh.Series = schemas.Stored{Rows: 9, Head: 9, MinTs: 1, MaxTs: 2}, 9, 9
		snap.Shards = append(snap.Shards, sh)
	}
	from := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	s, err := selectSeries(snap, metric, where, from, from.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
