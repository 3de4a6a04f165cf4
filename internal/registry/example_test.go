package registry_test

import (
	"fmt"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func ExampleShard_NextStep() {
	topic := schemas.NewTopic("app")
	topic.KeepDays = 30
	youngest := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	s := registry.Shard{Topic: "app", Month: 202611, Status: registry.Closed, MinTs: youngest.UnixNano(), MaxTs: youngest.UnixNano()}
	for _, days := range []int{30, 31} {
		fmt.Printf("after %d days: %q\n", days, s.NextStep(&topic, youngest.AddDate(0, 0, days)))
	}
	// Output:
	// after 30 days: ""
	// after 31 days: "drop"
}
