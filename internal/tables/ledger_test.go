package tables

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// The copy of the ledger has the last of what was written under a key, and after ClearLedger
// nothing of what it was before.
func TestLedgerCopies(t *testing.T) {
	t.Parallel()
	db, _ := open(t)
	ctx := t.Context()
	if has, err := db.HasLedger(ctx); err != nil || has {
		t.Fatalf("before anything: %t, %v", has, err)
	}
	if kept, known, err := db.KeptLedger(ctx); err != nil || !known || len(kept) != 0 {
		t.Fatalf("before anything: %v, %t, %v", kept, known, err)
	}
	const key = "ledger.app.it's"
	for _, k := range []schemas.LedgerCopy{
		{Key: key, Count: 1, Value: []byte(`{"users":["mallory"]}`)},
		{Key: key, Count: 2, Value: []byte(`{"b":"\\ ' \n"}`)},
		{Key: key, Count: 2, Value: []byte(`{"b":"\\ ' \n"}`), Applied: true},
		{Key: "ledger.app.x", Count: 7},
	} {
		if err := db.SaveLedger(ctx, k); err != nil {
			t.Fatal(err)
		}
	}
	kept, known, err := db.KeptLedger(ctx)
	if k := kept[key]; err != nil || !known || len(kept) != 2 || k.Count != 2 || string(k.Value) != `{"b":"\\ ' \n"}` || !k.Applied {
		t.Fatalf("%+v, %t, %v", kept, known, err)
	}
	if k := kept["ledger.app.x"]; k.Count != 7 || len(k.Value) != 0 || k.Applied {
		t.Errorf("a tombstone: %+v", k)
	}
	// The erasure is to be carried out again: the last row counts.
	if err := db.SaveLedger(ctx, schemas.LedgerCopy{Key: key, Count: 2, Value: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // and was carried out again: a row that came before
		for _, applied := range []bool{true, false} {
			k := schemas.LedgerCopy{Key: "ledger.app.again", Count: 1, Value: []byte("{}"), Applied: applied}
			if err := db.SaveLedger(ctx, k); err != nil {
				t.Fatal(err)
			}
			if kept, err = db.ReadLedger(ctx); err != nil || kept[k.Key].Applied != applied {
				t.Errorf("marked as applied: %t, it reads %+v (%v)", applied, kept[k.Key], err)
			}
		}
	}
	if err := db.ClearLedger(ctx, key, 2); err != nil {
		t.Fatal(err)
	}
	if kept, err = db.ReadLedger(ctx); err != nil || kept[key].Applied {
		t.Errorf("%+v, %v", kept, err)
	}
	var named uint64
	if err := db.Conn().QueryRow(ctx, "SELECT count() FROM "+sql.QuotedTable(db.Database, schemas.TableLedger)+" WHERE value LIKE '%mallory%'").Scan(&named); err != nil || named != 0 {
		t.Errorf("%d rows name who was cleared (%v)", named, err)
	}
}
