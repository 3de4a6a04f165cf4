package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/maintenance/verify"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// fronts is what verify says of a topic with its front.
func (e *env) fronts(topic string) *verify.Report {
	e.t.Helper()
	v, err := verify.New(e.connect(), e.reg, e.db)
	if err != nil {
		e.t.Fatal(err)
	}
	rep, err := answered(func() (*verify.Report, error) { return v.Fronts().Run(e.t.Context(), topic) })
	if err != nil {
		e.t.Fatal(err)
	}
	return rep
}

// DOCS lost single records, hot and cold: verify names each, repair brings a stub of its
// newest version back, a second time does nothing, and every document loads as before.
func TestRepairDocuments(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	create(t, c, "d-", "p", 30)
	e.stored("customers", 30, time.Minute)
	e.clean(e.cleaner(), cold)
	for i := range 20 { // ten of them hot
		if _, err := c.Update(t.Context(), fmt.Sprint("d-", 10+i), documents.Always, []byte(`{"n":-1}`)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Remove(t.Context(), "d-29", documents.Always); err != nil {
		t.Fatal(err)
	}
	e.stored("customers", 51, time.Minute)
	e.verified("customers")
	docs, err := e.js().Stream(t.Context(), schemas.StreamDocs)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"d-1", "d-15", "d-29"} { // a stub, a record, a removal: the last is not a loss
		for _, m := range e.messages(schemas.StreamDocs, "docs.customers.*."+id) {
			if err := streams.Delete(t.Context(), e.js(), docs, m.Sequence, false, streams.Refuse); err != nil {
				t.Fatal(err)
			}
		}
	}
	rep := e.fronts("customers")
	if f := rep.Topics[0].Front; f.Differ != 2 || rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), `"d-15": DOCS does not have it, ClickHouse has version 2`) {
		t.Fatalf("%+v, %q", f, rep.Problems)
	}
	// An erasure takes records out of DOCS before their rows: meanwhile nothing is brought back.
	made := e.plan()
	erasure, err := e.reg.Enter(t.Context(), ledger.Erasure{
		ID: "e-1", Topic: "customers", Cond: "user_id = {p1:String}", Params: map[string]string{"p1": "no-one"}, To: 1, Schema: 1, Front: schemas.StreamDocs, State: ledger.Erasing,
	})
	if err != nil {
		t.Fatal(err)
	}
	if p := e.plan(); !does(made, repair.RestoreStubs) || does(p, repair.RestoreStubs) {
		t.Errorf("planned before %+v, and during an erasure %+v", made.Actions, p.Actions)
	}
	if err := e.repairer().Apply(t.Context(), made, func(*repair.Action, error) {}); err == nil || !strings.Contains(err.Error(), erasure.ID) {
		t.Errorf("a plan from before the erasure: %v", err)
	}
	if did, err := e.eraser().Run(t.Context(), "customers", erasure.ID); err != nil || did.State != ledger.Erased {
		t.Fatalf("the erasure ended as %+v, %v", did, err)
	}
	for range 2 {
		e.carryOut(e.plan())
	}
	if p := e.plan(); p.Todo() != 0 {
		t.Fatalf("%+v is still to be done", p.Actions)
	}
	e.verified("customers")
	for id, version := range map[string]uint64{"d-1": 1, "d-15": 2} {
		if d, err := again(c.Load)(t.Context(), id); err != nil || d.Version != version || len(d.Body) == 0 {
			t.Errorf("%s: %+v, %v", id, d, err)
		}
	}
	if _, err := c.Update(t.Context(), "d-15", documents.IfVersion(2), []byte(`{"n":3}`)); err != nil {
		t.Error(err)
	}
	// A row that a stub names is gone.
	if err := e.hand.Conn().Exec(t.Context(), fmt.Sprintf("DELETE FROM %s WHERE doc_id = 'd-2'", e.table("customers"))); err != nil {
		t.Fatal(err)
	}
	if rep := e.fronts("customers"); rep.OK() || !strings.Contains(strings.Join(rep.Problems, "\n"), `"d-2": its stub names version 1`) {
		t.Errorf("%q", rep.Problems)
	}
	if _, err := c.Load(t.Context(), "d-2"); !errors.Is(err, documents.ErrArchive) {
		t.Errorf("a document whose row is lost: %v", err)
	}
}

// DOCS is gone. Nothing is written until repair has made a stub of every document, killed
// between any two steps; then all load, their versions go on, and what is written is routed. 400
// documents, or ALMANAC_DOCUMENTS_LOST.
func TestRepairLostFront(t *testing.T) {
	t.Parallel()
	e := running(t, docsTopic())
	c := e.documents("customers")
	n := sized("ALMANAC_DOCUMENTS_LOST", 400)
	create(t, c, "d-", "p", n)
	if err := c.Remove(t.Context(), "d-7", documents.Always); err != nil {
		t.Fatal(err)
	}
	e.stored("customers", uint64(n+1), 3*time.Minute)
	e.verified("customers")
	if err := e.js().DeleteStream(t.Context(), schemas.StreamDocs); err != nil {
		t.Fatal(err)
	}
	e.setUpAgain()
	if _, err := documents.Open(t.Context(), e.connect(), "customers", documents.Config{}); !errors.Is(err, documents.ErrLostFront) {
		t.Fatalf("a lost front was opened: %v", err)
	}
	plan := e.plan()
	if !does(plan, repair.AdvanceFront) || !does(plan, repair.RestoreStubs) {
		t.Fatalf("%+v", plan.Actions)
	}
	e.killed()
	c = e.documents("customers")
	st, err := c.Status(t.Context())
	if err != nil || st.Cold != uint64(n-1) || st.Hot != 0 {
		t.Fatalf("%+v, %v", st, err)
	}
	for i := range n {
		d, err := again(c.Load)(t.Context(), fmt.Sprint("d-", i))
		if i == 7 && errors.Is(err, documents.ErrNotFound) {
			continue
		}
		if err != nil || string(d.Body) != fmt.Sprintf(`{"n":%d}`, i) {
			t.Fatalf("d-%d: %+v, %v", i, d, err)
		}
	}
	if _, err := c.Update(t.Context(), "d-1", documents.IfVersion(1), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), documents.Draft{ID: "d-2", Body: []byte(`{}`)}); !errors.Is(err, documents.ErrExists) {
		t.Errorf("an id that is taken: %v", err)
	}
	create(t, c, "later-", "p", 5)
	e.stored("customers", uint64(n+7), time.Minute)
	e.verified("customers")
}
