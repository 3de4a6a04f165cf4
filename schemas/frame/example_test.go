package frame_test

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/frame"
)

func ExampleBuilder() {
	topic := schemas.NewTopic("app")
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC).UnixNano()
	b := frame.NewBuilder(&topic)
	for _, user := range []string{"u-7", "u-8"} {
		b.Append(&schemas.Event{UserID: user, Message: "logged in"}, at, schemas.NewID(at))
	}
	head, payload := b.Encode()

	var r frame.Reader
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
