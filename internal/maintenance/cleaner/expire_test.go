package cleaner

import (
	"testing"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas"
)

func TestKeptHas(t *testing.T) {
	t.Parallel()
	june := schemas.Month(202606)
	at := june.Start() + 1000
	k := kept{shard: &registry.Shard{ID: 7, Month: june, MaxTs: at}, upTo: 50}
	for name, c := range map[string]struct {
		seq  uint64
		r    records.Record
		want bool
	}{
		"a stub of the shard":                {90, records.Record{Stub: &schemas.FrontPlace{Month: june, Shard: 7, Seq: 40}}, true},
		"a stub of another":                  {40, records.Record{Stub: &schemas.FrontPlace{Month: june, Shard: 8, Seq: 30}}, false},
		"a refresh of the shard":             {90, records.Record{Refresh: &schemas.FrontPlace{Month: june, Shard: 7, Seq: 40}, Changed: at}, true},
		"a refresh of another, of that time": {45, records.Record{Refresh: &schemas.FrontPlace{Month: june, Shard: 8, Seq: 40}, Changed: at}, false},
		"a record":                           {50, records.Record{Changed: at}, true},
		"a record that came after it":        {51, records.Record{Changed: at}, false},
		"a record of another month":          {50, records.Record{Changed: june.Start() - 1}, false},
		"a sequence that was given again":    {50, records.Record{Changed: at + 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := k.has(c.seq, &c.r); got != c.want {
				t.Errorf("%s: the shard has it: %t, expected %t", name, got, c.want)
			}
		})
	}
}
