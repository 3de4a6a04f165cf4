package erasure

import (
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/fronts/records"
	"github.com/almanac-events/almanac/schemas"
)

// What goes of a document that came back, and of a timer's life. The last record of a document goes only with all others,
// and where ClickHouse has nothing of it.
func TestWhatCameBackGoes(t *testing.T) {
	t.Parallel()
	meant := func(at uint64) *back { return &back{at: at, row: at, meant: []string{"e"}} }
	other := func(at uint64) *back { return &back{at: at, row: at} }
	for name, c := range map[string]struct {
		front   string
		records []*back
		last    uint64
		stays   bool // a record is there that none may mean
		there   bool // ClickHouse has rows of the document
		want    []uint64
		life    bool
	}{
		"the only version":                     {front: schemas.StreamDocs, records: []*back{meant(3)}, last: 3, want: []uint64{3}},
		"every version":                        {front: schemas.StreamDocs, records: []*back{meant(3), meant(5)}, last: 5, want: []uint64{3, 5}},
		"a version, of which a row stays":      {front: schemas.StreamDocs, records: []*back{meant(3)}, last: 3, there: true},
		"older versions below one that stays":  {front: schemas.StreamDocs, records: []*back{meant(3), other(5)}, last: 5, want: []uint64{3}},
		"older versions below another's":       {front: schemas.StreamDocs, records: []*back{meant(3), meant(4)}, last: 9, stays: true, there: true, want: []uint64{3, 4}},
		"the last above one that stays":        {front: schemas.StreamDocs, records: []*back{other(3), meant(5)}, last: 5},
		"the last above another's":             {front: schemas.StreamDocs, records: []*back{meant(5)}, last: 5, stays: true},
		"none":                                 {front: schemas.StreamDocs, records: []*back{other(3)}, last: 3},
		"a life, by one of its transitions":    {front: schemas.StreamTimers, records: []*back{meant(3), other(5)}, last: 5, life: true},
		"a life below another life of the key": {front: schemas.StreamTimers, records: []*back{meant(3)}, last: 9, stays: true, life: true},
		"a life that is not meant":             {front: schemas.StreamTimers, records: []*back{other(3)}, last: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := &group{subject: "s", key: "k", records: c.records}
			l := &lane{kind: records.OfFront(c.front), last: map[string]uint64{"s": c.last}, stays: map[string]bool{"s": c.stays}}
			k := g.taken(l, c.there)["e"]
			if k == nil {
				k = &taken{}
			}
			if !slices.Equal(k.seqs, c.want) || (k.life == "k") != c.life {
				t.Errorf("%+v goes, expected %d, a life: %v", k, c.want, c.life)
			}
		})
	}
}
