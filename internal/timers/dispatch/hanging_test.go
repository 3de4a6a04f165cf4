package dispatch

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas/timer"
	"github.com/almanac-events/almanac/timers"
)

// hanging is a caller whose calls of group "hangs" end with the test alone.
type hanging struct {
	hang, called atomic.Int64
}

func (h *hanging) Call(ctx context.Context, g *timer.Group, _ *timer.Record, _ *timer.Spec) (timer.Outcome, timer.Call, error) {
	if g.Name == "hangs" {
		h.hang.Add(1)
		<-ctx.Done()
		return timer.Outcome{}, timer.Call{}, ctx.Err()
	}
	h.called.Add(1)
	return timer.Outcome{Kind: timer.Success, Status: 200}, timer.Call{Status: 200}, nil
}

// TestHangingReceiversHoldUpNoOtherGroup has one group's receivers hang, at more hosts than a dispatcher makes calls: the timers of another
// group are called meanwhile.
func TestHangingReceiversHoldUpNoOtherGroup(t *testing.T) {
	t.Parallel()
	const calls, others = 20, 30
	e := newEnv(t)
	for _, name := range []string{"hangs", "works"} {
		e.group(name, func(*timer.Group) {})
	}
	h := new(hanging)
	d, err := New(e.ctx, e.srv.NC(), Config{Registry: e.reg, Caller: h, Calls: calls})
	if err != nil {
		t.Fatal(err)
	}
	create := func(group string, n int) {
		embeddedtest.Each(8, n, func(i int) {
			if _, _, err := e.Create(e.ctx, timers.Draft{Group: group, ID: fmt.Sprint(i), Due: time.Now(), URL: fmt.Sprintf("http://%s-%d.example/", group, i)}); err != nil {
				t.Error(err)
			}
		})
	}
	create("hangs", 3*calls)
	ctx, cancel := context.WithCancel(e.ctx)
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	defer func() {
		cancel()
		<-ended
	}()
	embeddedtest.Eventually(t, longestWait, func() error {
		if n := h.hang.Load(); n != calls/2 {
			return fmt.Errorf("%d calls hang, expected half of %d", n, calls)
		}
		return nil
	})
	create("works", others)
	embeddedtest.Eventually(t, longestWait, func() error {
		if n := h.called.Load(); n != others {
			return fmt.Errorf("%d of %d timers of the other group were called", n, others)
		}
		return nil
	})
	if n := h.hang.Load(); n != calls/2 {
		t.Errorf("%d calls of the first group began, expected %d", n, calls/2)
	}
}
