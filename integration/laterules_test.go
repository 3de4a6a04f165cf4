package integration

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
	"github.com/almanac-events/almanac/schemas/privacy"
)

var lateKey = []byte("0123456789abcdef0123456789abcdef")

func withLateKey(c *router.Config) { c.PrivacyKey = lateKey }

// ruled adds rules to a topic, and waits as `topics apply` does.
func (e *env) ruled(topic string, rules ...schemas.Private) schemas.Topic {
	e.t.Helper()
	t, err := e.reg.Topic(e.t.Context(), topic)
	if err != nil {
		e.t.Fatal(err)
	}
	t.PII = append(t.PII, rules...)
	t, _, err = e.reg.Apply(e.t.Context(), t, false)
	if err != nil {
		e.t.Fatal(err)
	}
	rev, err := e.reg.TopicRevision(e.t.Context(), topic)
	if err != nil {
		e.t.Fatal(err)
	}
	behind, err := e.reg.AwaitSeen(e.t.Context(), schemas.RoleRouter, rev, maxWait*time.Minute)
	if err != nil || len(behind) > 0 {
		e.t.Fatalf("not seen by %v: %v", behind, err)
	}
	return t
}

// A producer that started before its topic got a rule logs all the while. Whatever it logged after the rule was
// applied is stored under it, in SHARDS and in ClickHouse, each event once. A rule that it knew is applied once.
func TestRuleHoldsForProducersThatRun(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	topic.PII = []schemas.Private{{Field: "phone", Rule: schemas.PrivacyHash}}
	e := running(t, topic)
	e.router(withLateKey) // beside the one without a key, whose lanes drop what they should hash
	email, user := schemas.Private{Field: "email", Rule: schemas.PrivacyDrop}, schemas.Private{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}

	var n atomic.Int64 // events logged
	end := make(chan struct{})
	var logging sync.WaitGroup
	var producers []*producer.Producer
	for range 3 {
		p := e.producer("app", func(c *producer.Config) { c.PrivacyKey = lateKey })
		producers = append(producers, p)
		logging.Go(func() {
			pace := time.NewTicker(time.Millisecond)
			defer pace.Stop()
			for {
				select {
				case <-end:
					return
				case <-pace.C:
				}
				for range 5 {
					p.Log(producer.Event{Message: strconv.FormatInt(n.Add(1), 10), UserID: "ada", Attrs: []producer.Attr{producer.String("email", "CLEAR@example.org"), producer.String("phone", "123")}})
				}
			}
		})
	}
	logged := func(more int64) {
		t.Helper()
		from := n.Load()
		eventually(t, 20*time.Second, func() error {
			if n.Load() < from+more {
				return fmt.Errorf("%d events", n.Load()-from)
			}
			return nil
		})
	}
	eventually(t, 20*time.Second, func() error {
		if e.routedSoFar("app") == 0 {
			return errors.New("nothing is routed yet")
		}
		return nil
	})
	now := e.ruled("app", email, user)
	after := n.Load() + 1 // the first that was logged after the verb had returned
	logged(1000)
	close(end)
	logging.Wait()
	for _, p := range producers {
		e.flush(p)
		if s := p.Stats(); len(s.Dropped) > 0 {
			t.Fatalf("dropped: %v", s.Dropped)
		}
	}
	all := uint64(n.Load())
	e.stored("app", all, time.Minute)
	e.whole("app", all)
	e.verified("app")

	phone, _, _ := privacy.Ruled(&topic, "phone", "123", lateKey)
	hashed, _, _ := privacy.Ruled(&now, schemas.ColUserID, "ada", lateKey)
	for what, sql := range map[string]string{
		"have the e-mail":               "toUInt64(message) >= %d AND attributes['email'] != ''",
		"have the user":                 "toUInt64(message) >= %d AND user_id NOT IN ('', '" + hashed + "')",
		"have a user of no rule":        "%d > 0 AND user_id NOT IN ('', 'ada', '" + hashed + "')",
		"have a phone in another form":  "%d > 0 AND attributes['phone'] != '" + phone + "'",
		"lack the name of what dropped": "toUInt64(message) >= %d AND NOT mapContains(attributes, 'email')",
	} {
		if got := e.count("SELECT count() FROM %s WHERE "+sql, e.table("app"), after); got != 0 {
			t.Errorf("%d of the rows %s", got, what)
		}
	}
	if got := e.count("SELECT count() FROM %s WHERE attributes['email'] != ''", e.table("app")); got == 0 {
		t.Error("no event was stored before the rule: the test shows nothing")
	}
	var r frame.Reader
	for _, m := range e.messages(schemas.StreamShards, schemas.ShardsFilter("app")) {
		p, err := schemas.ParsePlaced(m.Header)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Open(m.Data, &now, p.Schema); err != nil {
			t.Fatal(err)
		}
		for i := range r.Rows() {
			number, err := strconv.ParseInt(r.Event(i).Message, 10, 64)
			if email, _ := r.Attribute(i, "email"); err != nil || number >= after && len(email) > 0 {
				t.Fatalf("event %d has its e-mail in SHARDS: %q, %v", number, email, err)
			}
		}
	}
}

// An event that was accepted and not yet routed is found by a query, without what a rule takes that came since, and
// so are its pages and counts once it is routed. EVENTS alone has it as it came.
func TestRuleHoldsForEventsNotYetRouted(t *testing.T) {
	t.Parallel()
	topic := newTopic("app")
	e := start(t, topic)
	if err := e.db.Ensure(t.Context(), &topic); err != nil {
		t.Fatal(err)
	}
	p := e.producer("app")
	const events = 40
	log := func(from int) {
		for i := range events {
			p.Log(producer.Event{Message: fmt.Sprint(from + i), Attrs: []producer.Attr{producer.String("email", "CLEAR@example.org")}})
		}
		e.flush(p)
	}
	log(0)
	e.ruled("app", schemas.Private{Field: "email", Rule: schemas.PrivacyDrop})
	log(events)
	r := e.following()
	clean := func(when string) {
		t.Helper()
		page, err := r.Query(t.Context(), query.Request{Topic: "app", Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, raw := range page.Events {
			if seen[string(raw)] = true; bytes.Contains(raw, []byte("CLEAR")) {
				t.Fatalf("%s a query shows %s", when, raw)
			}
		}
		if len(page.Events) != 2*events || len(seen) != 2*events {
			t.Errorf("%s %d events, want %d", when, len(page.Events), 2*events)
		}
	}
	clean("before it is routed")
	e.router(withLateKey)
	for range 20 { // across the hand-over
		clean("while it is routed")
	}
	e.routed("app", 2*events)
	clean("once it is routed")
	e.sink()
	e.stored("app", 2*events, 20*time.Second)
	clean("once it is stored")
	if got := e.count("SELECT count() FROM %s WHERE attributes['email'] != ''", e.table("app")); got != 0 {
		t.Errorf("%d rows have the e-mail", got)
	}
	e.verified("app")
}
