package backup

import (
	"encoding/json"
	"errors"
	"testing"

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
		entryOf(t, 2, e("hidden", "app", ledger.Waiting, false)), entryOf(t, 9, e("same", "app", ledger.Waiting, false)))
	newer := ledgerOf(entryOf(t, 7, e("ended", "app", ledger.Erased, true)), entryOf(t, 6, e("waiting", "app", ledger.Erased, false)),
		entryOf(t, 6, e("hidden", "app", ledger.Erased, true)), entryOf(t, 9, e("same", "app", ledger.Waiting, false)),
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
	if len(ids) != 3 || ids[0] != "hidden" || ids[1] != "new" || ids[2] != "waiting" {
		t.Errorf("entered are %v", ids)
	}
	if len(m.unknown) != 1 {
		t.Errorf("unknown are %v", m.unknown)
	}
	old := m.enter[1]
	old.Bounds, old.Rows = map[schemas.Shard]uint64{3: 4}, 7
	if n := renewed(&old); n.State != ledger.Waiting || n.Bounds != nil || n.Rows != 0 || n.Users[0] != "u" {
		t.Errorf("%+v", n)
	}
}

// The file of a ledger is whole or refused, and has erasures alone.
func TestLedgerFile(t *testing.T) {
	t.Parallel()
	all := ledgerOf(entryOf(t, 5, ledger.Erasure{ID: "a", Topic: "app", Users: []string{"u-7"}}),
		schemas.LedgerCopy{Key: schemas.TopicKey("app"), Count: 1, Value: []byte(`{}`)})
	text, err := EncodeLedger(all)
	if err != nil {
		t.Fatal(err)
	}
	back, err := DecodeLedger("x", text)
	if err != nil || len(back) != 1 || back[schemas.LedgerKey("app", "a")].Count != 5 {
		t.Fatalf("%v, %v", back, err)
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
