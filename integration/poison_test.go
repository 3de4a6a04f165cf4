package integration

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/compress"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

// What the library refuses it refuses by name, at once, and nothing else is
// harmed; Log counts the same refusals by cause.
func TestBadInputToTheProducer(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"))
	for topic, want := range map[string]error{"nosuch": schemas.ErrUnknownTopic, "No Such": schemas.ErrTopicName, "leases": schemas.ErrTopicName} {
		if _, err := producer.New(t.Context(), e.connect(), producer.Config{Topic: topic}); !errors.Is(err, want) || !strings.Contains(err.Error(), topic) {
			t.Errorf("topic %q: %v, want %v", topic, err, want)
		}
	}
	if err := e.db.Ensure(t.Context(), &[]schemas.Topic{newTopic("app")}[0]); err != nil {
		t.Fatal(err)
	}
	p := e.producer("app", func(c *producer.Config) { c.Stderr = io.Discard })
	many := make([]producer.Attr, schemas.MaxAttrs+1)
	for i := range many {
		many[i] = schemas.Int64(fmt.Sprint(i), 1)
	}
	texts := map[string]bool{}
	var causes []string
	for _, c := range []struct {
		ev     producer.Event
		want   error
		detail string
	}{
		{producer.Event{Time: time.Unix(0, 0)}, schemas.ErrTimeZero, "1970-01-01T00:00:00Z"},
		{producer.Event{Time: time.Unix(-1, 0)}, schemas.ErrTimeTooOld, "1969-12-31T23:59:59Z"},
		{producer.Event{Time: time.Now().AddDate(5, 0, 0)}, schemas.ErrTimeTooFarAhead, "24h0m0s"},
		{producer.Event{Time: time.Now().Add(25 * time.Hour)}, schemas.ErrTimeTooFarAhead, "ahead of the clock, the limit is 24h0m0s"},
		{producer.Event{Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}, schemas.ErrTimeTooFarAhead, "9999"},
		{producer.Event{Message: strings.Repeat("x", schemas.MaxEventBytes+1-len("test"))}, schemas.ErrEventTooLarge, "65537 bytes, the limit is 65536"},
		{producer.Event{Attrs: many}, schemas.ErrTooManyAttrs, "257 attributes, the limit is 256"},
		{producer.Event{Attrs: []producer.Attr{schemas.String("", "x")}}, schemas.ErrAttrName, "0 bytes"},
		{producer.Event{Attrs: []producer.Attr{schemas.String(strings.Repeat("k", 257), "x")}}, schemas.ErrAttrName, "257 bytes"},
	} {
		err := p.Publish(t.Context(), c.ev)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.detail) || texts[err.Error()] {
			t.Errorf("got %v, want %v with %q, and a text of its own", err, c.want, c.detail)
		} else {
			texts[err.Error()] = true
		}
		p.Log(c.ev)
		causes = append(causes, schemas.Reason(c.want))
		if err := p.Publish(t.Context(), producer.Event{Message: "good"}); err != nil {
			t.Fatal(err)
		}
	}
	largest := producer.Event{Message: strings.Repeat("x", schemas.MaxEventBytes-len("test"))}
	if err := p.Publish(t.Context(), largest); err != nil {
		t.Errorf("an event of exactly the limit: %v", err)
	}
	for cause, n := range p.Stats().Dropped {
		if want := len(causes) - len(slices.DeleteFunc(slices.Clone(causes), func(c string) bool { return c == cause })); int(n) != want {
			t.Errorf("Log dropped %d for %s, want %d", n, cause, want)
		}
	}
	if got := p.Stats().DroppedTotal(); got != uint64(len(causes)) {
		t.Errorf("Log dropped %d, want %d", got, len(causes))
	}
	// The drops are reported as events too.
	eventually(t, 20*time.Second, func() error {
		if got := e.count("SELECT toUInt64(sum(toUInt64OrZero(attributes['%s']))) FROM %s WHERE type = '%s'", producer.AttrCount, e.table("app"), producer.TypeDropped); got != uint64(len(causes)) {
			return fmt.Errorf("%d drops are reported, want %d", got, len(causes))
		}
		return nil
	})
	reports := e.count("SELECT count() FROM %s WHERE type = '%s'", e.table("app"), producer.TypeDropped)
	e.stored("app", uint64(len(causes)+1)+reports, 20*time.Second)
	e.verify(uint64(len(causes)+1) + reports)
}

// Bytes that are not UTF-8 are kept as they are and marked; a query's answer is
// JSON all the same.
func TestInvalidUTF8(t *testing.T) {
	t.Parallel()
	e := start(t, oneLane("app", 0))
	p := e.producer("app")
	const broken = "a\xed\xb9\xa4b\xff\x00c"
	ts := time.Date(2026, 2, 3, 0, 0, 0, 0, time.UTC)
	for _, ev := range []producer.Event{
		{Time: ts, Type: "message", Message: broken},
		{Time: ts, Type: "user_id", UserID: broken, Message: "library"},
		{Time: ts, Type: "attributes", Attrs: []producer.Attr{schemas.String("k\xff", broken)}},
		{Time: ts, Type: "", Message: "whole: é"},
	} {
		if err := p.Publish(t.Context(), ev); err != nil {
			t.Fatal(err)
		}
	}
	e.publish("events.app.2026-02.0", `{"ts":"2026-02-03T00:00:00Z","type":"message","message":"a`+"\xed\xb9\xa4"+`b`+"\xff"+`\u0000c"}`)
	if err := e.db.Ensure(t.Context(), &[]schemas.Topic{oneLane("app", 0)}[0]); err != nil {
		t.Fatal(err)
	}
	r := e.following()
	fresh, _ := e.answer(r, query.Request{Topic: "app"})
	if len(fresh) != 4 { // bare JSON is read once it is routed
		t.Errorf("%d events are found in EVENTS, want 4", len(fresh))
	}
	e.router()
	e.sink()
	e.stored("app", 5, 20*time.Second)
	for _, c := range []struct {
		sql  string
		want uint64
	}{
		{"countIf(type = 'message' AND hex(message) = '%s')", 2},
		{"countIf(type = 'user_id' AND hex(user_id) = '%s')", 1},
		{"countIf(hex(attributes[unhex('6BFF')]) = '%s')", 1},
	} {
		sql := fmt.Sprintf(c.sql, strings.ToUpper(hex.EncodeToString([]byte(broken))))
		if got := e.count("SELECT %s FROM %s", sql, e.table("app")); got != c.want {
			t.Errorf("%s is %d, want %d", sql, got, c.want)
		}
	}
	if got := e.count("SELECT countIf(attributes['%s'] = if(type = '', 'none', type)) FROM %s", schemas.AttrInvalidUTF8, e.table("app")); got != 4 {
		t.Errorf("%d events are marked with the field that is not UTF-8, want 4", got)
	}
	if stored, _ := e.answer(r, query.Request{Topic: "app"}); len(stored) != 5 {
		t.Errorf("%d events are found, want 5", len(stored))
	}
	e.whole("app", 5)
	e.verify(5)
}

// Frames with bits flipped or the end cut off are refused, all of them. Frames
// whose inside is broken and whose checksum fits it are refused or stored whole;
// none stops the lane, the shard or a query.
func TestCorruptFrames(t *testing.T) {
	t.Parallel()
	topic := newTopic("app", schemas.Field{Name: "n", Type: schemas.TypeInt64}, schemas.Field{Name: "ok", Type: schemas.TypeBool}, schemas.Field{Name: "word", Type: schemas.TypeLowCardinality})
	topic.Lanes = 1
	e := running(t, topic)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	const rounds, rows = 500, 3
	declared, _ := topic.Declared()
	var reader frame.Reader
	for i := range rounds {
		events := make([]producer.Event, rows)
		for k := range events {
			events[k] = producer.Event{Time: feb(i, rounds).Add(time.Duration(k)), Level: "info", UserID: "u", Message: fmt.Sprintf("%d %d", i, k), Attrs: []producer.Attr{
				schemas.String("a", "b"), schemas.Int64("n", int64(k)), schemas.Bool("ok", true), schemas.String("word", "w"),
			}}
		}
		f, payload := frameOf(t, topic, events...)
		send := func(payload []byte) { e.publish("events.app.2026-02.0", string(payload), headersOf(f)...) }

		flipped := bytes.Clone(payload)
		for range 1 + rnd.IntN(3) {
			flipped[rnd.IntN(len(flipped))] ^= 1 << rnd.IntN(8)
		}
		if !bytes.Equal(flipped, payload) {
			send(flipped)
		} else {
			send(payload[1:])
		}
		send(payload[:rnd.IntN(len(payload))])

		if err := reader.Open(payload, &declared, 1); err != nil {
			t.Fatal(err)
		}
		raw := bytes.Clone(reader.Raw())
		raw[rnd.IntN(len(raw))] ^= 1 << rnd.IntN(8)
		w := compress.NewWriter(compress.LevelZero, compress.ZSTD)
		if err := w.Compress(raw); err != nil {
			t.Fatal(err)
		}
		if reader.Open(w.Data, &declared, 1) == nil { // headers that tell the truth, to get as far as can be
			f.Rows, f.MinTs, f.MaxTs = reader.Rows(), reader.Ts(0), reader.Ts(0)
			for k := range reader.Rows() {
				f.MinTs, f.MaxTs = min(f.MinTs, reader.Ts(k)), max(f.MaxTs, reader.Ts(k))
			}
		}
		send(w.Data)
	}
	e.routed("app", 3*rounds*rows)
	cp := e.checkpoints("app")[0]
	t.Logf("of %d frames with a checksum that fits, %d were stored", rounds, cp.Frames)
	if cp.Dead < 2*rounds*rows || cp.Frames == 0 {
		t.Errorf("%d events are dead letters and %d frames were routed, want %d or more, and some", cp.Dead, cp.Frames, 2*rounds*rows)
	}
	e.stored("app", cp.Rows, 30*time.Second)
	if events, _ := e.answer(e.reader(), query.Request{Topic: "app", Limit: 1000}); len(events) != int(cp.Rows) {
		t.Errorf("a query finds %d events, want %d", len(events), cp.Rows)
	}
	e.whole("app", cp.Rows)
	e.verify(3 * rounds * rows)
}

// Messages as large as the stream takes become dead letters too, and do not stop
// the lane.
func TestLargestMessages(t *testing.T) {
	t.Parallel()
	e := running(t, oneLane("app", 0))
	const limit = schemas.MaxMessageBytes - 100 // room for the headers a client adds
	garbage := strings.Repeat("g", limit)
	e.publish("events.app.2026-02.0", garbage)
	e.publish("events.nosuch.2026-02.0", garbage)
	e.publish("events.app.2026-02.0", strings.Repeat("g\n", limit/2))
	e.publish("events.app.2026-02.0", strings.Repeat("{}\n", limit/3)) // now is not in February
	e.publish("events.app.2026-02.0", `{"ts":"2026-02-02T00:00:00Z","message":"after them"}`)
	e.stored("app", 1, 20*time.Second)
	e.resolved()
	rep := e.verify(1 + 1 + 1 + uint64(limit/2) + uint64(limit/3))
	if rep.Stored != 1 {
		t.Errorf("%d events are stored, want 1", rep.Stored)
	}
}
