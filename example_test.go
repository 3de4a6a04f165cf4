package almanac_test

import (
	"context"
	"fmt"
	"time"

	"github.com/almanac-events/almanac"
	"github.com/almanac-events/almanac/documents"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/timers"
)

// natsURL and clickHouse are where `almanac up` serves; TestExamples sets them.
var natsURL, clickHouse, callbackURL string

// A program that logs, stores a document, sets a timer and queries.
func Example() {
	ctx := context.Background()
	fail := func(err error) bool {
		if err != nil {
			fmt.Println(err)
		}
		return err != nil
	}
	a, err := almanac.Open(ctx, almanac.Config{NATS: natsURL, ClickHouse: clickHouse, Service: "shop"})
	if fail(err) {
		return
	}
	defer a.Close(ctx)

	orders, err := a.Producer(ctx, "orders")
	if fail(err) || fail(orders.Publish(ctx, producer.Event{Type: "placed", UserID: "u-7", Message: "two books"})) {
		return
	}
	customers, err := a.Documents(ctx, "customers")
	if fail(err) {
		return
	}
	ada, err := customers.Put(ctx, documents.Draft{ID: "c-1", Path: "se/uppsala", Body: []byte(`{"name":"Ada"}`)})
	if fail(err) {
		return
	}
	mails, err := a.Timers(ctx, "mails")
	if fail(err) {
		return
	}
	_, created, err := mails.Create(ctx, timers.Draft{ID: "thanks-17", Due: time.Now().Add(time.Hour), URL: callbackURL})
	if fail(err) {
		return
	}
	r, err := a.Query(ctx)
	if fail(err) {
		return
	}
	page, err := r.Query(ctx, query.Request{Topic: "orders", Where: "user_id = 'u-7'", Fields: []string{"service", "type", "message"}})
	if fail(err) {
		return
	}
	fmt.Println(ada.ID, "is at version", ada.Version)
	fmt.Println("a timer was set:", created)
	fmt.Printf("%s\n", page.Events[0])
	// Prints:
	// c-1 is at version 1
	// a timer was set: true
	// {"service":"shop","type":"placed","message":"two books"}
}
