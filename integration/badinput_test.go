package integration

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// bad is a message that must end as dead letters.
type bad struct {
	name, subject, payload string
	headers                []string
	reason                 string
	detail                 []string // parts of the error's text
	events                 int      // 0: one
	dead                   string   // payload of the dead letter; "": the message's
}

// frameOf encodes events as a producer does.
func frameOf(t testing.TB, topic schemas.Topic, events ...producer.Event) (schemas.Frame, []byte) {
	t.Helper()
	topic, err := topic.Declared()
	if err != nil {
		t.Fatal(err)
	}
	b := frame.NewBuilder(&topic)
	for _, ev := range events {
		b.Append(&ev, ev.Time.UnixNano(), schemas.NewID(ev.Time.UnixNano()))
	}
	f, payload := b.Encode()
	return f, bytes.Clone(payload)
}

// headersOf are a frame's headers with some set to other values, or taken away
// when the value is "-".
func headersOf(f schemas.Frame, change ...string) (list []string) {
	h := nats.Header{}
	f.SetHeaders(h)
	for i := 0; i < len(change); i += 2 {
		if h.Set(change[i], change[i+1]); change[i+1] == "-" {
			h.Del(change[i])
		}
	}
	for k, v := range h {
		list = append(list, k, v[0])
	}
	return list
}

func badMessages(t testing.TB) []bad {
	feb2 := time.Date(2026, 2, 2, 12, 0, 0, 0, time.UTC)
	three := func(topic schemas.Topic) (schemas.Frame, []byte) {
		return frameOf(t, topic, producer.Event{Time: feb2, Message: "a"}, producer.Event{Time: feb2.Add(time.Hour), Message: "b"}, producer.Event{Time: feb2, Message: "c"})
	}
	f, payload := three(newTopic("app"))
	other, otherPayload := three(newTopic("app", schemas.Field{Name: "more", Type: schemas.TypeInt64}))
	noise := make([]producer.Event, 14)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise { // compresses to some 85 %, whatever the method
		text := make([]byte, 60<<10)
		for k := range text {
			text[k] = byte(' ' + rnd.IntN(94))
		}
		noise[i] = producer.Event{Time: feb2, Message: string(text)}
	}
	big, bigPayload := frameOf(t, newTopic("app"), noise...)
	f.Producer, f.Seq = "0123456789abcdef", 7
	next := func() schemas.Frame { // under a number that none had before
		f.Seq++
		return f
	}
	lie := func(name, reason string, detail string, change ...string) bad {
		b := bad{name: name, subject: "events.app.2026-02.1", payload: string(payload), headers: headersOf(next(), change...), reason: reason, detail: []string{detail}, events: 3}
		if reason == "bad-headers" { // nothing they say counts
			b.events = 1
		}
		return b
	}
	in := func(d time.Duration) (subject, payload string) {
		ts := time.Now().Add(d).UTC()
		return "events.app." + ts.Format("2006-01") + ".0", fmt.Sprintf(`{"ts":%q}`, ts.Format(time.RFC3339Nano))
	}
	soon, soonEvent := in(25 * time.Hour)
	far, farEvent := in(5 * 365 * 24 * time.Hour)
	large := `{"ts":"2026-02-02T12:00:00Z","message":"` + strings.Repeat("x", schemas.MaxEventBytes+1) + `"}`
	mixed := `{"ts":"2026-02-02T12:00:01Z","message":"good in bad company"}` + "\n" +
		"nonsense\n" + `{"ts":0}` + "\n\n" + `[1]` + "\n" + `{"ts":"2026-02-02T12:00:02Z","message":"good in bad company"}` + "\n" + "more nonsense\n"
	list := []bad{
		{name: "unknown topic", subject: "events.nosuch.2026-02.0", payload: `{"message":"x"}`, reason: "unknown-topic", detail: []string{`"nosuch"`}},
		{name: "bad topic name", subject: "events.Bad-Topic.2026-02.0", payload: `{"message":"x"}`, reason: "bad-topic-name", detail: []string{`"Bad-Topic"`, "[a-z][a-z0-9_]{0,62}"}},
		{name: "reserved topic name", subject: "events.leases.2026-02.0", payload: `{"message":"x"}`, reason: "bad-topic-name", detail: []string{"reserved"}},
		{name: "month 13", subject: "events.app.2026-13.0", payload: `{"ts":"2026-12-31T23:59:59Z"}`, reason: "bad-month", detail: []string{`"2026-13"`, "01 to 12"}},
		{name: "month 00", subject: "events.app.2026-00.0", payload: `{"ts":"2026-01-01T00:00:00Z"}`, reason: "bad-month"},
		{name: "no month", subject: "events.app.yesterday.0", payload: `{}`, reason: "bad-month"},
		{name: "lane too high", subject: "events.app.2026-02.2", payload: `{}`, reason: "bad-subject", detail: []string{`lane "2"`, "0 to 1"}},
		{name: "lane no number", subject: "events.app.2026-02.zero", payload: `{}`, reason: "bad-subject", detail: []string{`lane "zero"`}},
		{name: "lane 00", subject: "events.app.2026-02.00", payload: `{}`, reason: "bad-subject"},
		{name: "time 0", subject: "events.app.2026-02.0", payload: `{"ts":0}`, reason: "time-zero"},
		{name: "negative time", subject: "events.app.2026-02.0", payload: `{"ts":-86400}`, reason: "time-too-old", detail: []string{"1969-12-31"}},
		{name: "year 1", subject: "events.app.2026-02.0", payload: `{"ts":"0001-01-01T00:00:00Z"}`, reason: "bad-json-event", detail: []string{`"ts"`}},
		{name: "25 hours ahead", subject: soon, payload: soonEvent, reason: "time-too-far-ahead", detail: []string{"24h"}},
		{name: "5 years ahead", subject: far, payload: farEvent, reason: "time-too-far-ahead", detail: []string{"24h"}},
		{name: "wrong month", subject: "events.app.2026-03.0", payload: `{"ts":"2026-02-28T23:59:59.999999999Z"}`, reason: "wrong-month", detail: []string{"2026-02-28T23:59:59.999999999Z", "2026-03"}},
		{name: "event too large", subject: "events.app.2026-02.0", payload: large, reason: "event-too-large", detail: []string{"65537", "65536"}},
		{name: "garbage", subject: "events.app.2026-11.0", payload: "\x00\x01garbage\xff", reason: "not-json"},
		{name: "nothing", subject: "events.app.2026-02.0", payload: "", reason: "not-json"},
		{name: "cut JSON", subject: "events.app.2026-02.0", payload: `{"message":"x`, reason: "not-json"},
		{name: "JSON array", subject: "events.app.2026-02.0", payload: `[{}]`, reason: "bad-json-event", detail: []string{"an array"}},
		{name: "JSON too deep", subject: "events.app.2026-02.0", payload: strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000), reason: "not-json"},
		{name: "time no time", subject: "events.app.2026-02.0", payload: `{"ts":"tomorrow"}`, reason: "bad-json-event", detail: []string{"tomorrow"}},
		{name: "good and bad lines", subject: "events.app.2026-02.1", payload: mixed, reason: "not-json", events: 2, dead: "nonsense\nmore nonsense\n"},

		lie("rows", "headers-lie", "is 2, the block has 3 rows", schemas.HeaderRows, "2"),
		lie("bytes", "headers-lie", schemas.HeaderBytes, schemas.HeaderBytes, "1"),
		lie("first time", "headers-lie", "times", schemas.HeaderMinTs, fmt.Sprint(feb2.UnixNano()-1)),
		lie("last time", "headers-lie", "times", schemas.HeaderMaxTs, fmt.Sprint(feb2.UnixNano())),
		lie("schema of tomorrow", "unknown-schema", "version 2", schemas.HeaderSchema, "2"),
		lie("schema 0", "unknown-schema", "version 0", schemas.HeaderSchema, "0"),
		lie("no rows header", "bad-headers", schemas.HeaderRows, schemas.HeaderRows, "-"),
		lie("rows 0", "bad-headers", schemas.HeaderRows, schemas.HeaderRows, "0"),
		lie("rows -3", "bad-headers", schemas.HeaderRows, schemas.HeaderRows, "-3"),
		lie("no time header", "bad-headers", schemas.HeaderMinTs, schemas.HeaderMinTs, "-"),
		lie("time no number", "bad-headers", schemas.HeaderMaxTs, schemas.HeaderMaxTs, "noon"),
		lie("no schema", "bad-headers", schemas.HeaderSchema, schemas.HeaderSchema, "-"),
		lie("seq 0", "bad-headers", "seq 0", schemas.HeaderSeq, "0"),
		lie("no seq", "bad-headers", schemas.HeaderSeq, schemas.HeaderSeq, "-"),
		lie("long producer", "bad-headers", "at most 64", schemas.HeaderProducer, strings.Repeat("p", 65)),

		{name: "frame of another schema", subject: "events.app.2026-02.0", payload: string(otherPayload), headers: headersOf(other), reason: "bad-columns", events: 3},
		{name: "frame in a wrong month", subject: "events.app.2026-01.0", payload: string(payload), headers: headersOf(next()), reason: "wrong-month", events: 3},
		{name: "frame too large", subject: "events.app.2026-02.0", payload: string(bigPayload), headers: headersOf(big), reason: "frame-too-large", detail: []string{fmt.Sprint(schemas.MaxFrameBytes)}, events: len(noise)},
		{name: "frame cut short", subject: "events.app.2026-02.0", payload: string(payload[:len(payload)-1]), headers: headersOf(next()), reason: "corrupt", events: 3},
		{name: "frame too long", subject: "events.app.2026-02.0", payload: string(payload) + "x", headers: headersOf(next()), reason: "corrupt", events: 3},
		{name: "frame that is JSON", subject: "events.app.2026-02.0", payload: `{"message":"x"}`, headers: headersOf(next()), reason: "corrupt", events: 3},
		{name: "empty frame", subject: "events.app.2026-02.0", payload: "", headers: headersOf(next()), reason: "corrupt", events: 3},
	}
	for i := range list {
		switch {
		case list[i].events == 0:
			list[i].events = 1
		case list[i].name == "rows":
			list[i].events = 2 // what its header says
		}
	}
	return list
}

// Everything a publisher can get wrong on the wire is kept whole with its own
// reason, and harms none of the thousand good events around it.
func TestBadInputOnTheWire(t *testing.T) {
	t.Parallel()
	app := newTopic("app")
	app.Lanes = 2
	e := running(t, app)
	p := e.producer("app")
	list := badMessages(t)
	const good = 1000
	for i := range good {
		p.Log(producer.Event{Time: feb(i, good), UserID: fmt.Sprintf("u-%d", i%10), Message: "good"})
		if i%10 == 0 && i/10 < len(list) {
			e.publish(list[i/10].subject, list[i/10].payload, list[i/10].headers...)
		}
	}
	e.flush(p)
	const fromMixed = 2
	e.stored("app", good+fromMixed, 30*time.Second)
	r := e.reader()
	var letters []query.DeadLetter
	eventually(t, 20*time.Second, func() (err error) {
		if letters, err = r.Dead(t.Context(), "", 1000); err == nil && len(letters) < len(list)+2 {
			err = fmt.Errorf("%d dead letters, want %d", len(letters), len(list)+2)
		}
		return err
	})
	bySubject := map[string][]query.DeadLetter{}
	var dead uint64
	for _, l := range letters {
		bySubject[l.Subject] = append(bySubject[l.Subject], l)
		dead += uint64(l.Events)
	}
	for _, b := range list {
		want := b.payload
		if b.dead != "" {
			want = b.dead
		}
		i := slices.IndexFunc(bySubject[b.subject], func(l query.DeadLetter) bool {
			return l.Reason == b.reason && string(l.Payload) == want && !slices.ContainsFunc(b.detail, func(d string) bool { return !strings.Contains(l.Detail, d) })
		})
		if i < 0 {
			t.Errorf("%s: no dead letter of %s with reason %s that says %q and holds %.80q; there are %.700s", b.name, b.subject, b.reason, b.detail, want, brief(bySubject[b.subject]))
			continue
		}
		l := bySubject[b.subject][i]
		bySubject[b.subject] = slices.Delete(bySubject[b.subject], i, i+1)
		if l.Events != b.events || l.Topic != deadTopic(b.subject) || l.SourceSeq == 0 {
			t.Errorf("%s: the dead letter stands for %d events of topic %q, message %d; want %d of %q", b.name, l.Events, l.Topic, l.SourceSeq, b.events, deadTopic(b.subject))
		}
	}
	// The NDJSON message left two more: its lines 3 and 5.
	rest := slices.Concat(bySubject["events.app.2026-02.1"])
	if len(rest) != 2 || rest[0].Lines != "3" || rest[0].Reason != "time-zero" || rest[1].Lines != "5" || rest[1].Reason != "bad-json-event" {
		t.Errorf("the bad lines left %s", brief(rest))
	}
	if got := e.count("SELECT countIf(message IN ('good', 'good in bad company') AND month = 202602) FROM %s", e.table("app")); got != good+fromMixed {
		t.Errorf("%d good events are stored in February, want %d", got, good+fromMixed)
	}
	e.whole("app", good+fromMixed)
	e.resolved()
	if rep := e.verify(good + fromMixed + dead); rep.Dead != dead || rep.Stored != good+fromMixed || rep.Pending != 0 {
		t.Errorf("verify says stored %d, dead %d, pending %d; want %d, %d, 0", rep.Stored, rep.Dead, rep.Pending, good+fromMixed, dead)
	}

	// Once the topic is declared its later events are stored; the earlier stay dead.
	if _, _, err := e.reg.Apply(t.Context(), newTopic("nosuch"), false); err != nil {
		t.Fatal(err)
	}
	for lane := range 4 {
		e.publish(fmt.Sprintf("events.nosuch.2026-02.%d", lane), `{"ts":"2026-02-03T00:00:00Z"}`)
	}
	eventually(t, 20*time.Second, func() error { return e.db.Ensure(t.Context(), &[]schemas.Topic{newTopic("nosuch")}[0]) })
	e.stored("nosuch", 4, 20*time.Second)
	e.verify(good + fromMixed + dead + 4)
}

func brief(letters []query.DeadLetter) string {
	var b strings.Builder
	for _, l := range letters {
		fmt.Fprintf(&b, "[%s: %s, lines %s, %d events, %.60q] ", l.Reason, l.Detail, l.Lines, l.Events, l.Payload)
	}
	return b.String()
}

// deadTopic is the topic whose dead letters hold what was published on a subject:
// its own when that could be a topic's lane.
func deadTopic(subject string) string {
	name, _, lane, err := schemas.EventsTokens(subject)
	if _, laneErr := schemas.ParseLane(lane); err != nil || laneErr != nil || schemas.ValidateTopicName(name) != nil {
		return schemas.NoTopic
	}
	return name
}
