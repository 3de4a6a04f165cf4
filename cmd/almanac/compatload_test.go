package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// compatLoad is the load on all inputs, and of each kind.
type compatLoad struct {
	*signalled
	url    string // what timers call
	cancel func()
	ended  chan struct{}

	calls  sync.Mutex
	called map[string]int // timers, by id
}

// hook serves the address that timers call.
func (l *compatLoad) hook(t *testing.T) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		_, rest, _ := strings.Cut(string(body), `"id":"`)
		id, _, _ := strings.Cut(rest, `"`)
		l.calls.Lock()
		defer l.calls.Unlock()
		l.called[id]++
	}))
	t.Cleanup(s.Close)
	l.url = s.URL
}

// calledBack waits until every timer that was taken was called, and counts a call as what is stored of it: a timer is called at
// least once.
func (l *compatLoad) calledBack(have map[string]int) {
	l.t.Helper()
	embeddedtest.Eventually(l.t, maxWait, func() error {
		l.calls.Lock()
		defer l.calls.Unlock()
		l.mu.Lock()
		defer l.mu.Unlock()
		for id, f := range l.fates {
			if strings.HasPrefix(id, "timers-") && f == ackedOnce && l.called[id] == 0 {
				return errors.New(id + " was taken and not called")
			}
		}
		for id := range l.called {
			have[id] = 1
		}
		return nil
	})
}

// sentLines are a line of each event. Sent again they are the same: each has the time at which the load began.
func (l *compatLoad) sentLines(events []string, line string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(strings.NewReplacer("EVENT", e, "TIME", l.began.UTC().Format("2006-01-02T15:04:05.000000Z")).Replace(line) + "\n")
	}
	return b.String()
}

func (l *compatLoad) keyed(ctx context.Context, topic, id string, events []string, line string) fate {
	return l.post(ctx, l.base["http"]+"/v1/topics/"+topic+"/events", "application/x-ndjson", l.sentLines(events, line), id, statusOf(http.StatusOK))
}

func (l *compatLoad) usage(ctx context.Context, id string, events []string) fate {
	return l.keyed(ctx, "usage", id, events, `{"ts":"2020-01-10T00:00:00Z","type":"bytes","provider":"p","space":"s","cause":"EVENT","delta":1,"user_id":"c"}`)
}

func (l *compatLoad) trail(ctx context.Context, id string, events []string) fate {
	return l.keyed(ctx, "trail", id, events, `{"ts":"TIME","type":"change","service":"iam","user_id":"u","request_id":"EVENT","scope":"s","method":"Update","resource_type":"role","resource":"roles/x","state":"committed","before":{"a":1},"after":{"a":2}}`)
}

// An event with every column, fields of each type, and an attribute; wholeFields asks for them in groups, of which there is one:
// fullFields, whatever build made and stored them.
const (
	fullLine = `{"ts":"2020-01-02T03:04:05.123456789Z","message":"EVENT","level":"warn","service":"svc","type":"t","user_id":"u-7","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","plan":"gold","size":-5,"ratio":0.25,"note":"x ☃"}`

	wholeFields = `SELECT level, service, type, user_id, trace_id, span_id, toString(ts), plan, size, ratio, attributes['note'], length(attributes) FROM app
WHERE match(message, '^(fields|send)') GROUP BY ALL`
	fullFields = "warn\tsvc\tt\tu-7\t0af7651916cd43dd8448eb211c80319c\tb7ad6b7169203331\t2020-01-02 03:04:05.123456789\tgold\t-5\t0.25\tx ☃\t1"
)

func (l *compatLoad) fields(ctx context.Context, id string, events []string) fate {
	return l.keyed(ctx, "app", id, events, fullLine)
}

// notes creates documents. None of these ids is anyone else's: one that exists was created by an earlier try.
func (l *compatLoad) notes(ctx context.Context, _ string, events []string) fate {
	var changes []string
	for _, e := range events {
		changes = append(changes, fmt.Sprintf(`{"op":"create","id":%q,"body":{"n":1}}`, e))
	}
	return l.post(ctx, l.base["http"]+"/v1/documents/notes/batch", "application/json", `{"changes":[`+strings.Join(changes, ",")+`]}`, "", func(code int, _ []byte) (fate, bool) {
		return ackedOnce, code == http.StatusOK || code == http.StatusConflict
	})
}

// timers creates timers that are soon due. One that exists was created by an earlier try.
func (l *compatLoad) timers(ctx context.Context, _ string, events []string) fate {
	for _, e := range events {
		body := fmt.Sprintf(`{"id":%q,"execute_at":"+1s","callback_url":%q}`, e, l.url)
		was := l.post(ctx, l.base["http"]+"/v1/timers/mails", "application/json", body, "", func(code int, _ []byte) (fate, bool) {
			return ackedOnce, code == http.StatusCreated || code == http.StatusOK || code == http.StatusConflict
		})
		if was != ackedOnce {
			return unanswered // of all of them: each is sent again
		}
	}
	return ackedOnce
}

// sends runs send of a build, again and again: what it ended well with is taken.
func (l *compatLoad) sends(ctx context.Context, b *box, name string) {
	for n := 0; ctx.Err() == nil; n++ {
		var events []string
		for i := range 20 {
			events = append(events, fmt.Sprintf("%s-%d-%d", name, n, i))
		}
		l.set(name, events, unanswered)
		if r := b.run(l.sentLines(events, fullLine), "send", "app", "--format", "ndjson"); r.code == exitOK {
			l.set(name, events, ackedOnce)
		}
		pause(ctx)
	}
}
