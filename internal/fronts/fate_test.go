package fronts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// isAck reports whether an answer acknowledges a write to DOCS.
func isAck(a embeddedtest.Answer) bool {
	return strings.HasPrefix(a.Subject, nats.InboxPrefix) && strings.Contains(string(a.Data), `"stream":"DOCS"`)
}

// Where every second acknowledgement is lost, each write still ends as it did: one
// message a key, and success for the call that made it.
func TestLostAcks(t *testing.T) {
	t.Parallel()
	for name, callers := range map[string]int{"one by one": 4, "in groups": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
			var acks, lost atomic.Int64
			url := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
				drop := isAck(a) && acks.Add(1)%2 == 0 && lost.Add(1) <= 4
				return embeddedtest.Fate{Drop: drop}
			})
			nc := connect(t, url)
			w, js := openOn(t, srv, nc, Config{Timeout: maxWait})
			ctx := timeout(t)
			var wg sync.WaitGroup
			for c := range callers {
				wg.Go(func() {
					for i := range 4 {
						id := fmt.Sprintf("c%d-%d", c, i)
						seq, err := w.Put(ctx, record(id, 0))
						if err != nil {
							t.Errorf("%s: %v", id, err)
							return
						}
						if msg, err := streams.DecideAt(ctx, js, schemas.StreamDocs, seq); err != nil || msg.Subject != record(id, 0).Subject {
							t.Errorf("%s is said to be message %d, which is %+v, %v", id, seq, msg, err)
						}
					}
				})
			}
			wg.Wait()
			if lost.Load() == 0 {
				t.Error("no acknowledgement was lost")
			}
			info, err := streams.Info(ctx, js, schemas.StreamDocs)
			if err != nil || info.State.Msgs != uint64(4*callers) || info.State.NumSubjects != uint64(4*callers) {
				t.Errorf("%+v, %v; expected one message for each of %d keys", info.State, err, 4*callers)
			}
		})
	}
}

// A writer that waits less than NATS may be silent finds out in time what became of a write
// whose first answers are lost, and of its read back.
func TestAnswerBound(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	var acks, looks atomic.Int64
	url := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
		if isAck(a) {
			return embeddedtest.Fate{Drop: acks.Add(1) == 1}
		}
		read := strings.Contains(string(a.Data), "stream_msg_get_response")
		return embeddedtest.Fate{Drop: read && looks.Add(1) == 1}
	})
	nc := connect(t, url)
	w, _ := openOn(t, srv, nc, Config{Timeout: maxAnswer - time.Millisecond, Answer: 20 * time.Millisecond})
	if _, err := w.Put(timeout(t), record("a", 0)); err != nil || acks.Load() == 0 || looks.Load() < 2 {
		t.Errorf("%v after %d answers and %d reads; expected success by the second read", err, acks.Load(), looks.Load())
	}
}

// A write that never arrives is sent again, and one that another overtook is refused.
func TestLostWrites(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	direct, _ := openOn(t, srv, srv.NC(), Config{})
	ctx := timeout(t)
	var overtaken atomic.Bool
	url := embeddedtest.LinkProxy(t, srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
		switch r.Subject {
		case record("overtaken", 0).Subject:
			if _, err := direct.Put(ctx, record("overtaken", 0)); err != nil && !overtaken.Load() {
				t.Error(err)
			}
			overtaken.Store(true)
			return embeddedtest.Fate{Drop: true}
		case record("lost", 0).Subject:
			return embeddedtest.Fate{Drop: !overtaken.Swap(true)}
		}
		return embeddedtest.Fate{}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	nc := connect(t, url)
	w, _ := openOn(t, srv, nc, Config{Timeout: maxWait})
	if seq, err := w.Put(ctx, record("lost", 0)); err != nil || seq == 0 {
		t.Errorf("a write that was lost on its way: %d, %v", seq, err)
	}
	overtaken.Store(false)
	if _, err := w.Put(ctx, record("overtaken", 0)); !errors.Is(err, ErrConflict) {
		t.Errorf("a write that was lost on its way, while another came: %v", err)
	}
}

// What came after the expected record tells whose write it was.
func TestFateOf(t *testing.T) {
	t.Parallel()
	place := func(seq uint64) string {
		return schemas.FrontPlace{Month: 202611, Shard: 7, Seq: seq}.String()
	}
	for name, c := range map[string]struct {
		header nats.Header
		had    uint64 // a sequence from before the write
		want   outcome
	}{
		"own":                              {nats.Header{schemas.HeaderNonce: {"own"}}, 0, mine},
		"another's":                        {nats.Header{schemas.HeaderNonce: {"other"}}, 0, another},
		"no nonce":                         {nats.Header{}, 0, another},
		"stub of the expected":             {nats.Header{schemas.HeaderStub: {place(5)}}, 0, another},
		"stub of a later one":              {nats.Header{schemas.HeaderStub: {place(6)}}, 0, blurred},
		"stub of one from before":          {nats.Header{schemas.HeaderStub: {place(6)}}, 6, another},
		"stub of one from before or after": {nats.Header{schemas.HeaderStub: {place(7)}}, 6, blurred},
		"refresh of the expected":          {nats.Header{schemas.HeaderNonce: {"other"}, schemas.HeaderRefresh: {place(5)}}, 0, another},
		"refresh of a later one":           {nats.Header{schemas.HeaderNonce: {"other"}, schemas.HeaderRefresh: {place(8)}}, 0, blurred},
		"refresh of one from before":       {nats.Header{schemas.HeaderNonce: {"other"}, schemas.HeaderRefresh: {place(8)}}, 9, another},
		"refresh of one's own":             {nats.Header{schemas.HeaderNonce: {"own"}, schemas.HeaderRefresh: {place(8)}}, 0, mine},
		"stub without a place":             {nats.Header{schemas.HeaderStub: {"?"}}, 9, blurred},
		"stub that is also not so":         {nats.Header{schemas.HeaderNonce: {"other"}, schemas.HeaderStub: {""}}, 9, blurred},
	} {
		t.Run(name, func(t *testing.T) {
			m := &streams.Message{}
			m.Header = c.header
			if got := fateOf(m, &fate{expect: 5, nonce: "own", had: c.had}); got != c.want {
				t.Errorf("%d, expected %d", got, c.want)
			}
		})
	}
}

// What became of a batch whose answers are lost is told by any of its records: it was stored,
// or another record came before one of them, whichever it is.
func TestLostBatchAnswers(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	var lose, lost atomic.Int64
	url := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
		refusal := strings.HasPrefix(a.Subject, nats.InboxPrefix) && strings.Contains(string(a.Data), "wrong last sequence")
		drop := (isAck(a) || refusal) && lose.Add(-1) >= 0
		if drop {
			lost.Add(1)
		}
		return embeddedtest.Fate{Drop: drop}
	})
	nc := connect(t, url)
	w, js := openOn(t, srv, nc, Config{Timeout: maxWait, Answer: 200 * time.Millisecond})
	ctx := timeout(t)
	lose.Store(1)
	first, err := w.PutAll(ctx, []Record{record("a", 0), record("b", 0), record("c", 0)})
	if err != nil || lost.Load() != 1 {
		t.Fatalf("%v, %d answers lost", err, lost.Load())
	}
	if msg, err := streams.DecideAt(ctx, js, schemas.StreamDocs, first+2); err != nil || msg.Subject != record("c", 0).Subject {
		t.Fatalf("%+v, %v", msg, err)
	}
	lose.Store(1)
	if _, err := w.PutAll(ctx, []Record{record("d", 0), record("c", 0), record("e", 0)}); !errors.Is(err, ErrConflict) {
		t.Errorf("another record came before the second: %v", err)
	}
	embeddedtest.Eventually(t, maxWait, func() error { // the writer may have looked before the refusal was on its way
		if n := lost.Load(); n != 2 {
			return fmt.Errorf("%d answers lost", n)
		}
		return nil
	})
	info, err := streams.Info(ctx, js, schemas.StreamDocs)
	if err != nil || info.State.Msgs != 3 {
		t.Errorf("%+v, %v; expected three records", info.State, err)
	}
}

// A create without a look, whose refusal is lost, is refused: the stub that is there is of a record
// from before it. Of a record that came since the writer last knew the stream, it is not known.
func TestLostRefusalOfAStub(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	var lost atomic.Int64
	url := embeddedtest.AnswersProxy(t, srv.NATSURL, func(a embeddedtest.Answer) embeddedtest.Fate {
		refusal := strings.HasPrefix(a.Subject, nats.InboxPrefix) && strings.Contains(string(a.Data), "wrong last sequence")
		return embeddedtest.Fate{Drop: refusal && lost.Add(1) == 1}
	})
	nc := connect(t, url)
	direct, _ := openOn(t, srv, srv.NC(), Config{})
	ctx := timeout(t)
	stubbed := func(id string) uint64 {
		t.Helper()
		seq, err := direct.Put(ctx, record(id, 0))
		if err != nil {
			t.Fatal(err)
		}
		stub := record(id, seq)
		stub.Header[schemas.HeaderStub] = []string{schemas.FrontPlace{Month: 202611, Shard: 7, Seq: seq}.String()}
		stub.Header[jetstream.MsgRollup] = []string{jetstream.MsgRollupSubject}
		if seq, err = direct.Put(ctx, stub); err != nil {
			t.Fatal(err)
		}
		return seq
	}
	stubbed("before")
	w, _ := openOn(t, srv, nc, Config{Timeout: maxWait, Answer: 200 * time.Millisecond})
	if _, err := w.Put(ctx, record("before", 0)); !errors.Is(err, ErrConflict) || lost.Load() < 1 {
		t.Errorf("%v, %d answers lost", err, lost.Load())
	}
	last := stubbed("since")
	lost.Store(0)
	if _, err := w.Put(ctx, record("since", 0)); !errors.Is(err, ErrUnknown) || lost.Load() < 1 {
		t.Errorf("%v, %d answers lost", err, lost.Load())
	}
	w.Had(last)
	lost.Store(0)
	if _, err := w.Put(ctx, record("since", 0)); !errors.Is(err, ErrConflict) || lost.Load() < 1 {
		t.Errorf("once the writer knows the stream: %v, %d answers lost", err, lost.Load())
	}
}

// Where a stream has replicas, a server that led it before may refuse what the one that leads it now
// stores, or has under way: a refusal is believed once the record is looked for.
func TestRefusedByFormerLeader(t *testing.T) {
	t.Parallel()
	w, _ := open(t, Config{Timeout: maxWait})
	w.saw(&jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: 3}}) // copies were given while it runs, and every look sees them
	w.space.look = func(ctx context.Context) (Use, error) {
		info, err := streams.Info(ctx, w.js, w.stream)
		if err != nil {
			return Use{}, err
		}
		info.Config.Replicas = 3
		w.saw(info)
		return useOf(info), nil
	}
	ctx := timeout(t)
	lost := &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequence}
	underWay := &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamWrongLastSequenceConstant}
	full := &jetstream.APIError{ErrorCode: codeNotStored}
	type sent struct {
		stores bool
		err    error
	}
	for name, c := range map[string]struct {
		sent  []sent
		other bool // another record comes first
		want  error
	}{
		"stored":           {sent: []sent{{true, lost}}},
		"under way":        {sent: []sent{{false, streams.ErrCut}, {false, underWay}, {true, underWay}}},
		"stored when full": {sent: []sent{{false, streams.ErrCut}, {false, full}, {true, full}}},
		"another's":        {sent: []sent{{false, lost}}, other: true, want: ErrConflict},
		"refused":          {sent: []sent{{false, lost}}, want: ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := record(strings.ReplaceAll(name, " ", "-"), 0)
			m, nonce := message(&r), newNonce()
			m.Header.Set(schemas.HeaderNonce, nonce)
			if c.other {
				if _, err := w.Put(ctx, r); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			seq, err := w.resolve(ctx, ctx, []fate{{subject: r.Subject, nonce: nonce, had: w.had.Load()}}, func(time.Duration) (uint64, error) {
				if n == len(c.sent) {
					t.Fatal("it is sent again")
				}
				s := c.sent[n]
				if n++; s.stores {
					if err := w.one(ctx, m); err != nil {
						t.Error(err)
					}
				}
				return 0, s.err
			})
			if !errors.Is(err, c.want) || (err == nil) != (seq > 0) || n != len(c.sent) {
				t.Errorf("%d, %v, sent %d times", seq, err, n)
			}
		})
	}
}

// TestRefusalsOfTheStore tells a full stream from a NATS that cannot store.
func TestRefusalsOfTheStore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  jetstream.APIError
		want error
	}{
		"the stream is full":  {jetstream.APIError{ErrorCode: codeNotStored, Description: "maximum bytes exceeded"}, ErrFull},
		"the disk is full":    {jetstream.APIError{ErrorCode: codeNotStored, Description: "write msgs/7.blk: no space left on device"}, ErrStore},
		"the account is full": {jetstream.APIError{ErrorCode: codeAccountExceeded, Description: "resource limits exceeded for account"}, ErrStore},
		"the server is full":  {jetstream.APIError{ErrorCode: codeInsufficient, Description: "insufficient resources"}, ErrStore},
	} {
		t.Run(name, func(t *testing.T) {
			if err := refusal("docs.a", &c.err); !errors.Is(err, c.want) {
				t.Errorf("%v, expected %v", err, c.want)
			}
		})
	}
}
