package meter_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/schemas"
)

// A diff is an event whose meter, provider, space and cause say which change it is.
func ExampleDiff_Event() {
	d := meter.Diff{Meter: "bytes", Provider: "p1", Space: "s1", Cause: "upload-17", Delta: 1024, Customer: "c-7", Time: time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)}
	e, err := d.Event()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Type, e.UserID)
	for _, a := range e.Attrs {
		fmt.Println(a.Key, a.Text())
	}
	// Output:
	// bytes c-7
	// provider p1
	// space s1
	// cause upload-17
	// delta 1024
}

// A diff without a cause is refused: nothing would tell a copy of it from another change.
func ExampleDiff_refused() {
	_, err := meter.Diff{Meter: "bytes", Space: "s1", Delta: 1024}.Event()
	fmt.Println(errors.Is(err, schemas.ErrValue), err)
	_, err = meter.Diff{Meter: "bytes", Space: "s1", Cause: "upload-17", Delta: 1024}.Event()
	fmt.Println(err)
	// Output:
	// true meter: bad value: cause is empty
	// <nil>
}
