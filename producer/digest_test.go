package producer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A digest is of the key and of every field, each with its length, whatever the size of
// the batch: producers of two versions give the same batch the same message ids.
func TestDigest(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	p := &Producer{topic: topic, frameBytes: 1000}
	for name, size := range map[string]int{"small": 1, "as much as is gathered": digestPiece, "more": 3*digestPiece + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &Batch{p: p, key: "k"}
			var want []byte
			text := func(s string) { want = append(fmt.Appendf(want, "%d:", len(s)), s...) }
			number := func(n int64) { want = binary.BigEndian.AppendUint64(want, uint64(n)) }
			text("almanac keyed batch 1")
			text("k")
			text("app")
			number(int64(topic.Version))
			number(int64(topic.Lanes))
			for _, by := range topic.LaneBy {
				text(by)
			}
			number(1000)
			for i := range 100 {
				ev := schemas.Event{
					Level: "info", Service: "s", Type: "t", UserID: "u", TraceID: "tr", SpanID: "sp", Message: strings.Repeat("m", size),
					Attrs: []schemas.Attr{schemas.String("a", "x"), schemas.Int64("b", -5), schemas.Float64("c", 1.5), schemas.Bool("d", true), schemas.Time("e", time.Unix(1, 2))},
				}
				b.rows = append(b.rows, batched{ev, admitted{ts: int64(i)}})
				number(int64(i))
				for _, s := range []string{"info", "s", "t", "u", "tr", "sp", ev.Message} {
					text(s)
				}
				number(5)
				for k := range ev.Attrs {
					text(ev.Attrs[k].Key)
					number(int64(ev.Attrs[k].Kind()))
					text(ev.Attrs[k].Text())
				}
			}
			sum := sha256.Sum256(want)
			if got := b.digest(); got != hex.EncodeToString(sum[:12]) {
				t.Errorf("%s, expected %x", got, sum[:12])
			}
		})
	}
}
