package frame

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/privacy"
)

// later is a topic to which rules, and a field, came after its first version.
func later(t testing.TB, before []schemas.Private, after ...schemas.Private) (old, now schemas.Topic) {
	t.Helper()
	old = privateTopic(before...)
	want := old
	want.PII = append(append([]schemas.Private{}, before...), after...)
	want.Fields = append(append([]schemas.Field{}, old.Fields...), schemas.Field{Name: "code", Type: schemas.TypeInt64})
	now, err := old.Evolve(want)
	if err != nil {
		t.Fatal(err)
	}
	return old, now
}

// A frame that is older than a rule becomes the frame that its producer had made had it known the rule: the same
// events, ids and times, each rule once.
func TestRuledIsWhatItsProducerHadMade(t *testing.T) {
	hash, drop, ip := schemas.PrivacyHash, schemas.PrivacyDrop, schemas.PrivacyTruncateIP
	old, now := later(t, []schemas.Private{{Field: schemas.ColUserID, Rule: hash}}, schemas.Private{Field: "email", Rule: drop},
		schemas.Private{Field: "host", Rule: hash}, schemas.Private{Field: "users.ip", Rule: ip}, schemas.Private{Field: "lat", Rule: schemas.PrivacyCoarseLocation})
	before, after := privacy.New(&old, privacyKey), privacy.New(&now, privacyKey)
	rapid.Check(t, func(rt *rapid.T) {
		was, want := NewBuilder(&old), NewBuilder(&now)
		for i := range rapid.IntRange(1, 20).Draw(rt, "events") {
			text := func(name string) string {
				return rapid.SampledFrom([]string{"", "x", "CLEAR", "a\xffb", `{"email":"CLEAR"}`}).Draw(rt, name)
			}
			id := schemas.NewID(int64(i + 1))
			event := func() schemas.Event {
				return schemas.Event{UserID: "CLEAR user", Message: "m", Service: "s"}
			}
			attrs := []schemas.Attr{
				schemas.String("email", text("email")), schemas.String("email.home", "CLEAR"), schemas.String("host", text("host")), schemas.Float64("lat", 52.51749),
				schemas.String("users", `[{"ip":"203.0.113.77"}]`), schemas.Int64("code", int64(i)), schemas.String("other", text("other")),
			}
			attrs = attrs[:rapid.IntRange(0, len(attrs)).Draw(rt, "attributes")]
			a, b := event(), event()
			a.Attrs, b.Attrs = attrs, attrs
			before.Apply(&a)
			after.Apply(&b)
			was.Append(&a, int64(i+1), id)
			want.Append(&b, int64(i+1), id)
		}
		f, payload := was.Encode()
		f.Producer, f.Seq = "p", 7
		var r, got Reader
		if err := r.Open(payload, &now, f.Schema); err != nil {
			rt.Fatal(err)
		}
		made, err := r.Ruled(f, privacyKey)
		if err != nil || len(made) != 1 || made[0].Producer != "p" || made[0].Seq != 7 || made[0].Schema != now.Version || made[0].IDSum != r.IDSum() {
			rt.Fatal(made, err)
		}
		if err := got.Open(made[0].Payload, &now, now.Version); err != nil {
			rt.Fatal(err)
		}
		w, wanted := want.Encode()
		var should Reader
		if err := should.Open(wanted, &now, w.Schema); err != nil {
			rt.Fatal(err)
		}
		for i := range should.Rows() {
			if a, b := fmt.Sprintf("%+v", got.Event(i)), fmt.Sprintf("%+v", should.Event(i)); a != b {
				rt.Fatalf("event %d is\n%s\nwant\n%s", i, a, b)
			}
		}
		if bytes.Contains(got.Raw(), []byte("CLEAR user")) {
			rt.Fatal("a user is in clear")
		}
		if again, err := got.Ruled(made[0].Frame, privacyKey); again != nil || err != nil {
			rt.Fatal("ruled twice", err)
		}
	})
}

// Hashes are longer than what they stand for. What no longer fits one frame becomes several, whose events are the
// same, and of which one is the producer's.
func TestRuledMayBeSeveralFrames(t *testing.T) {
	old, now := later(t, nil, schemas.Private{Field: "host", Rule: schemas.PrivacyHash}, schemas.Private{Field: schemas.ColUserID, Rule: schemas.PrivacyHash})
	b := NewBuilder(&old)
	const events = 12000
	for i := range events {
		b.Append(&schemas.Event{UserID: fmt.Sprintf("%x", i), Attrs: []schemas.Attr{schemas.String("host", fmt.Sprintf("%x", i))}}, int64(i+1), schemas.NewID(int64(i+1)))
	}
	f, payload := b.Encode()
	if f.Producer, f.Seq = "p", 9; len(payload) > schemas.MaxFrameBytes {
		t.Fatalf("%d bytes", len(payload))
	}
	var r Reader
	if err := r.Open(payload, &now, f.Schema); err != nil {
		t.Fatal(err)
	}
	sum, rows, named := uint64(0), 0, 0
	made, err := r.Ruled(f, privacyKey)
	if err != nil || len(made) < 2 {
		t.Fatalf("%d frames, %v", len(made), err)
	}
	var got Reader
	for _, m := range made {
		if err := got.Open(m.Payload, &now, m.Schema); err != nil || m.Rows != got.Rows() {
			t.Fatal(err)
		}
		if m.Producer != "" {
			named++
		}
		rows, sum = rows+m.Rows, sum+got.IDSum()
	}
	if rows != events || sum != r.IDSum() || named != 1 {
		t.Errorf("%d events in %d frames, %d of them the producer's", rows, len(made), named)
	}
}
