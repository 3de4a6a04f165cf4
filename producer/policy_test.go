package producer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestDropNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startOn(t, new(silentLink), Config{BufferEvents: 100})
		for range 250 {
			p.Log(Event{UserID: "a"})
		}
		s := p.Stats()
		checkSum(t, s)
		if s.Buffered != 100 || s.Dropped[CauseBufferFull] != 150 {
			t.Errorf("%+v", s)
		}
		closeNow(p)
		s = p.Stats()
		checkSum(t, s)
		if d := cmp.Diff(map[string]uint64{CauseBufferFull: 150, CauseClosed: 100}, s.Dropped); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestDropOldestKeepsTheNewestAndWhatIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{outcome: stored}, free.Load() }}
		p := startOn(t, l, Config{Policy: DropOldest, BufferEvents: 50, InFlight: 1, AckTimeout: time.Second})
		log := func(i int) {
			p.Log(Event{UserID: "a", Message: fmt.Sprint(i)})
			if i%10 == 9 {
				time.Sleep(21 * time.Millisecond) // one frame of ten
			}
		}
		for i := range 20 {
			log(i) // 0 to 9 are sent, 10 to 19 closed
		}
		var told error
		if err := p.Submit(t.Context(), Event{UserID: "a", Message: "awaited"}, func(err error) { told = err }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(21 * time.Millisecond)
		for i := 20; i < 120; i++ {
			log(i)
		}
		free.Store(true)
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := p.Stats()
		checkSum(t, s)
		got := map[string]bool{}
		for _, ev := range l.events(t) {
			got[ev.Message] = true
		}
		if told != nil || !got["awaited"] || !got["0"] || !got["119"] || !got["100"] || got["10"] || got["30"] {
			t.Errorf("kept %v, told %v", got, told)
		}
		if s.Dropped[CauseOldest] == 0 || s.Dropped[CauseOldest]%10 != 0 || s.Dropped[CauseBufferFull] != 0 {
			t.Errorf("%+v", s)
		}
		closeNow(p)
	})
}

// A Close whose context has no deadline ends all the same, and says what is not stored.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{}, false }}
		p := startOn(t, l, Config{Policy: Block, AckTimeout: time.Second})
		p.Log(Event{UserID: "a"})
		began := time.Now()
		if err := p.Close(context.Background()); !errors.Is(err, ErrNotFlushed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(began); took < closeWait || took > 2*closeWait {
			t.Errorf("it took %s of the clock", took)
		}
	})
}

func TestBlockWaitsForSpaceOrClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		l := &captureLink{answerOf: func(int, sent) (answer, bool) { return answer{outcome: stored}, free.Load() }}
		p := startOn(t, l, Config{Policy: Block, BufferEvents: 5, AckTimeout: time.Second})
		var logged atomic.Int32
		write := func() {
			for range 20 {
				p.Log(Event{UserID: "a"})
				logged.Add(1)
			}
		}
		go write()
		synctest.Wait()
		if n := logged.Load(); n != 5 {
			t.Fatalf("%d events were taken, the buffer holds 5", n)
		}
		free.Store(true)
		time.Sleep(10 * time.Second)
		if n := logged.Load(); n != 20 {
			t.Fatalf("%d events were taken after room came, want 20", n)
		}
		free.Store(false)
		logged.Store(0)
		go write()
		synctest.Wait()
		closeNow(p)
		synctest.Wait()
		s := p.Stats()
		checkSum(t, s)
		if logged.Load() != 20 || s.Stored != 20 || s.Dropped[CauseClosed] != 20 {
			t.Errorf("%d returned; %+v", logged.Load(), s)
		}
	})
}
