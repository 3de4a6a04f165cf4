package fronts

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A batch of which a message is lost on its way, while the connection holds, is sent again, and stored
// once. Where it is lost each time, the caller hears that nothing was written, or, where the time ended
// before an answer, that this is not known.
func TestCutBatch(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	var lose, lost atomic.Int64
	url := embeddedtest.LinkProxy(t, srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
		drop := r.Subject == record("b", 0).Subject && lose.Add(-1) >= 0
		if drop {
			lost.Add(1)
		}
		return embeddedtest.Fate{Drop: drop}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	nc := connect(t, url)
	w, js := openOn(t, srv, nc, Config{Timeout: maxWait})
	ctx := timeout(t)
	batch := []Record{record("a", 0), record("b", 0), record("c", 0)}

	lose.Store(1 << 40)
	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := w.PutAll(brief, batch); !errors.Is(err, ErrCut) && !errors.Is(err, ErrUnknown) {
		t.Errorf("lost each time: %v", err)
	}
	lose.Store(0)
	if info, err := streams.Info(ctx, js, schemas.StreamDocs); err != nil || info.State.Msgs != 0 {
		t.Fatalf("%+v, %v; expected nothing", info, err)
	}

	before := lost.Load()
	lose.Store(2)
	if _, err := w.PutAll(ctx, batch); err != nil || lost.Load() != before+2 {
		t.Errorf("lost twice: %v, %d were lost", err, lost.Load()-before)
	}
	if info, err := streams.Info(ctx, js, schemas.StreamDocs); err != nil || info.State.Msgs != 3 || info.State.NumSubjects != 3 {
		t.Errorf("%+v, %v; expected three records", info, err)
	}
}
