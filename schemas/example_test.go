package schemas_test

import (
	"fmt"

	"github.com/almanac-events/almanac/schemas"
)

func ExampleShardRef() {
	ref := schemas.ShardRef{Topic: "app", Month: 202611, ID: 0x2a}
	fmt.Println(ref)
	fmt.Println(ref.Subject())
	// Output:
	// app-registry:2026-11:shard:000000000000002a
	// shards.app.2026-11.000000000000002a
}
