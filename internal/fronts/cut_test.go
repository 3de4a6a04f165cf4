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
	var lost atomic.Int64
	url := embeddedtest.LinkProxy(t, srv.NATSURL, func(r embeddedtest.Request) embeddedtest.Fate {
		switch r.Subject {
		case record("never", 0).Subject: // to the end, since an attempt may be on its way when its caller gives up
			return embeddedtest.Fate{Drop: true}
		case record("b", 0).Subject:
			return embeddedtest.Fate{Drop: lost.Add(1) <= 2}
		}
		return embeddedtest.Fate{}
	}, func(embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{} })
	nc := connect(t, url)
	w, js := openOn(t, srv, nc, Config{Timeout: maxWait})
	ctx := timeout(t)

	brief, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := w.PutAll(brief, []Record{record("x", 0), record("never", 0), record("z", 0)}); !errors.Is(err, ErrCut) && !errors.Is(err, ErrUnknown) {
		t.Errorf("lost each time: %v", err)
	}
	if info, err := streams.Info(ctx, js, schemas.StreamDocs); err != nil || info.State.Msgs != 0 {
		t.Fatalf("%+v, %v; expected nothing", info, err)
	}

	if _, err := w.PutAll(ctx, []Record{record("a", 0), record("b", 0), record("c", 0)}); err != nil || lost.Load() != 3 {
		t.Errorf("lost twice: %v, sent %d times", err, lost.Load())
	}
	if info, err := streams.Info(ctx, js, schemas.StreamDocs); err != nil || info.State.Msgs != 3 || info.State.NumSubjects != 3 {
		t.Errorf("%+v, %v; expected three records", info, err)
	}
}
