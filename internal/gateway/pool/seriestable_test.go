package pool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// held is what a table has, counted once more.
func (t *seriesTable) held() (late, earlier int) {
	for n, half := range map[*int]map[*slot]map[seriesKey]*producer.Series{&late: t.late, &earlier: t.earlier} {
		for _, all := range half {
			for key, made := range all {
				*n += made.Bytes() + len(key.said) + entryBytes
			}
		}
	}
	return late, earlier
}

// However many series come once, a table stays within its bound, and has those that are asked for again and again.
func TestSeriesTable(t *testing.T) {
	t.Parallel()
	p, err := producer.NewMemory(schemas.NewTopicOf(kinds.Metric, "cpu")).Producer(producer.Config{Topic: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(t.Context()) })
	made := func(n int) *producer.Series {
		s, err := p.Series(schemas.Event{Type: "up", Attrs: []schemas.Attr{schemas.String("n", fmt.Sprint(n))}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	const limit = 64 << 10
	table, one, other := newSeriesTable(limit), new(slot), new(slot)
	hot := made(-1)
	table.put(one, "form", []byte("hot"), "", hot)
	for n := range 2000 {
		said := []byte("cold " + fmt.Sprint(n))
		s := made(n)
		table.put(one, "form", said, "", s)
		if table.get(one, "form", said, "") != s || table.get(one, "form", []byte("hot"), "") != hot {
			t.Fatalf("after %d series: one of them is another, or is gone", n)
		}
		if late, earlier := table.held(); late != table.bytes || late > limit/2 || earlier > limit/2 {
			t.Fatalf("%d and %d bytes of %d, counted as %d", late, earlier, limit, table.bytes)
		}
	}
	if table.get(one, "form", []byte("cold 0"), "") != nil {
		t.Error("a series that came once, long ago, is still there")
	}
	for what, got := range map[string]*producer.Series{
		"another slot's":  table.get(other, "form", []byte("hot"), ""),
		"another form's":  table.get(one, "other form", []byte("hot"), ""),
		"another value's": table.get(one, "form", []byte("hot"), kinds.PointsStale),
	} {
		if got != nil {
			t.Errorf("%s series is found", what)
		}
	}
	long := []byte(strings.Repeat("x", limit))
	if table.put(one, "form", long, "", hot); table.get(one, "form", long, "") != nil {
		t.Error("a series of half the bound and more is kept")
	}
	table.put(other, "form", []byte("hot"), "", made(-2))
	table.forget(one)
	table.put(one, "form", []byte("hot"), "", hot) // by a request that began before
	if table.get(one, "form", []byte("hot"), "") != nil || table.get(other, "form", []byte("hot"), "") == nil {
		t.Error("what is forgotten is found, or what is not is gone")
	}
	if late, _ := table.held(); late != table.bytes {
		t.Errorf("%d bytes, counted as %d", late, table.bytes)
	}
}
