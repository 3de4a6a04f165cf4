package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
)

func entryOf(t *testing.T, count uint64, e ledger.Erasure) schemas.LedgerCopy {
	t.Helper()
	value, err := json.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	return schemas.LedgerCopy{Key: e.Key(), Count: count, Value: value}
}

func ledgerOf(entries ...schemas.LedgerCopy) map[string]schemas.LedgerCopy {
	out := map[string]schemas.LedgerCopy{}
	for _, e := range entries {
		out[e.Key] = e
	}
	return out
}

// Which erasures a restored ledger lacks.
func TestMissed(t *testing.T) {
	t.Parallel()
	e := func(id, topic string, state ledger.State, redacted bool) ledger.Erasure {
		return ledger.Erasure{ID: id, Topic: topic, State: state, Redacted: redacted, Users: []string{"u"}}
	}
	here := ledgerOf(entryOf(t, 5, e("ended", "app", ledger.Erased, false)), entryOf(t, 2, e("waiting", "app", ledger.Waiting, false)),
		entryOf(t, 2, e("hidden", "app", ledger.Waiting, false)), entryOf(t, 9, e("same", "app", ledger.Waiting, false)),
		entryOf(t, 2, e("dropped", "app", ledger.Waiting, false)), entryOf(t, 8, e("already", "app", ledger.Erased, true)))
	newer := ledgerOf(entryOf(t, 9, e("already", "app", ledger.Erased, true)), entryOf(t, 7, e("ended", "app", ledger.Erased, true)), entryOf(t, 6, e("waiting", "app", ledger.Erased, false)),
		entryOf(t, 6, e("hidden", "app", ledger.Erased, true)), entryOf(t, 9, e("same", "app", ledger.Waiting, false)),
		schemas.LedgerCopy{Key: schemas.LedgerKey("app", "forgotten"), Count: 3}, schemas.LedgerCopy{Key: schemas.LedgerKey("app", "dropped"), Count: 8},
		entryOf(t, 4, e("new", "app", ledger.Erased, false)), entryOf(t, 4, e("unknown", "app", ledger.Erased, true)), entryOf(t, 4, e("elsewhere", "gone", ledger.Erased, false)))
	m, err := miss(newer, here, map[string]bool{"app": true})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range m.enter {
		ids = append(ids, m.enter[i].ID)
		if m.enter[i].Redacted || m.count[m.enter[i].Key()] <= here[m.enter[i].Key()].Count {
			t.Errorf("%+v is entered as its write number %d", m.enter[i], m.count[m.enter[i].Key()])
		}
	}
	if fmt.Sprint(ids) != "[dropped hidden new waiting]" {
		t.Errorf("entered are %v", ids)
	}
	if fmt.Sprint(m.unknown) != "[forgotten of topic app unknown of topic app]" {
		t.Errorf("unknown are %v", m.unknown)
	}
	if fmt.Sprint(m.redact) != "[{app dropped} {app ended} {app hidden}]" {
		t.Errorf("to be redacted again are %v", m.redact)
	}
	old := m.enter[2]
	old.Bounds, old.Rows = map[schemas.Shard]uint64{3: 4}, 7
	if n := renewed(&old); n.State != ledger.Waiting || n.Bounds != nil || n.Rows != 0 || n.Users[0] != "u" {
		t.Errorf("%+v", n)
	}
}

// The file of a ledger is whole or refused, and has erasures alone, also those that were forgotten.
func TestLedgerFile(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 17, 0, 0, 5, time.UTC)
	all := LedgerOf("ours", ledgerOf(entryOf(t, 5, ledger.Erasure{ID: "a", Topic: "app", Users: []string{"u-7"}}),
		schemas.LedgerCopy{Key: schemas.LedgerKey("app", "b"), Count: 7},
		schemas.LedgerCopy{Key: schemas.ErasureRecordKey("app", 1, 2), Count: 1, Value: []byte(`{"topic":"app"}`)},
		schemas.LedgerCopy{Key: schemas.TopicKey("app"), Count: 1, Value: []byte(`{}`)}), at)
	text, err := all.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeLedger("x", text)
	if err != nil || !back.At.Equal(at) || len(back.Erasures) != 2 || back.Erasures[schemas.LedgerKey("app", "a")].Count != 5 {
		t.Fatalf("%v, %v", back, err)
	}
	if forgotten := back.Erasures[schemas.LedgerKey("app", "b")]; forgotten.Count != 7 || len(forgotten.Value) != 0 {
		t.Errorf("what was forgotten is %+v", forgotten)
	}
	for i := range text {
		bad := append([]byte(nil), text...)
		bad[i] ^= 1
		if _, err := DecodeLedger("x", bad); !errors.Is(err, ErrTorn) {
			t.Fatalf("a bit of byte %d: %v", i, err)
		}
		if _, err := DecodeLedger("x", text[:i]); !errors.Is(err, ErrTorn) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
}

// A ledger that is older than what the backups know, or lacks some of it, does not pass for one that knows of the erasures since.
func TestLedgerFollows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 26, 17, 0, 0, 0, time.UTC)
	a := func(count uint64) schemas.LedgerCopy { return entryOf(t, count, ledger.Erasure{ID: "a", Topic: "app"}) }
	b := entryOf(t, 1, ledger.Erasure{ID: "b", Topic: "app"})
	forgotten := schemas.LedgerCopy{Key: schemas.LedgerKey("app", "a"), Count: 6}
	known := LedgerOf("ours", ledgerOf(a(5)), at)
	for name, c := range map[string]struct {
		ledger Ledger
		want   error
	}{
		"the same, later":           {LedgerOf("ours", ledgerOf(a(5)), at.Add(1)), nil},
		"one more":                  {LedgerOf("ours", ledgerOf(a(5), b), at.Add(1)), nil},
		"forgotten since":           {LedgerOf("ours", ledgerOf(forgotten), at.Add(1)), nil},
		"of the same time":          {LedgerOf("ours", ledgerOf(a(5)), at), ErrOldLedger},
		"of no time":                {LedgerOf("ours", ledgerOf(a(5)), time.Time{}), ErrOldLedger},
		"of another Almanac":        {LedgerOf("ours", ledgerOf(b), at.Add(1)), ErrOldLedger},
		"of one that only looks so": {LedgerOf("theirs", ledgerOf(a(5), b), at.Add(1)), ErrOldLedger},
		"of one without a backup":   {LedgerOf("", ledgerOf(a(5), b), at.Add(1)), ErrOldLedger},
		"empty":                     {LedgerOf("ours", nil, at.Add(1)), ErrOldLedger},
		"of a restored Almanac":     {LedgerOf("ours", ledgerOf(a(4), b), at.Add(1)), ErrOldLedger},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.ledger.Follows(&known); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		})
	}
	if all := Newest(known, LedgerOf("ours", ledgerOf(a(4), b), at.Add(1))); !all.At.Equal(at.Add(1)) || len(all.Erasures) != 2 || all.Erasures[schemas.LedgerKey("app", "a")].Count != 5 {
		t.Errorf("joined: %+v", all)
	}
}
