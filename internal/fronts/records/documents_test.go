package records

import (
	"testing"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// What retention takes is not a problem, and what is lost beside it is one.
func TestExpiring(t *testing.T) {
	t.Parallel()
	june := schemas.Month(202606)
	at := june.Start() + 1000
	place := func(id schemas.Shard) *schemas.FrontPlace { return &schemas.FrontPlace{Month: june, Shard: id, Seq: 1} }
	shards := []registry.Shard{
		{ID: 1, Month: june, Status: registry.Dropped, MaxTs: at + 10},
		{ID: 2, Month: june, Status: registry.Dropping, MaxTs: at},
		{ID: 3, Month: june, Status: registry.Closed, MaxTs: at + 10},
	}
	for name, c := range map[string]struct {
		r    *document.Record
		n    *version
		want bool
	}{
		"its record went, its row is to go":    {nil, &version{Month: june, Shard: 2}, true},
		"its record is lost":                   {nil, &version{Month: june, Shard: 3}, false},
		"its stub was read, its row went":      {&document.Record{Lane: "0", Changed: at, Stub: place(1)}, nil, true},
		"its row is lost":                      {&document.Record{Lane: "0", Changed: at, Stub: place(3)}, nil, false},
		"its refresh was read, its row went":   {&document.Record{Lane: "0", Changed: at, Refresh: place(2)}, nil, true},
		"it was whole, its row went":           {&document.Record{Lane: "0", Changed: at}, nil, true},
		"it is whole and later, its row lost":  {&document.Record{Lane: "0", Changed: at + 1}, nil, false},
		"it is whole, in another lane":         {&document.Record{Lane: "1", Changed: at}, nil, false},
		"ClickHouse has a newer one than DOCS": {&document.Record{Lane: "0", Changed: at, Stub: place(2)}, &version{Month: june, Shard: 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := expiring(shards, c.r, c.n); got != c.want {
				t.Errorf("%s: %t, expected %t", name, got, c.want)
			}
		})
	}
}
