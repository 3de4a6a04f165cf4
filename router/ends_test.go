package router

import (
	"testing"
	"time"

	"github.com/almanac-events/almanac/registry"
)

// The shard whose end is looked at is the one the lane left last.
func TestLastLeft(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	shards := []registry.Shard{
		{ID: 1, Lane: 0, Status: registry.Closed, CreatedAt: at(1)},
		{ID: 2, Lane: 0, Status: registry.Sealed, CreatedAt: at(3)},
		{ID: 3, Lane: 1, Status: registry.Closed, CreatedAt: at(5)},
		{ID: 4, Lane: 0, Status: registry.Dropped, CreatedAt: at(6)},
		{ID: 5, Lane: 0, Status: registry.Active, CreatedAt: at(4)},
	}
	if s, ok := lastLeft(shards, "0", 5); !ok || s.ID != 2 {
		t.Errorf("%v, %v", s.ID, ok)
	}
	if s, ok := lastLeft(shards, "1", 9); !ok || s.ID != 3 {
		t.Errorf("%v, %v", s.ID, ok)
	}
	if s, ok := lastLeft(shards, "2", 9); ok {
		t.Errorf("%v", s.ID)
	}
}
