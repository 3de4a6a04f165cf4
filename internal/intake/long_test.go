package intake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// attributes are those of an event, by name.
func attributes(e *schemas.Event) map[string]string {
	m := map[string]string{}
	for i := range e.Attrs {
		m[e.Attrs[i].Key] = e.Attrs[i].Text()
	}
	return m
}

// only is the one record of an input.
func only(t *testing.T, input string, o *Options) Record {
	t.Helper()
	rec, err := NewReader(strings.NewReader(input), *o).Next()
	if err != nil || rec.Err != nil {
		t.Fatal(err, rec.Err)
	}
	return rec
}

// A record above the bounds of an event is kept, cut or split, with its size and digest, and is valid.
func TestLongRecordsAreCutOrSplit(t *testing.T) {
	text := strings.Repeat("ä line of a trace ", 20_000) // 380 KB
	many := &strings.Builder{}
	for i := range 1000 {
		fmt.Fprintf(many, `,"k%d":"%s"`, i, strings.Repeat("v", 300))
	}
	for name, c := range map[string]struct {
		format, input string
		whole         string // the text that is cut or split; empty: other fields alone are too long, and split refuses
	}{
		"text":                {FormatText, text, text},
		"a message":           {FormatNDJSON, `{"ts":"2026-11-01T00:00:00Z","user_id":"u-1","n":7,"message":"` + text + `"}`, text},
		"an attribute":        {FormatNDJSON, `{"user_id":"u-1","message":"m","stack":"` + text + `"}`, text},
		"many attributes":     {FormatNDJSON, `{"message":"m"` + many.String() + `}`, ""},
		"not UTF-8":           {FormatText, strings.Repeat("\xff", 300_000), strings.Repeat("\xff", 300_000)},
		"a bit above":         {FormatText, strings.Repeat("x", schemas.MaxEventBytes+1), strings.Repeat("x", schemas.MaxEventBytes+1)},
		"as long as it may":   {FormatText, strings.Repeat("x", schemas.MaxEventBytes), ""},
		"with an id and time": {FormatNDJSON, `{"id":"019ab2c4-1111-7222-8333-444444444444","ts":"2026-11-01T00:00:00Z","message":"` + text + `"}`, text},
	} {
		t.Run(name, func(t *testing.T) {
			sum := sha256.Sum256([]byte(c.input))
			for _, long := range []Long{LongCut, LongSplit} {
				o := &Options{Format: c.format, Long: long}
				rec := only(t, c.input+"\n", o)
				events, err := o.Fit(&rec)
				switch {
				case len(c.input) == schemas.MaxEventBytes:
					if err != nil || len(events) != 1 || len(events[0].Attrs) != 0 || events[0].Message != c.input {
						t.Errorf("%s: an event that fits is changed: %d events, %v", name, len(events), err)
					}
					continue
				case long == LongSplit && c.whole == "":
					if !errors.Is(err, schemas.ErrEventTooLarge) || !strings.Contains(err.Error(), "--cut") {
						t.Errorf("%s: split gave %v", name, err)
					}
					continue
				case err != nil:
					t.Errorf("%s: %v", name, err)
					continue
				}
				var joined strings.Builder
				ids := map[schemas.ID]bool{}
				for i := range events {
					e := &events[i]
					if now := time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC).UnixNano(); e.Validate(now, now) != nil {
						t.Errorf("%s: event %d is refused: %v", name, i, e.Validate(now, now))
					}
					a := attributes(e)
					if a[schemas.AttrLongBytes] != fmt.Sprint(len(c.input)) || a[schemas.AttrLongSHA256] != hex.EncodeToString(sum[:]) {
						t.Errorf("%s: marked with %s bytes, %s", name, a[schemas.AttrLongBytes], a[schemas.AttrLongSHA256])
					}
					if e.UserID != rec.Event.UserID || !e.Time.Equal(rec.Event.Time) || rec.Event.ID.IsZero() != e.ID.IsZero() {
						t.Errorf("%s: event %d lost fields: %+v", name, i, e)
					}
					if !e.ID.IsZero() && ids[e.ID] {
						t.Errorf("%s: two parts have one id", name)
					}
					ids[e.ID] = true
					if part := a[schemas.AttrPart] + "/" + a[schemas.AttrParts]; long == LongSplit && part != fmt.Sprintf("%d/%d", i+1, len(events)) {
						t.Errorf("%s: part %s", name, part)
					}
					if e.Message != "m" {
						joined.WriteString(e.Message)
					}
					joined.WriteString(a["stack"])
				}
				switch got := joined.String(); {
				case long == LongSplit && got != c.whole:
					t.Errorf("%s: the parts are not the text: %d bytes of %d", name, len(got), len(c.whole))
				case long == LongCut && (len(events) != 1 || c.whole != "" && (!strings.HasPrefix(c.whole, got) || len(got) < schemas.MaxEventBytes/3)):
					t.Errorf("%s: cut to %d bytes in %d events", name, len(got), len(events))
				case strings.ToValidUTF8(c.input, "?") == c.input && strings.ToValidUTF8(got, "?") != got:
					t.Errorf("%s: a character is split", name)
				}
			}
		})
	}
}

// A rule reaches into JSON text; half of one it could not read, so none of it stays. The digest would tell what a rule hides.
func TestLongRecordsKeepRules(t *testing.T) {
	topic := &schemas.Topic{Name: "app", PII: []schemas.Private{{Field: "users.email", Rule: schemas.PrivacyDrop}}}
	input := `{"message":"m","users":[` + strings.Repeat(`{"email":"a@b.example"},`, 5000) + `{}]}`
	for _, long := range []Long{LongCut, LongSplit} {
		o := &Options{Format: FormatNDJSON, Long: long, Topic: topic}
		rec := only(t, input, o)
		events, err := o.Fit(&rec)
		if long == LongSplit {
			if !errors.Is(err, schemas.ErrEventTooLarge) || !strings.Contains(err.Error(), "--cut") {
				t.Errorf("split gave %v", err)
			}
			continue
		}
		if err != nil || len(events) != 1 {
			t.Fatal(events, err)
		}
		a := attributes(&events[0])
		if users, there := a["users"]; !there || users != "" || a[schemas.AttrLongSHA256] != "" || a[schemas.AttrLongBytes] != fmt.Sprint(len(input)) {
			t.Errorf("%d bytes of users are left, digest %q, size %s", len(users), a[schemas.AttrLongSHA256], a[schemas.AttrLongBytes])
		}
	}
}
