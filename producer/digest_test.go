package producer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// A digest is of the key and of every field, each with its length, whatever the size of
// the batch and whatever the topic's version: the same batch has the same one each time.
func TestDigest(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	topic.Lanes = 4
	later := topic
	later.Version, later.Fields = 7, []schemas.Field{{Name: "b", Type: "int64", Since: 7}}
	later.PII = []schemas.Private{{Field: schemas.ColUserID, Rule: schemas.PrivacyHash}}
	for name, size := range map[string]int{"small": 1, "as much as is gathered": digestPiece, "more": 3*digestPiece + 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &Producer{topic: topic, now: func() int64 { return 1 << 60 }}
			b := p.NewBatch("k")
			other := (&Producer{topic: later, privacy: privacy.New(&later, []byte("0123456789abcdef0123456789abcdef")), now: func() int64 { return 1 << 60 }}).NewBatch("k")
			var want []byte
			text := func(s string) { want = append(fmt.Appendf(want, "%d:", len(s)), s...) }
			number := func(n int64) { want = binary.BigEndian.AppendUint64(want, uint64(n)) }
			text("almanac keyed batch 3")
			text("k")
			text("app")
			for i := range 100 {
				ev := schemas.Event{
					Time: time.Unix(0, int64(i+1)), ID: schemas.DerivedID(int64(i), 1, uint64(i%2)), Level: "info", Service: "s", Type: "t", UserID: "u", TraceID: "tr", SpanID: "sp", Message: strings.Repeat("m", size),
					Attrs: []schemas.Attr{schemas.String("a", "x"), schemas.Int64("b", -5), schemas.Float64("c", 1.5), schemas.Bool("d", true), schemas.Time("e", time.Unix(1, 2))},
				}
				if i%3 == 0 { // refused ones leave nothing behind
					bad := ev
					bad.Message = strings.Repeat("x", schemas.MaxEventBytes+1)
					if b.Add(bad) == nil {
						t.Fatal("an event that is too large was taken")
					}
				}
				if err := errors.Join(b.Add(ev), other.Add(ev)); err != nil {
					t.Fatal(err)
				}
				number(int64(i + 1))
				want = append(want, ev.ID[:]...)
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
			if got := b.keyed.sum().String(); got != hex.EncodeToString(sum[:12]) {
				t.Errorf("%s, expected %x", got, sum[:12])
			}
			if got := other.keyed.sum().String(); got != hex.EncodeToString(sum[:12]) {
				t.Errorf("of a later version of the topic: %s, expected %x", got, sum[:12])
			}
			for i := range b.rows {
				if b.rows[i].keyedEvent != other.rows[i].keyedEvent || b.rows[i].lane == noKey {
					t.Fatalf("event %d: %+v, and %+v of a later version", i, b.rows[i].keyedEvent, other.rows[i].keyedEvent)
				}
			}
		})
	}
}

// Events that differ in any one field, also in one that Event gets some day, have different digests, and each field of
// text counts in Bytes.
func TestDigestIsOfEveryField(t *testing.T) {
	t.Parallel()
	topic := schemas.NewTopic("app")
	digest := func(ev schemas.Event) string {
		b := (&Producer{topic: topic, now: func() int64 { return 1 << 60 }}).NewBatch("k")
		if err := b.Add(ev); err != nil {
			t.Fatal(err)
		}
		return b.keyed.sum().String()
	}
	plain := schemas.Event{Time: time.Unix(0, 1)}
	of := reflect.TypeFor[schemas.Event]()
	for i := range of.NumField() {
		t.Run(of.Field(i).Name, func(t *testing.T) {
			other := plain
			switch field := reflect.ValueOf(&other).Elem().Field(i).Addr().Interface().(type) {
			case *string:
				*field = "x"
				if other.Bytes() != plain.Bytes()+1 {
					t.Errorf("Bytes are %d with it, and %d without", other.Bytes(), plain.Bytes())
				}
			case *time.Time:
				*field = time.Unix(0, 2)
			case *schemas.ID:
				*field = schemas.DerivedID(1, 2, 3)
			case *[]schemas.Attr:
				*field = []schemas.Attr{schemas.String("x", "")}
			default:
				t.Fatalf("a field of type %T: give it a value here", field)
			}
			if digest(other) == digest(plain) {
				t.Error("the digest is that of an event without it: another request under the same key would be taken for a repeat")
			}
		})
	}
}
