package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// An erasure takes documents out of DOCS before it takes their rows. Verify says so meanwhile,
// and makes no problem of them. A document that the erasure does not mean stays one.
func TestVerifyFrontsDuringErasure(t *testing.T) {
	t.Parallel()
	e, c := ownedDocs(t)
	const mine, others = 30, 20
	for i := range mine + others {
		owner := "u-7"
		if i >= mine {
			owner = "u-1"
		}
		if _, err := c.Create(t.Context(), documents.Draft{ID: fmt.Sprint("d-", i), Path: "p", Body: fmt.Appendf(nil, `{"owner":%q}`, owner)}); err != nil {
			t.Fatal(err)
		}
	}
	e.stored("customers", mine+others, time.Minute)
	e.verified("customers")
	x := e.eraser()
	job, err := x.Start(t.Context(), erasure.Request{Topic: "customers", Users: []string{"u-7"}})
	if err != nil {
		t.Fatal(err)
	}
	// As the erasure does it, killed before it takes rows.
	take := func(i int) {
		t.Helper()
		tp := c.Topic()
		id := fmt.Sprint("d-", i)
		if err := streams.Purge(t.Context(), e.reg.JetStream(), schemas.StreamDocs, schemas.DocSubject("customers", document.Lane(&tp, id), id), streams.Refuse); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 12 {
		take(i)
	}
	r := e.fronts("customers")
	f := r.Topics[0].Front
	if len(r.Problems) > 0 || f.Differ != 0 || f.Erasing != 12 || f.Erasure != job.ID {
		t.Errorf("%+v, %q; expected 12 that %s takes", f, r.Problems, job.ID)
	}
	take(mine + 3)
	r = e.fronts("customers")
	if f = r.Topics[0].Front; f.Differ != 1 || f.Erasing != 12 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0], fmt.Sprintf("%q", fmt.Sprint("d-", mine+3))) {
		t.Errorf("%+v, %q; expected a problem with the one of another", f, r.Problems)
	}
	if job, err = x.Run(t.Context(), "customers", job.ID); err != nil || job.State != ledger.Erased {
		t.Fatalf("%+v, %v", job, err)
	}
	r = e.fronts("customers")
	if f = r.Topics[0].Front; f.Differ != 1 || f.Erasing != 0 || len(r.Problems) != 1 {
		t.Errorf("ended: %+v, %q", f, r.Problems)
	}
}
