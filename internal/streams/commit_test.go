package streams

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Messages are stored all or none in one run of sequences, and those of a refused commit can be committed again.
func TestCommitAllOrNone(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse())
	_, js := embeddedtest.Dial(t, srv.NATSURL)
	ctx := timeout(t)
	if _, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "C", Subjects: []string{"c.>"}, AllowAtomicPublish: true}); err != nil {
		t.Fatal(err)
	}
	first, second, third := nats.NewMsg("c.a"), nats.NewMsg("c.b"), nats.NewMsg("c.c")
	third.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "7") // which it has not
	if _, err := Commit(ctx, js, first, second, third); !LostRace(err) {
		t.Fatalf("a commit whose last message is refused: %v", err)
	}
	if _, err := Commit(ctx, js, third); !LostRace(err) {
		t.Fatalf("a message that is refused: %v", err)
	}
	third.Header.Set(jetstream.ExpectedLastSubjSeqHeader, "0")
	for i, c := range []struct {
		msgs []*nats.Msg
		want uint64
	}{{[]*nats.Msg{first, second, third}, 3}, {[]*nats.Msg{second}, 4}, {[]*nats.Msg{second, first}, 6}} {
		if last, err := Commit(ctx, js, c.msgs...); err != nil || last != c.want {
			t.Errorf("commit %d ends at %d: %v, want %d", i+1, last, err, c.want)
		}
	}
	for _, m := range []*nats.Msg{first, second} {
		if len(m.Header) != 0 {
			t.Errorf("the caller's message got headers: %v", m.Header)
		}
	}
}
