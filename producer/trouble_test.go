package producer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
)

// step is one thing that happens to a producer.
type step struct {
	Do    int // 0 to 5: Log, 6: Submit, 7: Publish in the background, 8: wait, 9: flush
	User  int
	Size  int
	Month int
	Wait  time.Duration
}

// Whatever is logged, answered, refused, repeated or left silent: the sum
// holds, every waiter is called once, every frame is sent as the same bytes, no
// seq is given twice, and what was answered as stored is what is counted so.
func TestAnyTrouble(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) step {
			return step{
				Do: rapid.IntRange(0, 9).Draw(rt, "do"), User: rapid.IntRange(0, 9).Draw(rt, "user"),
				Size: rapid.IntRange(0, 5000).Draw(rt, "size"), Month: rapid.IntRange(0, 14).Draw(rt, "month"),
				Wait: time.Duration(rapid.IntRange(0, 3000).Draw(rt, "ms")) * time.Millisecond,
			}
		}), 1, 200).Draw(rt, "steps")
		// What happens to each attempt: 0 to 4 stored, 5 stored and said twice,
		// 6 stored and not said, 7 refused, 8 not sent, 9 too big.
		fates := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 50).Draw(rt, "fates")
		cfg := Config{
			Policy:       rapid.SampledFrom([]Policy{DropNewest, DropOldest, Block}).Draw(rt, "policy"),
			BufferEvents: rapid.IntRange(1, 60).Draw(rt, "events"), InFlight: rapid.IntRange(1, 64).Draw(rt, "inflight"),
			InFlightBytes: rapid.IntRange(1, 10_000).Draw(rt, "bytes"), AckTimeout: time.Second,
		}
		if problem := runTrouble(t, cfg, steps, fates); problem != "" {
			rt.Fatal(problem)
		}
	})
}

func runTrouble(t *testing.T, cfg Config, steps []step, fates []int) (problem string) {
	synctest.Test(t, func(t *testing.T) {
		say := func(format string, a ...any) { problem += fmt.Sprintf(format, a...) + "\n" }
		var mu sync.Mutex
		attempts, inStream, sure := 0, map[[2]uint64]int{}, map[[2]uint64]bool{}
		outstanding := map[int]map[uint64]bool{}
		l := new(captureLink)
		fate := func(n int) int {
			if attempts++; n > 12 {
				return 0 // or Log would wait forever under Block
			}
			return fates[attempts%len(fates)]
		}
		l.refuse = func(n int, f sent) error {
			mu.Lock()
			defer mu.Unlock()
			if outstanding[f.lane] == nil {
				outstanding[f.lane] = map[uint64]bool{}
			}
			outstanding[f.lane][f.seq] = true
			for seq := range outstanding[f.lane] {
				if f.seq-seq >= schemas.MaxInFlight && f.seq > seq {
					say("lane %d: seq %d was sent while %d was unanswered", f.lane, f.seq, seq)
				}
			}
			key := [2]uint64{uint64(f.lane), f.seq}
			switch fate(n) {
			case 8:
				return nats.ErrReconnectBufExceeded
			case 9:
				if n == 1 {
					delete(outstanding[f.lane], f.seq)
					return nats.ErrMaxPayload
				}
			case 7:
				l.answerOf = func(int, sent) (answer, bool) { return answer{outcome: again, err: ErrNotStored}, true }
				return nil
			case 6:
				inStream[key] = f.head.Rows
				l.answerOf = func(int, sent) (answer, bool) { return answer{}, false }
				return nil
			case 5:
				l.s.answered(answer{lane: f.lane, seq: f.seq, outcome: stored})
			}
			inStream[key], sure[key] = f.head.Rows, true
			delete(outstanding[f.lane], f.seq)
			l.answerOf = func(int, sent) (answer, bool) { return answer{outcome: stored}, true }
			return nil
		}
		p := startOn(t, l, cfg)
		var wg sync.WaitGroup
		calls := make([]atomic.Int32, len(steps))
		expect := make([]bool, len(steps))
		for i, s := range steps {
			ev := Event{UserID: user(s.User), Message: strings.Repeat("x", s.Size), Time: time.Date(1999, time.Month(1+s.Month), 1, 0, 0, 0, 0, time.UTC)}
			switch s.Do {
			case 6:
				ctx, cancel := context.WithTimeout(t.Context(), s.Wait)
				expect[i] = p.Submit(ctx, ev, func(error) { calls[i].Add(1) }) == nil
				cancel()
			case 7:
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), s.Wait)
					defer cancel()
					_ = p.Publish(ctx, ev)
				})
			case 8:
				time.Sleep(s.Wait)
			case 9:
				ctx, cancel := context.WithTimeout(t.Context(), s.Wait)
				_ = p.Flush(ctx)
				cancel()
			default:
				p.Log(ev)
			}
			if s := p.Stats(); s.Logged != s.Stored+s.DroppedTotal()+s.Buffered {
				say("after step %d: %+v", i, s)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := p.Close(ctx)
		wg.Wait()
		s := p.Stats()
		if s.Logged != s.Stored+s.DroppedTotal() || s.Buffered != 0 || s.BufferedBytes != 0 || s.InFlight != 0 {
			say("after Close: %+v", s)
		}
		if events, bytes := p.buffer.held(); events != 0 || bytes != 0 {
			say("the buffer holds %d events, %d bytes", events, bytes)
		}
		if (err != nil) != (s.Dropped[CauseClosed] > 0) && !errors.Is(err, ErrNotFlushed) {
			say("Close: %v with %+v", err, s)
		}
		total, known := 0, 0
		for key, rows := range inStream {
			total += rows
			if sure[key] {
				known += rows
			}
		}
		if s.Stored < uint64(known) || s.Stored > uint64(total) {
			say("%d events are counted as stored; the stream has %d and said so of %d", s.Stored, total, known)
		}
		first := map[[2]uint64]sent{}
		for _, f := range l.all() {
			key := [2]uint64{uint64(f.lane), f.seq}
			if old, ok := first[key]; ok && (old.head != f.head || !bytes.Equal(old.payload, f.payload)) {
				say("seq %d of lane %d was sent with other bytes", f.seq, f.lane)
			} else {
				first[key] = f
			}
		}
		for i := range calls {
			if n := calls[i].Load(); expect[i] && n != 1 || !expect[i] && n != 0 {
				say("done of step %d was called %d times", i, n)
			}
		}
	})
	return problem
}
