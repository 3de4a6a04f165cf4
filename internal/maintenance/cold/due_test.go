package cold

import (
	"reflect"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

func TestDue(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
	id := schemas.NewShard(0)
	place := func(volume string, bytes uint64) tables.Place {
		return tables.Place{Volume: volume, Disk: volume, Bytes: bytes}
	}
	type parts = []tables.Place
	near, far := parts{place("default", 5)}, parts{place("cold", 7)}
	for name, c := range map[string]struct {
		status     registry.Status
		age        int // days
		days, keep int
		anonymise  int
		parts      parts
		to         string // empty: stays
		bytes      uint64
	}{
		"old":                             {registry.Closed, 10, 7, 0, 0, near, "cold", 5},
		"young":                           {registry.Closed, 6, 7, 0, 0, near, "", 0},
		"there already":                   {registry.Closed, 10, 7, 0, 0, far, "", 0},
		"moved in part, or repaired":      {registry.Closed, 10, 7, 0, 0, append(near, far...), "cold", 5},
		"open":                            {registry.Active, 10, 7, 0, 0, near, "", 0},
		"sealed":                          {registry.Sealed, 10, 7, 0, 0, near, "", 0},
		"about to be dropped":             {registry.Closed, 40, 7, 30, 0, near, "", 0},
		"about to be cleared":             {registry.Closed, 10, 7, 0, 3, near, "", 0},
		"no rows":                         {registry.Closed, 10, 7, 0, 0, nil, "", 0},
		"the option is gone":              {registry.Closed, 10, 0, 0, 0, far, "default", 7},
		"it is longer now":                {registry.Closed, 10, 20, 0, 0, far, "default", 7},
		"the operator's own volume":       {registry.Closed, 10, 7, 0, 0, parts{place("slow", 3)}, "cold", 3},
		"the operator's, and not for now": {registry.Closed, 10, 20, 0, 0, parts{place("slow", 3)}, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			topic := schemas.NewTopic("app")
			topic.ColdAfterDays, topic.KeepDays = c.days, c.keep
			if c.anonymise > 0 {
				topic.Anonymise = schemas.Anonymise{AfterDays: c.anonymise, Fields: []string{"user_id"}}
			}
			at := now.AddDate(0, 0, -c.age).UnixNano()
			e := registry.Shard{Topic: "app", Month: 202611, ID: id, Status: c.status, MinTs: at, MaxTs: at, CreatedAt: now}
			var want []Move
			if c.to != "" {
				want = []Move{{e.Ref(), c.to, c.bytes}}
			}
			if got := Due(&topic, []registry.Shard{e}, map[schemas.Shard][]tables.Place{id: c.parts}, "default", now); !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		})
	}
}
