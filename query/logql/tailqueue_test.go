package logql

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func entryAt(at time.Time, line string) *Entry {
	return &Entry{Ts: at.UnixNano(), Line: line, Stream: map[string]string{LabelTopic: "app"}}
}

func linesOf(b TailBatch) (out []string) {
	for _, e := range b.Entries {
		out = append(out, e.Line)
	}
	return out
}

// Lines come in the order of their times, held back for the delay, and those that are ahead of the clock as they came.
func TestTailQueueHoldsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTailQueue(2 * time.Second)
		began := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var got []string
		var at []time.Duration
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for {
				b, err := q.take(ctx)
				if err != nil {
					return
				}
				got, at = append(got, linesOf(b)...), append(at, time.Since(began))
			}
		}()
		put := func(after time.Duration, line string) {
			if err := q.put(ctx, entryAt(began.Add(after), line)); err != nil {
				t.Error(err)
			}
		}
		put(0, "third")
		put(-time.Second, "second")
		put(-1500*time.Millisecond, "first")
		put(time.Hour, "ahead")
		put(-time.Second, "second again")
		<-time.After(time.Minute)
		cancel()
		<-ended
		if want := []string{"first", "second", "second again", "third", "ahead"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}; !slices.Equal(at, want) {
			t.Errorf("given after %s, want %s", at, want)
		}
	})
}

// A reader that takes nothing makes lines be left out and named, and gets all again as soon as it reads.
func TestTailQueueOfASlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTailQueue(0)
		began := time.Now()
		space := maxTailBytes / entryAt(began, "x").bytes()
		const over = MaxDropped + 100
		put := make(chan error, 1)
		go func() {
			for i := range space + over {
				if err := q.put(t.Context(), entryAt(began.Add(time.Duration(i)), "x")); err != nil {
					put <- err
					return
				}
			}
			put <- nil
		}()
		synctest.Wait()
		select {
		case <-put:
			t.Fatal("a full queue does not wait")
		default:
		}
		if err := <-put; err != nil { // once maxQueueWait is over
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != maxQueueWait {
			t.Errorf("it waited %s, want it once", waited)
		}
		read, dropped, last := 0, 0, int64(0)
		for read < space {
			b, err := q.take(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Entries) > batchLines {
				t.Errorf("%d lines at once", len(b.Entries))
			}
			read, dropped = read+len(b.Entries), dropped+len(b.Dropped)
			for _, e := range b.Entries {
				if e.Ts <= last {
					t.Fatal("not in order")
				}
				last = e.Ts
			}
		}
		if read != space || dropped != MaxDropped {
			t.Errorf("%d lines read, %d named as left out", read, dropped)
		}
		if err := q.put(t.Context(), entryAt(began, "after")); err != nil {
			t.Fatal(err)
		}
		if b, err := q.take(t.Context()); err != nil || len(b.Entries) != 1 || len(b.Dropped) != 0 {
			t.Errorf("%v %v", b, err)
		}
	})
}

// A line waits for space as long as the reader is not known to be slow, and lines of one time are given at once.
func TestTailQueueWaitsForSpace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := newTailQueue(0)
		at := time.Now()
		large := strings.Repeat("x", maxTailBytes/12)
		for range 3 { // three times a line's bytes are counted
			if err := q.put(t.Context(), entryAt(at, large)); err != nil {
				t.Fatal(err)
			}
		}
		put := make(chan error, 1)
		go func() { put <- q.put(t.Context(), entryAt(at, large)) }()
		<-time.After(maxQueueWait / 2)
		b, err := q.take(t.Context())
		if err != nil || len(b.Entries) != 3 || len(b.Dropped) != 0 {
			t.Fatalf("%d lines, %d left out: %v", len(b.Entries), len(b.Dropped), err)
		}
		if err := <-put; err != nil {
			t.Fatal(err)
		}
		for range batchLines + 10 {
			if err := q.put(t.Context(), entryAt(at, "y")); err != nil {
				t.Fatal(err)
			}
		}
		if b, err = q.take(t.Context()); err != nil || len(b.Entries) != batchLines+11 {
			t.Errorf("%d lines of one time: %v", len(b.Entries), err)
		}
	})
}
