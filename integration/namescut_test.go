package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS is cut, and the numbers of its dead letters and frames are given to others.
// What was printed before names nothing any more: it is refused, and the letter that has
// the number since is not dropped in its place. What stayed goes by its name as before.
func TestNamesOfWhatACutTook(t *testing.T) {
	t.Parallel()
	d := startOnDisk(t, oneLaneTopic())
	stop := d.router()
	d.sink()
	month := schemas.MonthOf(time.Now().UnixNano())
	n := 0
	say := func(form string, events int) {
		for range events {
			n++
			d.publish(schemas.EventsSubject("app", month, 0), fmt.Sprintf(form, n))
		}
	}
	const good, bad = `{"message":"good %d"}`, "bad %d"
	// The cut is at the first frame, and dead letters are routed again after it: letters stand where there were letters, whatever
	// the router takes at once.
	say(bad, 30)
	d.routed("app", 30)
	say(good, 6)
	d.routed("app", 36)
	say(bad, 20)
	letters := d.lettersOf("app", 50)
	say(good, 6)
	places := d.places(12)
	d.stored("app", 12, 30*time.Second)
	stop()
	d.cut(schemas.StreamShards)
	end := d.stream(schemas.StreamShards).LastSeq
	for range 20 {
		say(good, 1)
		say(bad, 1)
	}
	d.router()
	eventually(t, time.Minute, func() error {
		if err := d.repairer().Apply(t.Context(), d.plan(), func(*repair.Action, error) {}); err != nil {
			return err // a router may be faster: it is run again
		}
		if got := d.count("SELECT uniqExact(message) FROM %s", d.table("app")); got != 32 {
			return fmt.Errorf("%d events are stored, want 32", got)
		}
		return nil
	})
	now := map[uint64]query.DeadLetter{}
	for _, l := range d.lettersOf("app", 70) {
		now[l.Seq] = l
	}
	r := d.reader()
	met := 0
	for _, l := range letters {
		name, err := schemas.ParseName(l.ID)
		if err != nil || name.Seq != l.Seq {
			t.Fatalf("%q: %v", l.ID, err)
		}
		got, err := r.DeadLetter(t.Context(), name)
		if l.Seq <= end {
			if err != nil || string(got.Payload) != string(l.Payload) {
				t.Errorf("%s stayed and is not shown: %v", l.ID, err)
			}
			continue
		}
		if !errors.Is(err, query.ErrNoDeadLetter) || !errors.Is(err, schemas.ErrRequest) {
			t.Errorf("%s is gone and is shown: %v", l.ID, err)
		}
		other, given := now[l.Seq]
		if !given {
			continue
		}
		met++
		if !strings.Contains(err.Error(), fmt.Sprintf("what had the number %d is gone", l.Seq)) || !strings.Contains(err.Error(), other.ID) {
			t.Errorf("%s: %v", l.ID, err)
		}
		if got, err := r.DeadLetter(t.Context(), schemas.Source{Seq: l.Seq}); err != nil || got.ID != other.ID {
			t.Errorf("the number %d alone: %+v, %v", l.Seq, got, err)
		}
		for _, q := range []deadletters.Request{
			{Topic: "app", Letter: name}, {Topic: "app", Letter: name, Drop: true}, {Topic: "app", Letter: name, Drop: true, DryRun: true}, // of another
			{Topic: "app", Letter: schemas.Source{Seq: l.Seq}, Drop: true}, // of what has the number now, by chance
		} {
			if err := d.resolvedOne(q); !errors.Is(err, schemas.ErrRequest) {
				t.Errorf("%+v: %v", q, err)
			}
		}
		if _, err := r.DeadLetter(t.Context(), schemas.Source{Seq: other.Seq, Stored: other.At.UnixNano()}); err != nil {
			t.Errorf("%s was taken for %s: %v", other.ID, l.ID, err)
		}
	}
	if met == 0 {
		t.Errorf("no letter of %d has the number of one that the cut after message %d took", len(now), end)
	}
	gone := 0
	for message, pos := range places {
		var seq uint64
		_, _ = fmt.Sscanf(pos, "%d.", &seq)
		err := d.goesOn(pos)
		switch {
		case seq <= end && err != nil:
			t.Errorf("the tail does not go on behind %q at %s, which stayed: %v", message, pos, err)
		case seq > end && (!errors.Is(err, query.ErrPosition) || !strings.Contains(err.Error(), "is gone")):
			t.Errorf("the tail goes on after %q at %s, which is gone: %v", message, pos, err)
		case seq > end:
			gone++
		}
	}
	if gone == 0 {
		t.Errorf("no position of %d was lost with the end after message %d", len(places), end)
	}
	if rep, err := d.proof(""); err != nil || !rep.OK() || rep.Dead != 70 || rep.Stored != 32 {
		t.Errorf("%+v, %v", rep, err)
	}
}

// lettersOf waits for so many dead letters of a topic.
func (e *env) lettersOf(topic string, n int) (letters []query.DeadLetter) {
	e.t.Helper()
	eventually(e.t, time.Minute, func() (err error) {
		if letters, err = e.reader().Dead(e.t.Context(), topic, 1000); err == nil && len(letters) != n {
			err = fmt.Errorf("%d dead letters, want %d", len(letters), n)
		}
		return err
	})
	return letters
}

// lettersNow are the dead letters of a topic.
func (e *env) lettersNow(topic string) []query.DeadLetter {
	e.t.Helper()
	letters, err := e.reader().Dead(e.t.Context(), topic, 1000)
	if err != nil {
		e.t.Fatal(err)
	}
	return letters
}

var errEnough = errors.New("enough")

// places reads a tail from its beginning, and returns the position of each message.
func (e *env) places(n int) map[string]string {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*30*time.Second)
	defer cancel()
	out := map[string]string{}
	err := e.reader().Tail(ctx, query.TailRequest{Topic: "app", Since: time.Now().Add(-time.Hour)}, func(pos string, event json.RawMessage) error {
		var ev struct{ Message string }
		if err := json.Unmarshal(event, &ev); err != nil {
			return err
		}
		if out[ev.Message] = pos; len(out) == n {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		e.t.Fatal(err)
	}
	return out
}

// goesOn reads the first event behind a position.
func (e *env) goesOn(pos string) error {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(e.t.Context(), maxWait*30*time.Second)
	defer cancel()
	err := e.reader().Tail(ctx, query.TailRequest{Topic: "app", From: pos}, func(string, json.RawMessage) error { return errEnough })
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// resolvedOne resolves what must not be, and returns the error.
func (e *env) resolvedOne(q deadletters.Request) error {
	e.t.Helper()
	nc := e.connect()
	d, err := deadletters.New(e.t.Context(), nc, e.registry(nc), nil, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	return d.Resolve(e.t.Context(), q, func(o deadletters.Outcome) error { e.t.Errorf("%+v: %+v", q, o); return nil })
}
