package streams

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// behind is a connection to a server whose answers pass through fate.
func behind(t *testing.T, srv *embeddedtest.Servers, fate func(embeddedtest.Answer) embeddedtest.Fate) jetstream.JetStream {
	t.Helper()
	_, js := embeddedtest.Dial(t, embeddedtest.AnswersProxy(t, srv.NATSURL, fate))
	return js
}

// delivered reports whether an answer is a message that a consumer delivers.
func delivered(a embeddedtest.Answer) bool { return strings.HasPrefix(a.Reply, "$JS.ACK.") }

// TestFollowMissesTheLastOfAnIdleStream loses the last message of a stream on its way,
// after which the server sends heartbeats alone. They say what was delivered.
func TestFollowMissesTheLastOfAnIdleStream(t *testing.T) {
	t.Parallel()
	srv, _ := readsStream(t)
	for _, lost := range []int{1, 2, 30} {
		t.Run(fmt.Sprintf("the last %d of a consumer", lost), func(t *testing.T) {
			t.Parallel()
			n := 0
			js := behind(t, srv, func(a embeddedtest.Answer) embeddedtest.Fate {
				if !delivered(a) {
					return embeddedtest.Fate{}
				}
				n++
				return embeddedtest.Fate{Drop: n > testMessages-lost && n <= testMessages}
			})
			ctx := timeout(t)
			f, err := Follow(ctx, js, testStream, Range{Filter: "r.>"}, 64)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Stop()
			for want := range uint64(testMessages) {
				m, err := f.Next(ctx)
				if err != nil {
					t.Fatalf("after message %d: %v", want, err)
				}
				if m.Sequence != want+1 {
					t.Fatalf("message %d came after %d", m.Sequence, want)
				}
			}
		})
	}
	t.Run("no message ever comes", func(t *testing.T) {
		t.Parallel()
		js := behind(t, srv, func(a embeddedtest.Answer) embeddedtest.Fate { return embeddedtest.Fate{Drop: delivered(a)} })
		ctx := timeout(t)
		f, err := Follow(ctx, js, testStream, Range{Filter: "r.>"}, 64)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Stop()
		if m, err := f.Next(ctx); !errors.Is(err, ErrCut) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, %v: expected ErrCut", m, err)
		}
	})
}

// A message that was taken out is not one whose sequence was given again: what came after
// it is younger, and lies above it.
func TestGivenAgainIsNotTakenOut(t *testing.T) {
	t.Parallel()
	_, js := readsStream(t)
	ctx := timeout(t)
	s, err := Open(ctx, js, testStream)
	if err != nil {
		t.Fatal(err)
	}
	for _, seq := range []uint64{1, 7, testMessages} {
		m, err := DecideAt(ctx, js, testStream, seq)
		if err != nil {
			t.Fatal(err)
		}
		if err := Delete(ctx, js, s, seq, false, Unneeded); err != nil {
			t.Fatal(err)
		}
		known := schemas.Source{Seq: seq, Stored: m.Time.UnixNano()}
		if next, again, err := GivenAgain(ctx, js, testStream, known); err != nil || again {
			t.Errorf("message %d was taken out, and counts as given again from %d on: %v", seq, next, err)
		}
		known.Stored -= int64(time.Hour)
		if _, again, err := GivenAgain(ctx, js, testStream, known); seq > 1 && (err != nil || !again) {
			t.Errorf("an older message %d was cut off, and counts as there: %v", seq, err)
		}
	}
}
