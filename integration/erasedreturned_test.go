package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/maintenance/erasure"
	"github.com/almanac-events/almanac/registry/ledger"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/timers"
)

// DOCS and TIMERS are restored from a copy from before an erasure. ClickHouse has no row of the erased, so it cannot say
// whose the records are; the erasure is carried out again all the same, and takes them out. What others have stays, and a
// timer of the erased is never called.
func TestErasedRecordsLeaveAnOlderFront(t *testing.T) {
	t.Parallel()
	docs := docsTopic()
	docs.Documents.UserField = "owner"
	d := startOnDisk(t, docs)
	if _, err := fmt.Sscanf(d.srv.NATSURL, "nats://127.0.0.1:%d", &d.port); err != nil {
		t.Fatal(err)
	}
	te := d.timers()
	c := d.documents("customers")
	for i := range 6 {
		user := []string{erasedPerson, keptPerson}[i%2]
		if _, err := c.Create(t.Context(), documents.New{ID: fmt.Sprint("d-", i), Body: fmt.Appendf(nil, `{"owner":%q}`, user)}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := te.Create(t.Context(), timers.New{Group: "g", ID: fmt.Sprint("t-", i), Due: time.Now().Add(time.Hour), URL: te.url, User: user}); err != nil {
			t.Fatal(err)
		}
	}
	stopRouter, stopSink := d.router(), d.sink()
	d.stored("customers", 6, time.Minute)
	d.stored(schemas.DefaultTimerTopic, 6, time.Minute)
	older := filepath.Join(t.TempDir(), "older")
	stopRouter()
	stopSink()
	d.copyTo(older)
	stopRouter, stopSink = d.router(), d.sink()
	var jobs []ledger.Erasure
	for _, topic := range []string{"customers", schemas.DefaultTimerTopic} {
		jobs = append(jobs, d.erase(erasure.Request{Topic: topic, Users: []string{erasedPerson}}))
	}
	has := func(stream, filter string) (mine, all int) {
		t.Helper()
		for _, m := range d.messages(stream, filter) {
			if all++; m.Header.Get(schemas.HeaderUser) == erasedPerson {
				mine++
			}
		}
		return mine, all
	}
	stopRouter()
	stopSink()
	d.takeOlder(older, schemas.StreamDocs, schemas.StreamTimers)
	if mine, all := has(schemas.StreamDocs, "docs.>"); mine != 3 || all != 6 {
		t.Fatalf("DOCS came back with %d of the erased, of %d", mine, all)
	}
	did, err := d.eraser().Agree(t.Context(), true)
	if err != nil || !slices.Contains(did.Again, jobs[0].ID) || !slices.Contains(did.Again, jobs[1].ID) {
		t.Fatalf("%+v, %v; expected %s and %s again", did, err, jobs[0].ID, jobs[1].ID)
	}
	for stream, filter := range map[string]string{schemas.StreamDocs: "docs.>", schemas.StreamTimers: "timers.>"} {
		if mine, all := has(stream, filter); mine != 0 || all != 3 {
			t.Errorf("%s has %d of the erased, of %d", stream, mine, all)
		}
	}
	if did, err := d.eraser().Agree(t.Context(), true); err != nil || len(did.Again) > 0 {
		t.Errorf("a second time: %+v, %v", did, err)
	}
	d.router()
	d.sink()
	eventually(t, time.Minute, func() error {
		d.carryOut(d.plan())
		rep, err := d.proof("")
		if err == nil && (!rep.OK() || rep.Pending > 0) {
			err = fmt.Errorf("%q", rep.Problems)
		}
		return err
	})
	if _, err := d.documents("customers").Load(t.Context(), "d-1"); err != nil {
		t.Errorf("another's document: %v", err)
	}
}
