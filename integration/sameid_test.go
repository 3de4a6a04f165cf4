package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/intake"
	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/send"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/series"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// sameAt is the time of every event here.
var sameAt = time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)

// sameEvent is the event of a number. Whatever has the number has its id.
func sameEvent(topic *schemas.Topic, n int, delta int64) producer.Event {
	name := fmt.Sprint("e-", n)
	e := producer.Event{ID: schemas.DerivedID(sameAt.UnixNano(), uint64(n), 1), Time: sameAt, Type: "bytes"}
	switch topic.Kind {
	case kinds.Meter:
		e.Attrs = []producer.Attr{schemas.String("provider", "p"), schemas.String("space", "s"), schemas.String("cause", name), schemas.Int64("delta", delta)}
	case kinds.Metric:
		e.Attrs = []producer.Attr{schemas.String("host", name), schemas.Float64("value", float64(delta))}
	case kinds.Audit:
		e.UserID = "u-1"
		e.Attrs = []producer.Attr{schemas.String("scope", "s"), schemas.String("request_id", name), schemas.String("resource", "r")}
	default:
		e.Message = name
	}
	return e
}

// sameLine is an event as JSON.
func sameLine(t *testing.T, e producer.Event) string {
	t.Helper()
	fields := map[string]any{"id": e.ID.String(), "ts": e.Time, "type": e.Type, "user_id": e.UserID, "message": e.Message}
	for i := range e.Attrs {
		fields[e.Attrs[i].Key] = e.Attrs[i].Text()
		if v, ok := e.Attrs[i].AsFloat64(); ok {
			fields[e.Attrs[i].Key] = v
		}
	}
	line, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(line)
}

// sameWays are the ways by which events come: those given to one come in one frame or message.
func sameWays(t *testing.T, e *env, base string) map[string]func(topic *schemas.Topic, events ...producer.Event) {
	lines := func(events []producer.Event) (list []string) {
		for _, ev := range events {
			list = append(list, sameLine(t, ev))
		}
		return list
	}
	post := func(topic *schemas.Topic, kind, body string) {
		t.Helper()
		if code, text := e.sendAs(http.MethodPost, base+"/v1/topics/"+topic.Name+"/events", "", kind, body); code != http.StatusOK {
			t.Fatalf("%d %s", code, text)
		}
	}
	subject := func(topic *schemas.Topic) string {
		return schemas.EventsSubject(topic.Name, schemas.MonthOf(sameAt.UnixNano()), 0)
	}
	return map[string]func(topic *schemas.Topic, events ...producer.Event){
		"NDJSON over HTTP": func(topic *schemas.Topic, events ...producer.Event) {
			post(topic, "application/x-ndjson", strings.Join(lines(events), "\n"))
		},
		"an array over HTTP": func(topic *schemas.Topic, events ...producer.Event) {
			post(topic, "application/json", "["+strings.Join(lines(events), ",")+"]")
		},
		"send": func(topic *schemas.Topic, events ...producer.Event) {
			p := e.producer(topic.Name, wholeFrames)
			stats, err := send.NewStats("", schemas.Text)
			if err != nil {
				t.Fatal(err)
			}
			job := send.Local{Producer: p, Options: intake.Options{Format: intake.FormatNDJSON, Topic: topic}, Stats: stats, Note: e.logf}
			if err := job.Run(t.Context(), []send.Input{{Name: "lines", Reader: strings.NewReader(strings.Join(lines(events), "\n"))}}); err != nil {
				t.Fatal(err)
			}
		},
		"a producer": func(topic *schemas.Topic, events ...producer.Event) {
			p := e.producer(topic.Name, wholeFrames)
			for _, ev := range events {
				if err := p.Submit(t.Context(), ev, nil); err != nil {
					t.Fatal(err)
				}
			}
			e.flush(p)
		},
		"a frame made by hand": func(topic *schemas.Topic, events ...producer.Event) {
			b := frame.NewBuilder(topic)
			for _, ev := range events {
				topic.Complete(&ev)
				b.Append(&ev, ev.Time.UnixNano(), ev.ID)
			}
			f, payload := b.Encode()
			f.Producer, f.Seq = "by-hand-"+events[0].ID.String(), 1
			e.publish(subject(topic), string(bytes.Clone(payload)), headersOf(f)...)
		},
		"JSON on NATS": func(topic *schemas.Topic, events ...producer.Event) {
			e.publish(subject(topic), strings.Join(lines(events), "\n"))
		},
	}
}

// Events that come twice in one frame, with one id and one time, count once by whichever way they come: before and after
// what is derived of them is there, once it is rebuilt, and in topics that they are replayed into. No row is taken for
// another event's copy. Copies that say something else are named.
func TestOneIDTwiceInAFrame(t *testing.T) {
	t.Parallel()
	topics := map[string]schemas.Topic{}
	var all []schemas.Topic
	for _, topic := range []schemas.Topic{
		{Name: "usage", Kind: kinds.Meter}, {Name: "cpu", Kind: kinds.Metric}, {Name: "trail", Kind: kinds.Audit}, {Name: "orders", OnceBy: []string{schemas.ColMessage}},
		{Name: "again", OnceBy: []string{schemas.ColMessage}}, {Name: "fromlog", OnceBy: []string{schemas.ColMessage}}, {Name: "log"}, {Name: "disputed", Kind: kinds.Meter},
	} {
		topic.Lanes = 1
		declared, err := topic.Declared()
		if err != nil {
			t.Fatal(err)
		}
		topics[declared.Name] = declared
		all = append(all, declared)
	}
	e := running(t, all...)
	base, _ := e.gateway()
	ways := sameWays(t, e, base)
	names := []string{"usage", "cpu", "trail", "orders", "log"}
	n, sent := 0, map[string]uint64{}
	for _, send := range ways {
		for _, name := range names {
			topic := topics[name]
			a, b := sameEvent(&topic, n, 50), sameEvent(&topic, n+1, 7)
			send(&topic, a, a, b, a, b)
			sent[name] += 5
		}
		n += 2
	}
	events := uint64(n)
	for _, name := range names {
		e.stored(name, sent[name], time.Minute)
		e.verified(name)
	}
	reader := e.reader()
	from, to := sameAt.Add(-time.Hour), sameAt.Add(time.Hour)
	check := func(when string) {
		t.Helper()
		for _, name := range []string{"usage", "cpu", "trail", "orders"} {
			if got := e.count("SELECT uniqExact(id, shard, pos) FROM %s", e.table(name)); got != sent[name] {
				t.Errorf("%s: the %d rows of %s have %d names", when, sent[name], name, got)
			}
		}
		req := usage.Request{Topic: "usage", From: from, To: to, GroupBy: usage.BySpace}
		rep, err := usage.New(reader).Report(t.Context(), req)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		want := fmt.Sprint(len(ways) * 57)
		if len(rep.Bills) != 1 || rep.Bills[0].SizeEnd != want || rep.Bills[0].Causes != events || rep.Bills[0].Repeats != sent["usage"]-events {
			t.Errorf("%s: %+v, want the size %s of %d causes", when, rep.Bills, want, events)
		}
		if _, err := usage.New(reader).Check(t.Context(), req, func(marks, cause *usage.Bill) { t.Errorf("%s: marks say %+v, rows %+v", when, marks, cause) }); err != nil {
			t.Errorf("%s: %v", when, err)
		}
		aligned, err := series.New(reader).Align(t.Context(), series.Request{Topic: "cpu", Metric: "bytes", From: from, To: to, Align: series.Sum, Period: time.Hour, Reduce: series.Sum})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		sum := 0.0
		for _, g := range aligned.Groups {
			for _, p := range g.Points {
				sum += float64(*p.Value)
			}
		}
		if want := float64(len(ways) * 57); sum != want {
			t.Errorf("%s: the points add up to %g, want %g", when, sum, want)
		}
		page, err := trail.New(reader).Page(t.Context(), trail.Request{Topic: "trail", Scopes: []string{"s"}, Actors: []string{"u-1"}, Limit: 100})
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if uint64(len(page.Entries)) != events || slices.ContainsFunc(page.Entries, func(c trail.Entry) bool { return c.Events != 1 }) {
			t.Errorf("%s: %d requests, want %d of one event each: %+v", when, len(page.Entries), events, page.Entries)
		}
	}
	inViews := func(when string, names ...string) {
		t.Helper()
		for _, name := range names {
			e.examined(name)
			if got := e.count("SELECT count() FROM %s", e.table(name+schemas.ViewOnce)); got != events {
				t.Errorf("%s: %d events of %s count, want %d", when, got, name, events)
			}
		}
	}
	meter := topics["disputed"]
	for _, send := range ways {
		send(&meter, sameEvent(&meter, n, 50), sameEvent(&meter, n, 50), sameEvent(&meter, n, 51), sameEvent(&meter, n, 50))
		n++
	}
	e.finalUsage("disputed")
	contradict := func(when string) {
		t.Helper()
		found, err := usage.New(reader).Contradictions(t.Context(), usage.Request{Topic: "disputed", From: from, To: to})
		if err != nil || found == nil || found.Count != uint64(len(ways)) || len(found.Pairs) != len(ways) {
			t.Fatalf("%s: %+v, %v; want %d copies that contradict", when, found, err, len(ways))
		}
		for _, pair := range found.Pairs {
			if pair.Counts.Delta != 50 || pair.Copy.Delta != 51 || pair.Counts.Cause != pair.Copy.Cause {
				t.Errorf("%s: %+v", when, pair)
			}
		}
	}
	contradict("at once")
	check("at once")
	e.rollups()
	e.derived("usage")
	e.derived("disputed")
	contradict("derived")
	inViews("derived", "usage", "cpu", "trail", "orders")
	check("derived")
	for _, name := range []string{"usage", "cpu", "trail", "orders"} {
		if _, err := rebuild.Run(t.Context(), rebuild.Config{NATS: e.connect(), Registry: e.reg, DB: e.db}, name, true); err != nil {
			t.Fatal(err)
		}
		e.verified(name)
	}
	e.derived("usage")
	inViews("rebuilt", "usage", "cpu", "trail", "orders")
	check("rebuilt")
	for into, from := range map[string]string{"again": "orders", "fromlog": "log"} {
		j, err := e.replayer(nil).Begin(t.Context(), replay.Request{Topic: from, Into: into})
		if err == nil {
			_, err = j.Run(t.Context(), nil, replay.Pace{})
		}
		if err != nil {
			t.Fatal(err)
		}
		e.stored(into, sent[from], time.Minute)
		e.verified(into)
		inViews("replayed", into)
	}
}

// Events of one id that come too often in what no part of Almanac made are dead letters that name the remedy, and count once after it.
func TestOneIDTooOften(t *testing.T) {
	t.Parallel()
	topic, err := schemas.Topic{Name: "orders", OnceBy: []string{schemas.ColMessage}, Lanes: 1}.Declared()
	if err != nil {
		t.Fatal(err)
	}
	e := running(t, topic)
	base, _ := e.gateway()
	const times = 40
	ways := sameWays(t, e, base)
	sent, n := uint64(0), 0
	for _, send := range ways {
		send(&topic, slices.Repeat([]producer.Event{sameEvent(&topic, n, 1)}, times)...)
		sent += times
		n++
	}
	for _, l := range e.lettersOf("orders", 2) {
		// Of JSON the lines that are too many, of a frame all.
		if l.Reason != "same-id" || l.Events != times && l.Events != times-schemas.MaxSameIDs || !strings.Contains(l.Detail, "almanac dead retry orders") {
			t.Errorf("%d events of %s: %s: %s", l.Events, l.Subject, l.Reason, l.Detail)
		}
	}
	e.stored("orders", sent-2*times+schemas.MaxSameIDs, time.Minute)
	if did := e.resolve(deadletters.Request{Topic: "orders"}); did[deadletters.Retried] != 2 || len(did) != 1 {
		t.Errorf("of two letters %v", did)
	}
	e.stored("orders", sent, time.Minute)
	e.lettersOf("orders", 0)
	e.verified("orders")
	e.rollups()
	e.examined("orders")
	if got := e.count("SELECT count() FROM %s", e.table("orders"+schemas.ViewOnce)); got != uint64(n) {
		t.Errorf("%d events count, want %d", got, n)
	}
}
