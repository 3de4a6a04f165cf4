package schemas_test

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/schemas"
)

// A promoted field is an attribute with a typed column of its own.
func ExampleNewTopic() {
	topic, err := schemas.NewTopic("orders", schemas.Field{Name: "total_eur", Type: schemas.TypeFloat64}).Declared()
	fmt.Println(topic.Name, topic.Kind, topic.Fields[0].Name, err)
	// Output:
	// orders log total_eur <nil>
}

// A topic of another kind begins with that kind's fields.
func ExampleNewTopicOf() {
	topic := schemas.NewTopicOf(schemas.KindMeter, "bytes")
	for _, f := range topic.Fields {
		fmt.Println(f.Name, f.Type)
	}
	// Output:
	// provider lowcardinality
	// space string
	// cause string
	// delta int64
}

// Events belong to the month of their own time, in UTC.
func ExampleMonthOf() {
	m := schemas.MonthOf(time.Date(2026, 11, 30, 23, 30, 0, 0, time.FixedZone("", -3600)).UnixNano())
	fmt.Println(m, m.Next())
	// Output:
	// 2026-12 2027-01
}
