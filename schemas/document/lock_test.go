package document

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/schemas"
)

// A lock is read as it was written, with its token from the first message and its end by the
// time at which NATS stored it; what is not one is refused.
func TestLockHeaders(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ in, want Lock }{
		"first":    {Lock{By: "ada", For: 30 * time.Second}, Lock{Seq: 7, Token: tokenOf(7, at), By: "ada", For: 30 * time.Second, Until: at.Add(30 * time.Second)}},
		"renewed":  {Lock{Token: 3, By: "ada", For: time.Hour}, Lock{Seq: 7, Token: 3, By: "ada", For: time.Hour, Until: at.Add(time.Hour)}},
		"released": {Lock{Released: true}, Lock{Seq: 7, Token: tokenOf(7, at), Released: true, For: time.Second, Until: at.Add(time.Second)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseLock(7, at, c.in.Header())
			if err != nil || *got != c.want || got.Held() != !c.want.Released {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	first, _ := ParseLock(7, at, (&Lock{For: time.Minute}).Header())
	if later, err := ParseLock(9, at.AddDate(0, 0, -43), (&Lock{For: time.Minute}).Header()); err != nil || later.Token <= first.Token {
		t.Errorf("after the server's clock went back: %+v after %+v, %v", later, first, err)
	}
	if again, err := ParseLock(7, at.Add(time.Second), (&Lock{For: time.Minute}).Header()); err != nil || again.Token == first.Token {
		t.Errorf("after the sequence was given again: %+v as %+v, %v", again, first, err)
	}
	if (*Lock)(nil).Held() {
		t.Error("none is held")
	}
	for name, change := range map[string]func(nats.Header){
		"op":    func(h nats.Header) { h.Set(schemas.HeaderOp, schemas.OpStored) },
		"time":  func(h nats.Header) { h.Del(jetstream.MsgTTLHeader) },
		"token": func(h nats.Header) { h.Set(schemas.HeaderLock, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			h := (&Lock{Token: 3, For: time.Minute}).Header()
			change(h)
			if _, err := ParseLock(7, at, h); !errors.Is(err, schemas.ErrRecord) {
				t.Errorf("%v", err)
			}
		})
	}
}
