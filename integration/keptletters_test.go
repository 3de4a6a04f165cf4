package integration

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/deadletters"
	"github.com/almanac-events/almanac/schemas"
)

// SHARDS is cut inside a batch: dead letters at its beginning stay, and the lane's
// checkpoint at its end is gone. Their messages come again. No letter is kept twice, also
// when a router dies once its first checkpoint lies above them.
func TestDeadLettersWithoutTheirCheckpoint(t *testing.T) {
	t.Parallel()
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprintf("a router dies %v", dies), func(t *testing.T) {
			t.Parallel()
			d := startOnDisk(t, oneLaneTopic())
			subject := schemas.EventsSubject("app", schemas.MonthOf(time.Now().UnixNano()), 0)
			for i := range 3 {
				d.publish(subject, fmt.Sprintf("bad %d", i))
			}
			d.publish(subject, `{"message":"good"}`+"\n"+`bad line`+"\n")
			d.publish(subject, `{"message":"better"}`)
			stop := d.router()
			d.lettersOf("app", 4)
			d.routed("app", 6)
			stop()
			frame := []byte(schemas.ShardsFilter("app")[:len("shards.app.")])
			d.damaged(schemas.StreamShards, true, func(block []byte) []byte {
				at := bytes.Index(block, frame)
				if at < 0 {
					t.Fatal("no frame in the block")
				}
				block[at] ^= 4
				return block
			})
			left := len(d.lettersNow("app"))
			if left == 0 || d.stream(schemas.StreamShards).LastSeq < 3 {
				t.Fatalf("%d dead letters stayed: the cut took the whole batch", left)
			}
			if dies {
				p := d.process(part{Role: "router", CrashAt: "router.before-batch", CrashHit: 1})
				select {
				case <-p.gone:
				case <-time.After(maxWait * time.Minute):
					t.Fatalf("the router does not come to its end: %s", p.said.text())
				}
			}
			d.router()
			d.sink()
			d.stored("app", 2, 30*time.Second)
			eventually(t, time.Minute, func() error {
				rep, err := d.proof("")
				if err == nil && (!rep.OK() || rep.Dead != 4 || rep.Pending != 0) {
					err = fmt.Errorf("%+v: %s", rep.Totals, rep.Problems)
				}
				return err
			})
			if letters := d.lettersNow("app"); len(letters) != 4 {
				t.Errorf("%d dead letters, want 4; %d were left by the cut", len(letters), left)
			}
			if did := d.resolve(deadletters.Request{Topic: "app", Drop: true}); did[deadletters.Dropped] != 4 {
				t.Errorf("dropped: %v", did)
			}
			d.verify(6)
		})
	}
}
