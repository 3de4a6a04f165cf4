package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/internal/gateway/inputtest"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

// recorded is a topic of kind audit in stages.
type recorded struct {
	*staged
	trail *audit.Trail
	cloud []schemas.Event // real records; absent without the file
	// rows were accepted, of which so many are events that count.
	rows, count int
	gone        bool // the actor was erased
}

// TestTrailsUnderKills crosses the acceptance of kind audit with what may happen to it. Changes that are announced and
// concluded several times at one nanosecond, a body of 5 MiB, the 543 events of one request in one second, and real
// records of CloudTrail, sent twice or more and shuffled, as events and as JSON, with bad ones among them, are read in
// each stage while router, sink, rollups and the engine are killed in turn. Every answer is exact: once all is stored, while it
// is derived, when the marks were lost, a partition too, after rebuilds, in a second topic into which it is replayed, and
// after an actor was erased. While NATS is away an announcement fails by its deadline. ALMANAC_TRAIL_KILLS kills in
// each stage: four kill each part once.
func TestTrailsUnderKills(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	topic := schemas.Topic{Name: "trail", Kind: kinds.Audit, Lanes: 2, Rotate: schemas.Rotation{Rows: 1000}}
	m := &recorded{staged: stagedTopic(ctx, t, topic, number("ALMANAC_TRAIL_KILLS", 1)), cloud: cloudTrail(t)}
	m.answers, m.counted, m.bad = m.trails, m.allCounted, badRecords
	if m.cloud == nil {
		t.Log("no folder shared/data: without CloudTrail")
	}
	p, err := producer.Connect(ctx, m.natsURL, producer.Config{Topic: topic.Name, Policy: producer.Block})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close(context.WithoutCancel(ctx)) })
	m.trail = audit.New(p)
	m.run([]stage{
		{"sent", m.send},
		{"derived", m.derive},
		{"marks lost", m.losePositions},
		{"partition lost, repaired", m.repair},
		{"rebuilt", func() { m.rebuild("trail") }},
		{"replayed", m.replay},
		{"replayed and rebuilt", func() { m.rebuild(copyTopic) }},
		{"erased", m.eraseActor},
		{"erased and rebuilt", func() { m.rebuild("trail") }},
	})
}

// badRecords are refused, each for a reason of its own. The first comes with a good line.
var badRecords = []badLine{
	{`"type":"change","request_id":"b-1","scope":"bad","state":"done"`, "bad-value", `state is "done", it must be one of`},
	{`"type":"request","scope":"bad"`, "bad-value", "request_id is missing"},
	{`"type":"request","request_id":"b-3"`, "bad-value", "scope is missing"},
	{`"type":"request","request_id":"b-4","scope":"bad","category":"gossip"`, "bad-value", `category is "gossip", it must be one of`},
	{`"type":"change","request_id":"b-5","scope":"bad","after":"not json"`, "bad-value", `after is "not json", it must be JSON`},
}

const (
	auditScope = "projects/p"
	cloudScope = "123837392027"
	awayScope  = "projects/away"
	// largeBody is how many bytes the large change's body has.
	largeBody = 5 << 20
)

var changedAt = time.Date(2026, 2, 1, 12, 0, 0, 1, time.UTC)

// changes are those of the acceptance, with how each ends, if it does.
func changes() (out []audit.Change, ends []audit.State) {
	add := func(request, resource, actor string, before, after any, end audit.State) {
		out = append(out, audit.Change{Request: request, Scope: auditScope, Service: "iam", Method: "Update", Type: "role", Resource: resource, Actor: actor, Before: before, After: after, Time: changedAt})
		ends = append(ends, end)
	}
	add("r-pair", "roles/x", "u-7", map[string]string{"name": "old"}, map[string]string{"name": "new"}, audit.RolledBack)
	add("r-large", "roles/y", "u-8", nil, json.RawMessage(`"`+strings.Repeat("x", largeBody-2)+`"`), audit.Committed)
	add("r-lost", "roles/z", "u-7", nil, nil, "")
	add("r-leaving", "roles/v", "u-9", nil, nil, audit.Committed)
	return out, ends
}

// activity are the events of one request within one second, three of them at one nanosecond.
func activity() (out []schemas.Event) {
	add := func(kind string, ns int) {
		out = append(out, made(audit.Activity{Type: kind, Request: "r-1", Scope: auditScope, Service: "svc", Time: changedAt.Add(time.Duration(ns))}.Event()))
	}
	for i := range 500 {
		add("log", i*1000)
	}
	for i := range 40 {
		add("message", 600_000+i)
	}
	for _, kind := range []string{"request", "response", "exit"} {
		add(kind, 700_000)
	}
	return out
}

// cloudTrail are real records as events; nil where the folder is absent.
func cloudTrail(t *testing.T) (out []schemas.Event) {
	t.Helper()
	if inputtest.DataDir(t) == "" {
		return nil
	}
	for line := range strings.Lines(string(inputtest.File(t, "audit-cloudtrail.jsonl.gz"))) {
		var r struct {
			EventID, EventType, EventSource, EventName, RecipientAccountID string
			EventTime                                                      time.Time
			UserIdentity                                                   struct{ UserName string }
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, made(audit.Activity{Type: r.EventType, Request: r.EventID, Scope: r.RecipientAccountID, Service: r.EventSource, Method: r.EventName, Actor: r.UserIdentity.UserName, Time: r.EventTime}.Event()))
	}
	if len(out) != 1220 {
		t.Fatalf("%d records", len(out))
	}
	return out
}

// send sends all while parts are killed.
func (m *recorded) send() {
	m.t.Helper()
	all := append(activity(), m.cloud...)
	written := make(chan error, 1)
	go func() { written <- errors.Join(m.publish(all...), m.publish(m.cloud...)) }()
	var order []func() error
	list, ends := changes()
	for i := range list {
		m.count++
		if ends[i] != "" {
			m.count++
		}
		for range meterTimes {
			m.rows++
			order = append(order, func() error { return m.trail.Before(m.ctx, list[i]) })
			if ends[i] != "" {
				m.rows++
				order = append(order, func() error { return m.trail.After(m.ctx, list[i], ends[i]) })
			}
		}
	}
	events := activity()
	for at := 0; at < len(events); at += 50 {
		order = append(order, func() error { m.lines(events[at:min(at+50, len(events))]); return nil })
	}
	for i := range badRecords {
		order = append(order, func() error { m.badRecord(i); return nil })
	}
	m.rows, m.count = m.rows+2*len(events)+2*len(m.cloud)+1, m.count+len(events)+len(m.cloud)+1
	m.shuffled(len(order), func(i int) {
		if err := order[i](); err != nil {
			m.t.Fatal(err)
		}
	})
	if err := <-written; err != nil {
		m.t.Fatal(err)
	}
	m.away()
	m.heal(true)
	m.stored("trail")
}

// away announces a change while NATS is: it fails by its deadline, and may be stored all the same once NATS is back.
func (m *recorded) away() {
	m.t.Helper()
	m.NATS.Kill()
	ctx, cancel := context.WithTimeout(m.ctx, time.Second)
	defer cancel()
	err := m.trail.Before(ctx, audit.Change{Request: "r-away", Scope: awayScope, Type: "role", Resource: "x", Time: changedAt})
	if !errors.Is(err, producer.ErrOutcomeUnknown) && !errors.Is(err, context.DeadlineExceeded) {
		m.t.Errorf("an announcement while NATS is away: %v", err)
	}
	m.start(m.NATS)
	m.ready(m.NATS)
	list, _ := changes()
	again, cancel := context.WithTimeout(m.ctx, recoveryLimit)
	defer cancel()
	if err := m.trail.Before(again, list[0]); err != nil { // it comes after what waits
		m.t.Fatal(err)
	}
	m.rows++
}

// lines publishes events as one message of lines.
func (m *recorded) lines(events []schemas.Event) {
	m.t.Helper()
	var b strings.Builder
	for i := range events {
		e := &events[i]
		_, _ = fmt.Fprintf(&b, `{"ts":%q,"type":%q,"request_id":"r-1","scope":%q,"service":"svc"}`+"\n", e.Time.Format(time.RFC3339Nano), e.Type, auditScope)
	}
	m.json(events[0].Time, b.String())
}

// badRecord sends what is not an event of the topic.
func (m *recorded) badRecord(n int) {
	m.t.Helper()
	line := fmt.Sprintf(`{"ts":%q,%s}`, changedAt.Format(time.RFC3339Nano), badRecords[n].rest)
	if n == 0 {
		line += "\n" + fmt.Sprintf(`{"ts":%q,"type":"request","request_id":"r-among","scope":%q}`, changedAt.Format(time.RFC3339Nano), auditScope)
	}
	m.json(changedAt, line)
}

// losePositions takes the marks of copies away from under the readers of the trail.
func (m *recorded) losePositions() {
	m.t.Helper()
	if err := derived.Of(m.db).DropAll(m.ctx, &m.topic, m.reg.DerivedDropper("trail")); err != nil {
		m.t.Fatal(err)
	}
	m.exact("the marks lost")
	m.derive()
}

// eraseActor erases one from both topics.
func (m *recorded) eraseActor() {
	m.t.Helper()
	m.erase("u-9", 2*meterTimes, nil, func() { m.gone = true })
}
