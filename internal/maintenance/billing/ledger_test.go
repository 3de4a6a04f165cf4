package billing

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/schemas"
)

var february = Request{Topic: "usage", Month: 202602, Into: "bills", GroupBy: usage.BySpace, Measure: usage.Integral}

// asRead is an event as a page has it: columns, and attributes beside them, some of which the topic promotes.
func asRead(t interface {
	Helper()
	Fatal(...any)
}, e *schemas.Event, promoted ...string) entry {
	t.Helper()
	attrs, columns := map[string]string{}, map[string]any{schemas.ColType: e.Type, schemas.ColUserID: e.UserID}
	for _, a := range e.Attrs {
		if slices.Contains(promoted, a.Key) {
			columns[a.Key] = a.Text()
			continue
		}
		attrs[a.Key] = a.Text()
	}
	columns[schemas.ColAttributes] = attrs
	text, err := json.Marshal(columns)
	if err != nil {
		t.Fatal(err)
	}
	got, err := readEntry(text)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func drawBill(t *rapid.T, k Key) usage.Bill {
	number := rapid.StringMatching(`-?[1-9][0-9]{0,40}|0`)
	return usage.Bill{
		Meter: k.Meter, Provider: k.Provider, Space: k.Space, Customer: k.Customer, SizeStart: number.Draw(t, "start"), SizeEnd: number.Draw(t, "end"), Usage: number.Draw(t, "usage"),
		Average: number.Draw(t, "average"), Causes: rapid.Uint64Range(0, 9).Draw(t, "causes"), Repeats: rapid.Uint64Range(0, 9).Draw(t, "repeats"), Anomaly: rapid.Bool().Draw(t, "anomaly"),
	}
}

// What a round and its corrections publish is read back whatever the order and however often it comes: of each key the
// last revision. Then exactly the bills that differ from it have moved.
func TestLedgerReadsWhatWasPublished(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := february
		last := map[Key]usage.Bill{}
		var events []schemas.Event
		buckets := rapid.IntRange(1, 4).Draw(t, "buckets")
		for b := range buckets {
			events = append(events, r.bucketEvent(0, b, buckets))
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "keys") {
			k := Key{Meter: "bytes", Space: fmt.Sprint("s-", i), Customer: rapid.SampledFrom([]string{"", "c"}).Draw(t, "customer")}
			b := drawBill(t, k)
			events = append(events, r.billEvent(k, &b, 0, "run"))
			for revision := range rapid.IntRange(0, 2).Draw(t, "corrections") {
				now := drawBill(t, k)
				events = append(events, r.correctionEvent(&Correction{Key: k, Revision: revision + 1, Was: b, Now: now}, revision+1, "run"))
				b = now
			}
			last[k] = b
		}
		for range rapid.IntRange(0, len(events)).Draw(t, "copies") {
			events = append(events, rapid.SampledFrom(events).Draw(t, "copy"))
		}
		events = rapid.Permutation(events).Draw(t, "order")
		l := newLedger(r.Topic)
		for i := range events {
			if err := l.take(asRead(t, &events[i])); err != nil {
				t.Fatal(err)
			}
		}
		if !l.rounds[0].complete() || l.last() != 0 {
			t.Fatalf("the round is not complete: %+v", l.rounds[0])
		}
		for k, want := range last {
			if got := l.bills[k].bill; got != want {
				t.Fatalf("%s: %+v, published last was %+v", k, got, want)
			}
		}
		if moved := l.moved(last); len(moved) != 0 {
			t.Fatalf("nothing moved, but %v", moved)
		}
		now, want := maps.Clone(last), []Key{}
		for k, b := range last {
			switch rapid.SampledFrom([]string{"same", "usage", "gone", "copies"}).Draw(t, "change") {
			case "usage":
				b.Usage += "1"
				now[k] = b
				want = append(want, k)
			case "copies": // no bill of money
				b.Repeats++
				now[k] = b
			case "gone":
				delete(now, k)
				if !zero(&b) {
					want = append(want, k)
				}
			}
		}
		fresh := Key{Space: "new"}
		now[fresh] = usage.Bill{Space: "new", SizeStart: "0", SizeEnd: "7", Usage: "7", Causes: 1}
		now[Key{Space: "nothing"}] = usage.Bill{Space: "nothing", SizeStart: "0", SizeEnd: "0", Usage: "0"}
		want = append(want, fresh)
		slices.SortFunc(want, Key.compare)
		if got := l.moved(now); !slices.Equal(got, want) {
			t.Fatalf("moved are %v, expected %v", got, want)
		}
	})
}

// A bucket that is not there leaves its round open, whatever else is there twice.
func TestRoundIsCompleteWithAllBuckets(t *testing.T) {
	t.Parallel()
	for missing := range 4 {
		t.Run(fmt.Sprint("without ", missing), func(t *testing.T) {
			t.Parallel()
			l := newLedger("usage")
			for range 2 {
				for b := range 4 {
					if e := february.bucketEvent(3, b, 4); b != missing {
						if err := l.take(asRead(t, &e, schemas.AttrBillBucket)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if l.rounds[3].complete() || l.last() != 3 || l.rounds[3].groupBy != usage.BySpace {
				t.Errorf("%+v", l.rounds[3])
			}
			e := february.bucketEvent(3, missing, 4)
			if err := l.take(asRead(t, &e)); err != nil || !l.rounds[3].complete() {
				t.Errorf("%+v, %v", l.rounds[3], err)
			}
		})
	}
}

func TestEntriesThatAreNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		typ  string
		with map[string]string
	}{
		"a bucket without a number": {schemas.TypeBucket, map[string]string{schemas.AttrBillRound: "0", schemas.AttrBillBuckets: "2"}},
		"a negative round":          {schemas.TypeBucket, map[string]string{schemas.AttrBillRound: "-1", schemas.AttrBillBucket: "0", schemas.AttrBillBuckets: "2"}},
		"a bill without causes":     {schemas.TypeBill, map[string]string{schemas.AttrBillRevision: "0", schemas.AttrBillRound: "0"}},
		"positions of no shard":     {schemas.TypePositions, map[string]string{schemas.AttrBillPart: "0", schemas.AttrBillParts: "1", schemas.AttrBillAt: `{"2026-02.x":1}`}},
		"positions that are cut":    {schemas.TypePositions, map[string]string{schemas.AttrBillPart: "0", schemas.AttrBillParts: "1", schemas.AttrBillAt: `{"2026-02.`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := entry{schemas.ColType: c.typ}
			maps.Copy(e, c.with)
			if err := newLedger("usage").take(e); err == nil {
				t.Error("it is taken")
			}
		})
	}
	if err := newLedger("usage").take(entry{schemas.ColType: "login"}); err != nil {
		t.Errorf("another event of the topic: %v", err)
	}
}

// The positions of a run are known once all their parts are there, also above a thousand shards.
func TestPositionsInParts(t *testing.T) {
	t.Parallel()
	at := usage.Positions{}
	for i := range 2*maxPositions + 7 {
		at[schemas.ShardRef{Topic: "usage", Month: 202602, ID: schemas.Shard(i + 1)}] = uint64(i)
	}
	events := february.positionsEvents("r", at)
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	l := newLedger("usage")
	for i := range events {
		if l.positions("r") != nil {
			t.Errorf("known after %d parts", i)
		}
		if err := l.take(asRead(t, &events[i])); err != nil {
			t.Fatal(err)
		}
	}
	if got := l.positions("r"); !maps.Equal(got, at) {
		t.Errorf("%d positions, expected %d", len(got), len(at))
	}
	if february.run(at) != february.run(maps.Clone(at)) || february.run(at) == february.run(usage.Positions{}) {
		t.Error("a run is not named by its positions")
	}
}

// An attempt gives a bill the id, the bucket and the producer that another gave it; two bills, months or
// revisions do not share an id.
func TestAttemptsAgree(t *testing.T) {
	t.Parallel()
	seen := map[schemas.ID]string{}
	for _, month := range []schemas.Month{202602, 202603} {
		for space := range 20 {
			for revision := range 3 {
				a, b := Request{Topic: "usage", Month: month, Into: "bills"}, Request{Topic: "usage", Month: month, Into: "bills"}
				k := Key{Space: fmt.Sprint(space)}
				what := fmt.Sprint(month, space, revision)
				if a.id(k, revision) != b.id(k, revision) || k.bucket(8) >= 8 {
					t.Errorf("%s: two attempts differ", what)
				}
				if other, there := seen[a.id(k, revision)]; there {
					t.Errorf("%s and %s share an id", what, other)
				}
				seen[a.id(k, revision)] = what
			}
		}
	}
	names := map[string]map[uint64]bool{}
	for bucket := range 3 * schemas.MaxInFlight {
		name, seq := february.producer(0, bucket)
		if names[name] == nil {
			names[name] = map[uint64]bool{}
		}
		if names[name][seq] || seq == 0 || seq > schemas.MaxInFlight {
			t.Errorf("bucket %d is %s %d", bucket, name, seq)
		}
		names[name][seq] = true
	}
	if len(names) != 3 {
		t.Errorf("%d producers", len(names))
	}
}

// Buckets are as many as hold their bills, also with room for a later attempt with more.
func TestBuckets(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("bills")
	for _, n := range []int{0, 1, bucketRows - 1, 3 * bucketRows} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			items := make([]item, n)
			for i := range items {
				k := Key{Space: fmt.Sprint("s-", i)}
				items[i] = item{key: k, event: february.billEvent(k, &usage.Bill{Usage: "1"}, 0, "run")}
			}
			buckets := bucketsFor(&topic, items)
			rows := map[int]int{}
			for i := range items {
				rows[items[i].key.bucket(buckets)]++
			}
			for b, n := range rows {
				if n >= bucketRows || b >= buckets {
					t.Errorf("bucket %d of %d has %d bills", b, buckets, n)
				}
			}
			if n < 2 && buckets != 1 {
				t.Errorf("%d buckets of %d bills", buckets, n)
			}
		})
	}
}

// What a correction names fits an event, and says that there is more.
func TestCorrectionsAreBounded(t *testing.T) {
	t.Parallel()
	c := &Correction{Key: Key{Space: "s"}, Revision: 1}
	for i := range maxSince {
		c.Since = append(c.Since, usage.Diff{Cause: strings.Repeat("c", 500) + fmt.Sprint(i)})
	}
	e := asRead(t, new(february.correctionEvent(c, 1, "run")))
	var since []usage.Diff
	if err := json.Unmarshal([]byte(e[schemas.AttrBillSince]), &since); err != nil || len(since) == 0 || len(since) >= maxSince || e[schemas.AttrBillMore] != "true" {
		t.Errorf("%d diffs, more: %q, %v", len(since), e[schemas.AttrBillMore], err)
	}
	if n := len(e[schemas.AttrBillSince]); n > maxSinceBytes {
		t.Errorf("%d bytes", n)
	}
	c.Unknown = true
	if e := asRead(t, new(february.correctionEvent(c, 1, "run"))); e[schemas.AttrBillSince] != "" {
		t.Errorf("what is not known is %s", e[schemas.AttrBillSince])
	}
}

// A month is closed once: another topic, grouping or measure is refused.
func TestAnotherCloseIsRefused(t *testing.T) {
	t.Parallel()
	s := state{Into: "bills", GroupBy: usage.BySpace, Measure: usage.Integral}
	for name, change := range map[string]func(*Request){
		"the same":        func(*Request) {},
		"another topic":   func(r *Request) { r.Into = "others" },
		"another key":     func(r *Request) { r.GroupBy = usage.ByCustomer },
		"another measure": func(r *Request) { r.Measure = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := february
			change(&r)
			if err := s.fits(&r); (err == nil) != (name == "the same") || err != nil && !errors.Is(err, ErrElsewhere) {
				t.Error(err)
			}
		})
	}
}
