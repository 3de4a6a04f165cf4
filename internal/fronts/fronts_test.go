package fronts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// Of eight creates of one id at once one wins, and seven are told so.
func TestCreateAtOnce(t *testing.T) {
	t.Parallel()
	w, _ := open(t, Config{})
	ctx := timeout(t)
	for round := range 100 {
		id := fmt.Sprintf("abcd%04d", round)
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { _, errs[i] = w.Put(ctx, record(id, 0)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, ErrConflict):
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d creates won", round, won)
		}
	}
}

// A write expects the record that its caller read, and returns the one it made.
func TestCompareAndSet(t *testing.T) {
	t.Parallel()
	w, _ := open(t, Config{})
	ctx := timeout(t)
	if _, err := w.Last(ctx, schemas.DocSubject("customers", 0, "a")); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a key without a record: %v", err)
	}
	first, err := w.Put(ctx, record("a", 0))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.Put(ctx, record("a", first))
	if err != nil || second <= first {
		t.Fatalf("%d after %d: %v", second, first, err)
	}
	if _, err := w.Put(ctx, record("a", first)); !errors.Is(err, ErrConflict) {
		t.Fatalf("an expectation that no longer holds: %v", err)
	}
	last, err := w.Last(ctx, schemas.DocSubject("customers", 0, "a"))
	if err != nil || last.Sequence != second || !bytes.Equal(last.Data, record("a", 0).Data) || last.Header.Get(schemas.HeaderOp) != schemas.OpStored {
		t.Fatalf("last record %+v, %v", last, err)
	}
	if len(last.Header.Get(schemas.HeaderNonce)) != 16 {
		t.Errorf("nonce %q", last.Header.Get(schemas.HeaderNonce))
	}
}

// Many callers at once are committed in groups, each with its own outcome: those that
// lose their race are refused, and no other.
func TestGroups(t *testing.T) {
	t.Parallel()
	w, js := open(t, Config{})
	ctx := timeout(t)
	const n = 600
	if _, err := w.Put(ctx, record("taken0", 0)); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	seqs, errs := make([]uint64, n), make([]error, n)
	for i := range n {
		wg.Go(func() {
			id := fmt.Sprint("k", i)
			if i%100 == 50 {
				id = "taken0"
			}
			seqs[i], errs[i] = w.Put(ctx, record(id, 0))
		})
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case i%100 == 50:
			if !errors.Is(err, ErrConflict) {
				t.Errorf("write %d of a key that is taken: %v", i, err)
			}
		case err != nil:
			t.Errorf("write %d: %v", i, err)
		default:
			msg, err := streams.DecideAt(ctx, js, schemas.StreamDocs, seqs[i])
			if err != nil || msg.Header.Get(schemas.HeaderBy) != fmt.Sprint("by k", i) {
				t.Errorf("write %d is said to be message %d, which is %+v, %v", i, seqs[i], msg, err)
			}
		}
	}
}

// Groups keep the order of those who wait, never hold a key twice, and are bounded.
func TestNextGroup(t *testing.T) {
	t.Parallel()
	waiting := func(bytes int, ids ...string) (out []*write) {
		for _, id := range ids {
			out = append(out, &write{msg: &nats.Msg{Subject: id, Data: make([]byte, bytes)}})
		}
		return out
	}
	many := make([]string, groupWrites+20)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for name, c := range map[string]struct {
		waiting     []*write
		group, rest int
	}{
		"none":        {nil, 0, 0},
		"one":         {waiting(1, "a"), 1, 0},
		"a key twice": {waiting(1, "a", "b", "a", "c", "a"), 3, 2},
		"many":        {waiting(1, many...), groupWrites, 20},
		"large":       {waiting(3<<20, "a", "b", "c", "d"), 2, 2},
		"one larger":  {waiting(groupBytes+1, "a", "b"), 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			group, rest := next(c.waiting)
			if len(group) != c.group || len(rest) != c.rest {
				t.Errorf("%d in the group, %d left, expected %d and %d", len(group), len(rest), c.group, c.rest)
			}
			keys := map[string]bool{}
			for _, p := range group {
				if keys[p.msg.Subject] {
					t.Errorf("key %s is in the group twice", p.msg.Subject)
				}
				keys[p.msg.Subject] = true
			}
		})
	}
}

// PutAll writes all or none.
func TestPutAll(t *testing.T) {
	t.Parallel()
	w, _ := open(t, Config{})
	ctx := timeout(t)
	first, err := w.PutAll(ctx, []Record{record("a", 0), record("b", 0), record("c", 0)})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range []string{"a", "b", "c"} {
		if last, err := w.Last(ctx, schemas.DocSubject("customers", 0, id)); err != nil || last.Sequence != first+uint64(i) {
			t.Fatalf("%s: %+v, %v, the first is %d", id, last, err, first)
		}
	}
	if _, err := w.PutAll(ctx, []Record{record("d", 0), record("a", 0), record("e", 0)}); !errors.Is(err, ErrConflict) {
		t.Fatalf("one that exists: %v", err)
	}
	for _, id := range []string{"d", "e"} {
		if _, err := w.Last(ctx, schemas.DocSubject("customers", 0, id)); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s was written though its batch was refused: %v", id, err)
		}
	}
	if _, err := w.PutAll(ctx, make([]Record, MaxBatch+1)); !errors.Is(err, schemas.ErrRequest) {
		t.Errorf("a batch too large: %v", err)
	}
}

// A record larger than the stream takes is refused with the limit, and a full stream says
// so; others are not harmed.
func TestRefused(t *testing.T) {
	t.Parallel()
	w, js := open(t, Config{})
	ctx := timeout(t)
	large := record("large", 0)
	large.Data = make([]byte, schemas.MaxMessageBytes)
	if _, err := w.Put(ctx, large); !errors.Is(err, ErrTooLarge) {
		t.Fatalf("too large: %v", err)
	}
	s, err := js.Stream(ctx, schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	cfg := s.CachedInfo().Config
	cfg.MaxBytes = 1 << 20
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		t.Fatal(err)
	}
	half := record("half", 0)
	half.For = End
	half.Data = make([]byte, 600<<10)
	if _, err := w.Put(ctx, half); err != nil {
		t.Fatal(err)
	}
	half.Subject += "2"
	if _, err := w.Put(ctx, half); !errors.Is(err, ErrFull) {
		t.Fatalf("full: %v", err)
	}
	small := record("small", 0)
	_, err = w.Put(ctx, small)
	if full := (*FullError)(nil); !errors.As(err, &full) || full.Bytes == 0 {
		t.Fatalf("a new one, which leaves the reserve: %v", err)
	}
	small.For = End
	if _, err := w.Put(ctx, small); err != nil {
		t.Fatalf("a small one that fits: %v", err)
	}
}

// A write whose context ends while it waits was not written, and says so.
func TestContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Writer{cfg: Config{Timeout: slow}, inFlight: newInFlight(), rounds: make(chan struct{}, maxRounds)}
		w.space = newSpace(func(context.Context) (Use, error) { return Use{}, nil })
		w.leading = true // another group is under way, forever
		_, err := w.Put(t.Context(), record("a", 0))
		if !errors.Is(err, errNotSent) || errors.Is(err, ErrUnknown) {
			t.Fatalf("%v", err)
		}
		if len(w.waiting) > 0 {
			t.Error("it still waits")
		}
	})
}
