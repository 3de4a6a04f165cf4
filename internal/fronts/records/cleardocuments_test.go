package records

import (
	"testing"

	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

func TestClears(t *testing.T) {
	t.Parallel()
	at := func(seq uint64) *schemas.FrontPlace { return &schemas.FrontPlace{Seq: seq} }
	for name, c := range map[string]struct {
		r    document.Record
		d    meantVersions
		want clearing
		upTo uint64
	}{
		"every version":                        {document.Record{Seq: 8}, meantVersions{Last: true, All: true}, clearAll, 8},
		"every version, a stub":                {document.Record{Seq: 40, Stub: at(8)}, meantVersions{Last: true, All: true}, clearAll, 40},
		"every version, a refresh":             {document.Record{Seq: 40, Refresh: at(8)}, meantVersions{Last: true, All: true}, clearAll, 40},
		"a newer version from after the fence": {document.Record{Seq: 12}, meantVersions{Last: true, All: true}, clearOlder, 11},
		"its stub":                             {document.Record{Seq: 40, Stub: at(12)}, meantVersions{Last: true, All: true}, clearOlder, 39},
		"the next after the fence":             {document.Record{Seq: 11}, meantVersions{Last: true, All: true}, clearOlder, 10},
		"older versions alone":                 {document.Record{Seq: 8}, meantVersions{}, clearOlder, 7},
		"older versions of a stub":             {document.Record{Seq: 40, Stub: at(8)}, meantVersions{}, clearOlder, 39},
		"the last, and older ones stay":        {document.Record{Seq: 8}, meantVersions{Last: true}, clearRemove, 0},
		"its removal, and older ones stay":     {document.Record{Seq: 8, Op: schemas.OpRemoved}, meantVersions{Last: true}, clearRemove, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, upTo := clears(&c.r, 10, &c.d); got != c.want || upTo != c.upTo {
				t.Errorf("it is %d up to %d, expected %d up to %d", got, upTo, c.want, c.upTo)
			}
		})
	}
}
