package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

func (e *env) reader() *query.Reader {
	e.t.Helper()
	r, err := query.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

// proof is what verify reports of a topic, or of all.
func (e *env) proof(topic string) (*verify.Report, error) {
	e.t.Helper()
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	return answered(func() (*verify.Report, error) { return v.Run(e.t.Context(), topic) })
}

// verify fails the test unless the report is clean and accounts for n events.
func (e *env) verify(accepted uint64) *verify.Report {
	e.t.Helper()
	var rep *verify.Report
	eventually(e.t, 20*time.Second, func() (err error) {
		rep, err = e.proof("")
		// Repeats that the router has not come to yet are on their way like any event.
		if err == nil && rep.OK() && rep.Accepted > accepted && rep.Pending >= rep.Accepted-accepted {
			err = fmt.Errorf("%d events are pending", rep.Pending)
		}
		return err
	})
	if !rep.OK() || rep.Accepted != accepted {
		text, _ := json.MarshalIndent(rep, "", " ")
		e.t.Errorf("verify is not clean, or does not account for %d events:\n%.4000s", accepted, text)
	}
	return rep
}

// resolved waits until nothing is on its way: no stray either, which is dead a moment
// before it is taken out of EVENTS, and counted in both.
func (e *env) resolved() {
	e.t.Helper()
	eventually(e.t, 20*time.Second, func() error {
		rep, err := e.proof("")
		if err == nil && rep.Pending > 0 {
			err = fmt.Errorf("%d events are pending", rep.Pending)
		}
		return err
	})
}

// Events are found while they are only in EVENTS, while they are in SHARDS, and
// when they are stored, and paging meets each once.
func TestQueryAtEveryStage(t *testing.T) {
	t.Parallel()
	e := start(t, newTopic("app"))
	r := e.reader()
	p := e.producer("app")
	const n = 2500
	base := time.Date(2026, 10, 31, 23, 0, 0, 0, time.UTC)
	for i := range n {
		p.Log(producer.Event{Time: base.Add(time.Duration(i) * time.Second * 3), UserID: fmt.Sprintf("u-%d", i%50), Message: fmt.Sprint(i)})
	}
	e.flush(p)
	if err := e.db.Ensure(t.Context(), &[]schemas.Topic{newTopic("app")}[0]); err != nil {
		t.Fatal(err)
	}
	pages := func(stage string) {
		t.Helper()
		seen := map[string]bool{}
		last := time.Time{}
		req := query.Request{Topic: "app", Limit: 300}
		for {
			page, err := r.Query(t.Context(), req)
			if err != nil {
				t.Fatalf("%s: %v", stage, err)
			}
			for _, raw := range page.Events {
				var ev struct {
					ID string    `json:"id"`
					Ts time.Time `json:"ts"`
				}
				if err := json.Unmarshal(raw, &ev); err != nil {
					t.Fatal(err)
				}
				if seen[ev.ID] {
					t.Fatalf("%s: %s came twice", stage, ev.ID)
				}
				if seen[ev.ID] = true; !last.IsZero() && ev.Ts.After(last) {
					t.Fatalf("%s: %s after %s", stage, ev.Ts, last)
				}
				last = ev.Ts
			}
			if page.Cursor == "" {
				break
			}
			req.Cursor = page.Cursor
		}
		if len(seen) != n {
			t.Fatalf("%s: %d events came, want %d", stage, len(seen), n)
		}
		one, err := r.Query(t.Context(), query.Request{Topic: "app", Where: "user_id = 'u-7'", Limit: 1000})
		if err != nil || len(one.Events) != n/50 {
			t.Fatalf("%s: one user has %d events, want %d (%v)", stage, len(one.Events), n/50, err)
		}
	}
	pages("in EVENTS")
	stop := e.router()
	eventually(t, 10*time.Second, func() error {
		rep, err := e.proof("app")
		if err == nil && rep.Topics[0].Shards == nil {
			err = fmt.Errorf("nothing routed yet")
		}
		return err
	})
	pages("in SHARDS")
	e.routed("app", n) // all of it: no other router routes the rest
	stop()
	e.sink()
	e.stored("app", n, 20*time.Second)
	pages("stored")
	e.verify(n)
}

func TestTailResumes(t *testing.T) {
	t.Parallel()
	e := running(t, newTopic("app"))
	p := e.producer("app")
	for i := range 10 {
		p.Log(producer.Event{UserID: "u", Message: fmt.Sprint(i)})
	}
	e.flush(p)
	e.stored("app", 10, 20*time.Second)
	read := func(from string, n int) (msgs []string, pos string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), maxWait*10*time.Second)
		defer cancel()
		err := e.reader().Tail(ctx, query.TailRequest{Topic: "app", From: from}, func(p string, raw json.RawMessage) error {
			var ev struct{ Message string }
			if err := json.Unmarshal(raw, &ev); err != nil {
				return err
			}
			msgs, pos = append(msgs, ev.Message), p
			if len(msgs) == n {
				cancel()
				return context.Canceled
			}
			return nil
		})
		if len(msgs) != n {
			t.Fatalf("%d events, want %d: %v", len(msgs), n, err)
		}
		return msgs, pos
	}
	first, pos := read("1.0", 4)
	rest, _ := read(pos, 6)
	if got := fmt.Sprint(append(first, rest...)); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("got %s", got)
	}
}
