package almanac_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/almanac-events/almanac"
	"github.com/almanac-events/almanac/audit"
	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/trail"
	"github.com/almanac-events/almanac/query/usage"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/timers"
)

// connect opens a client; the examples below begin with it, and leave out most errors.
func connect(ctx context.Context) *almanac.Client {
	a, err := almanac.Open(ctx, almanac.Config{NATS: natsURL, ClickHouse: clickHouse, Service: "shop"})
	if err != nil {
		panic(err)
	}
	return a
}

// A topic that a program needs is declared once; one that exists stays as it is.
func ExampleClient_Declare() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	topic := schemas.NewTopic("visits", schemas.Field{Name: "page", Type: schemas.TypeLowCardinality})
	fmt.Println(a.Declare(ctx, topic))
	fmt.Println(errors.Is(a.Declare(ctx, schemas.NewTopicOf(schemas.KindMeter, "visits")), almanac.ErrWrongKind))
	// Prints:
	// <nil>
	// true
}

// Of two writers that read the same version, one is told.
func ExampleClient_Documents() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	docs, _ := a.Documents(ctx, "customers")
	d, err := docs.Create(ctx, documents.Draft{ID: "eva", Path: "se/lund", Body: []byte(`{"name":"Eva"}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err = docs.Update(ctx, "eva", documents.IfVersion(d.Version), []byte(`{"name":"Eva L."}`))
	fmt.Println(d.Version, err)
	_, err = docs.Update(ctx, "eva", documents.IfVersion(1), []byte(`{"name":"E."}`))
	fmt.Println(errors.Is(err, documents.ErrVersion))
	page, err := docs.List(ctx, documents.Selection{Path: "se/lund"})
	fmt.Println(page.Documents[0].ID, string(page.Documents[0].Body), err)
	// Prints:
	// 2 <nil>
	// true
	// eva {"name":"Eva L."} <nil>
}

// The changes of a batch are made all or none.
func ExampleClient_Documents_batch() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	docs, _ := a.Documents(ctx, "customers")
	_, err := docs.Batch(ctx, documents.Op{Kind: documents.Create, ID: "one", Body: []byte(`{}`)}, documents.Op{Kind: documents.Remove, ID: "nothing"})
	fmt.Println(errors.Is(err, documents.ErrNotFound))
	_, err = docs.Load(ctx, "one")
	fmt.Println(errors.Is(err, documents.ErrNotFound))
	// Prints:
	// true
	// true
}

// A timer that is created again with the same content is the same timer.
func ExampleClient_Timers() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	mails, _ := a.Timers(ctx, "mails")
	welcome := timers.Draft{ID: "welcome-17", Due: time.Now().Add(time.Hour), URL: callbackURL, Payload: []byte(`{"user":17}`)}
	for range 2 {
		_, created, err := mails.Create(ctx, welcome)
		fmt.Println(created, err)
	}
	later := welcome.Due.Add(time.Hour)
	t, err := mails.Update(ctx, "welcome-17", timers.Always, timers.Change{Due: &later})
	fmt.Println(t.State, t.Revision, err)
	_, err = mails.Delete(ctx, "welcome-17", timers.IfRevision(t.Revision))
	fmt.Println(err)
	// Prints:
	// true <nil>
	// false <nil>
	// pending 2 <nil>
	// <nil>
}

// A page goes on where the one before it ended.
func ExampleClient_Query() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	p, _ := a.Producer(ctx, "pages")
	for i := range 3 {
		p.Log(producer.Event{Message: fmt.Sprint(i)})
	}
	if err := p.Flush(ctx); err != nil {
		fmt.Println(err)
		return
	}
	r, _ := a.Query(ctx)
	req := query.Request{Topic: "pages", Fields: []string{"message"}, Limit: 2, Ascending: true}
	for {
		page, err := r.Query(ctx, req)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(len(page.Events), "events")
		if req.Cursor = page.Cursor; req.Cursor == "" {
			return
		}
	}
	// Prints:
	// 2 events
	// 1 events
}

// A replay reads the past in order; here once what was logged has been routed.
func ExampleClient_Replay() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	p, _ := a.Producer(ctx, "past")
	if err := p.Publish(ctx, producer.Event{Message: "hello"}); err != nil {
		fmt.Println(err)
		return
	}
	r, _ := a.Query(ctx)
	if _, err := r.WaitRouted(ctx, time.Minute); err != nil {
		fmt.Println(err)
		return
	}
	replays, _ := a.Replay(ctx)
	job, err := replays.Begin(ctx, replay.Request{Topic: "past"})
	if err != nil {
		fmt.Println(err)
		return
	}
	null, _ := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	defer null.Close()
	result, err := job.Run(ctx, null, replay.Pace{})
	fmt.Println(result.Events, result.Done, err)
	// Prints:
	// 1 true <nil>
}

// The usage is the size over time: 1,024 bytes for two seconds.
func ExampleClient_Usage() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	p, _ := a.Producer(ctx, "bytes")
	at := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	diff := meter.Diff{Meter: "bytes", Space: "s1", Cause: "upload-17", Delta: 1024, Time: at}
	event, err := diff.Event()
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 { // it counts once
		if err := p.Publish(ctx, event); err != nil {
			fmt.Println(err)
			return
		}
	}
	r, _ := a.Query(ctx)
	if _, err := r.WaitStored(ctx, []string{"bytes"}, time.Minute, nil); err != nil {
		fmt.Println(err)
		return
	}
	u, _ := a.Usage(ctx)
	report, err := u.Report(ctx, usage.Request{Topic: "bytes", From: at, To: at.Add(2 * time.Second)})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Bills[0].Usage, "byte milliseconds")
	// Prints:
	// 2048000 byte milliseconds
}

// A change that was announced and not concluded is open.
func ExampleClient_Trail() {
	ctx := context.Background()
	a := connect(ctx)
	defer a.Close(ctx)
	p, _ := a.Producer(ctx, "iam")
	change := audit.Change{Request: "q-1", Scope: "projects/p", Type: "role", Resource: "roles/x", Actor: "u-7"}
	if err := audit.New(p).Before(ctx, change); err != nil {
		fmt.Println(err)
		return
	}
	r, _ := a.Trail(ctx)
	page, err := r.Page(ctx, trail.Request{Topic: "iam", Scopes: []string{"projects/p"}, RequestID: "q-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(page.Entries[0].State, page.Entries[0].Ended == nil)
	// Prints:
	// pre_committed true
}
