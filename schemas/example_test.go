package schemas_test

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

func ExampleFrameBuilder() {
	topic := schemas.NewTopic("app")
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixNano()
	b := schemas.NewFrameBuilder(&topic)
	for _, user := range []string{"u-7", "u-8"} {
		b.Append(&schemas.Event{UserID: user, Message: "logged in"}, at, schemas.NewID(at))
	}
	head, payload := b.Encode()

	var r schemas.FrameReader
	if err := r.Open(payload, &topic, head.Schema); err != nil {
		fmt.Println(err)
		return
	}
	for i := range r.Rows() {
		e := r.Event(i)
		fmt.Println(e.UserID, e.Message)
	}
	// Output:
	// u-7 logged in
	// u-8 logged in
}

func ExampleShardRef() {
	ref := schemas.ShardRef{Topic: "app", Month: 202611, ID: 0x2a}
	fmt.Println(ref)
	fmt.Println(ref.Subject())
	// Output:
	// app-registry:2026-11:shard:000000000000002a
	// shards.app.2026-11.000000000000002a
}
