package series

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/internal/query/once"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas/sql"
)

// anyFilter has what a catalogue can evaluate, and matches, which only ClickHouse can.
var anyFilter = rapid.SampledFrom([]string{
	"", onlyUnitless, onlyHostB, "attributes.host != 'b'", "exists attributes.region", "not exists attributes.region", "attributes.region = ''",
	"attributes.host in ('a', 'c') and unit = '%'", "attributes.host = 'a' or attributes.region = 'eu'", "attributes.host contains 'b'", "service = 'x'", "user_id = ''", "type = 'cpu'",
	"attributes.host matches '^[ab]$'", "attributes.host = 'a' and attributes.region matches 'e'", "attributes.host > 'a'",
})

// What a catalogue finds is what ClickHouse finds in the same list, whatever parts it has, for any
// range, filter and groups; and where it cannot evaluate a filter it says so.
func TestCatalogueFinds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	unsure, compared := 0, 0
	for round := range 8 {
		r.insert(rapid.SliceOfN(anyPoint, 20, 60).Example(round)...)
		r.Round()
		if round%3 == 2 {
			r.Exec("OPTIMIZE TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series") + " FINAL")
		}
		for seed := range 40 {
			req := anyRequest.Example(100*round + seed)
			req.Topic, req.Where = "cpu", anyFilter.Example(100*round+seed)
			if err := req.check(); err != nil {
				t.Fatal(err)
			}
			ctx := filter.WithLimit(t.Context(), []string{"", "attributes.host = 'a'", "attributes.host IN ('b', 'c') OR unit = '%'"}[seed%3])
			snap, err := r.read.snapshot(ctx, "cpu")
			if err != nil {
				t.Fatal(err)
			}
			if seed%7 == 0 {
				snap.Shards[seed%len(snap.Shards)].Gone = true
			}
			s, err := selectSeries(snap, req.Metric, req.Where, req.From, req.To)
			if err != nil {
				t.Fatal(err)
			}
			want, err := r.read.findIn(t.Context(), s.findSQL(&req, s.listedAlone(&req), true), s)
			if err != nil {
				t.Fatal(err)
			}
			c, err := r.read.lists.read(t.Context(), "cpu")
			if err != nil {
				t.Fatal(err)
			}
			got := c.find(s, &req)
			if got == nil {
				unsure++
				continue
			}
			compared++
			for _, f := range []*found{got, want} {
				slices.Sort(f.points)
				slices.SortFunc(f.names, func(a, b []string) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
				f.points, f.labels, f.names = orNone(f.points), orNone(f.labels), orNone(f.names)
			}
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v\nfinds %+v\n want %+v", req, got, want)
			}
		}
	}
	if unsure == 0 || compared < 200 {
		t.Errorf("%d were compared, %d were left to ClickHouse", compared, unsure)
	}
}

func orNone[T any](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	return s
}

// A part is read once; what is merged, dropped or filled again is what the list has then; and nothing that left
// the list stays in memory.
func TestListsFollowParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := func(host string, shard uint64) point {
		return point{metric: "m", labels: map[string]string{"host": host}, at: month.Add(time.Minute), value: 1, shard: shard}
	}
	hosts := func() []string {
		t.Helper()
		c, err := r.read.lists.read(t.Context(), "cpu")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for i := range c.series {
			out = append(out, c.series[i].labels["host"])
		}
		slices.Sort(out)
		return out
	}
	is := func(want ...string) {
		t.Helper()
		if got := hosts(); !slices.Equal(got, want) {
			t.Errorf("the list has %q, want %q", got, want)
		}
	}
	if _, err := r.read.lists.read(t.Context(), "cpu"); !errors.Is(err, errNoList) {
		t.Errorf("of a topic without parts: %v", err)
	}
	r.insert(p("a", 1), p("b", 2))
	r.Round()
	is("a", "b")
	first := r.read.lists.of["cpu"]
	if is("a", "b"); r.read.lists.of["cpu"] != first {
		t.Error("the same parts were read again")
	}
	r.insert(p("c", 1))
	r.Round()
	is("a", "b", "c")
	kept := 0
	for key, rows := range r.read.lists.of["cpu"].parts {
		if had := first.parts[key]; len(had) > 0 && &had[0] == &rows[0] {
			kept++
		}
	}
	if kept == 0 {
		t.Error("no part was kept when another came")
	}
	r.Exec("OPTIMIZE TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series") + " FINAL")
	is("a", "b", "c")

	gone := p("b", 2)
	ref := gone.ref()
	r.Exec(fmt.Sprintf("ALTER TABLE %s DROP PARTITION (%d, %d)", sql.QuotedTable(r.DB.Database, "cpu.series"), uint32(ref.Month), uint64(ref.ID)))
	is("a", "c")
	for _, rows := range r.read.lists.of["cpu"].parts {
		for i := range rows {
			if rows[i].ref == ref {
				t.Errorf("still there: %+v", rows[i])
			}
		}
	}
	r.Round()
	is("a", "b", "c")

	// A table that was made again has parts of the same names.
	r.Exec("TRUNCATE TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series"))
	if c, err := r.read.lists.read(t.Context(), "cpu"); !errors.Is(err, errNoList) {
		t.Errorf("of an empty list: %+v, %v", c, err)
	}
	if len(r.read.lists.of) != 0 {
		t.Error("what an empty list had is still kept")
	}
	r.Round()
	is("a", "b", "c")

	// Parts that went between their names and their rows.
	parts, err := r.DB.ListParts(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	r.Exec("OPTIMIZE TABLE " + sql.QuotedTable(r.DB.Database, "cpu.series") + " FINAL")
	r.insert(p("d", 1))
	r.Round()
	parts = append(parts, tables.ListPart{Name: "202601-20260110-0-0_99_99_0", Rows: 1})
	if err := r.read.lists.readParts(t.Context(), "cpu", parts, &list{parts: map[string][]listRow{}}); !errors.Is(err, errNoList) {
		t.Errorf("parts that went: %v", err)
	}
}

// Lists that are too large are not kept, at most so many are, and none without a reader.
func TestListsAreBounded(t *testing.T) {
	many := make([]tables.ListPart, maxListParts+1)
	for name, c := range map[string]struct {
		parts []tables.ListPart
		kept  bool
	}{
		"nothing":        {nil, false},
		"the most":       {[]tables.ListPart{{Rows: maxListRows - 1, Bytes: maxListBytes}, {Rows: 1}}, true},
		"too many rows":  {[]tables.ListPart{{Rows: maxListRows}, {Rows: 1}}, false},
		"too many bytes": {[]tables.ListPart{{Rows: 1, Bytes: maxListBytes + 1}}, false},
		"the most parts": {many[1:], true},
		"too many parts": {many, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := keepable(c.parts); (err == nil) != c.kept {
				t.Errorf("%v", err)
			}
		})
	}
	at := time.Unix(0, 0)
	l := &lists{now: func() time.Time { return at }}
	for i := range maxLists {
		at = at.Add(time.Second)
		l.keep(strconv.Itoa(i), &list{asked: at})
	}
	at = at.Add(time.Second)
	l.asked("0")
	l.keep("new", &list{asked: at})
	if has := slices.Sorted(maps.Keys(l.of)); len(has) != maxLists || slices.Contains(has, "1") || !slices.Contains(has, "0") {
		t.Errorf("it keeps %q", has)
	}
	at = at.Add(listKept)
	l.asked("0")
	if l.sweep(); len(l.of) != 1 || l.sweeps == nil {
		t.Errorf("it keeps %d without a reader, and sweeps again: %v", len(l.of)-1, l.sweeps != nil)
	}
	at = at.Add(listKept)
	if l.sweep(); len(l.of) != 0 || l.sweeps != nil {
		t.Errorf("it keeps %d, and sweeps again: %v", len(l.of), l.sweeps != nil)
	}
}

// A filter that a catalogue cannot evaluate is answered all the same.
func TestUnsureFilter(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var some []point
	for _, host := range []string{"a", "b", "cc"} {
		some = append(some, point{metric: "m", labels: map[string]string{"host": host}, at: month.Add(time.Minute), value: 1})
	}
	r.insert(some...)
	r.Round()
	for range 2 {
		if got := r.align(Request{Metric: "m", Where: "attributes.host matches '^.$'", From: month, To: month.Add(time.Hour)}).text(); got != "{host=a} 23:01 1; {host=b} 23:01 1" {
			t.Error(got)
		}
	}
	e, err := filter.Parse("attributes.host matches '^.$'", filterTopic)
	if err != nil {
		t.Fatal(err)
	}
	c, err := r.read.lists.read(t.Context(), "cpu")
	if err != nil {
		t.Fatal(err)
	}
	if f := c.find(&selection{snap: &snapshot{Snapshot: &once.Snapshot{}}, metric: "m", where: e, from: month, to: month.Add(time.Hour)}, &Request{}); f != nil {
		t.Errorf("judged: %+v", f)
	}
}
