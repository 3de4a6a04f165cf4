package ledger

import (
	"slices"
	"testing"
)

func TestAddPurged(t *testing.T) {
	t.Parallel()
	var record ErasureRecord
	record.AddPurged(7, 3, 4, 9, 5, 4)
	if want := []Span{{3, 5}, {7, 7}, {9, 9}}; !slices.Equal(record.Purged, want) {
		t.Errorf("%v, want %v", record.Purged, want)
	}
	if n := record.PurgedPositions(); n != 5 {
		t.Errorf("%d positions, want 5", n)
	}
	for pos, want := range map[uint64]bool{2: false, 3: true, 4: true, 6: false, 9: true, 10: false} {
		if got := record.IsPurged(pos); got != want {
			t.Errorf("position %d is purged: %t", pos, got)
		}
	}
}

func TestNotPurged(t *testing.T) {
	t.Parallel()
	record := ErasureRecord{Purged: []Span{{3, 4}, {7, 10}}}
	for name, c := range map[string]struct {
		of   Span
		want []Span
	}{
		"before all":       {Span{1, 2}, []Span{{1, 2}}},
		"within one":       {Span{8, 9}, nil},
		"one whole":        {Span{3, 4}, nil},
		"around one":       {Span{2, 5}, []Span{{2, 2}, {5, 5}}},
		"into one":         {Span{5, 8}, []Span{{5, 6}}},
		"out of one":       {Span{4, 6}, []Span{{5, 6}}},
		"between the two":  {Span{5, 6}, []Span{{5, 6}}},
		"around the two":   {Span{1, 12}, []Span{{1, 2}, {5, 6}, {11, 12}}},
		"after all":        {Span{11, 12}, []Span{{11, 12}}},
		"no position":      {Span{5, 4}, nil},
		"from one to next": {Span{4, 7}, []Span{{5, 6}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record.NotPurged(c.of); !slices.Equal(got, c.want) {
				t.Errorf("of %v: %v, want %v", c.of, got, c.want)
			}
		})
	}
}

func TestStored(t *testing.T) {
	t.Parallel()
	record := ErasureRecord{Purged: []Span{{3, 4}, {7, 10}}}
	for name, c := range map[string]struct {
		end, last uint64
		want      bool
	}{
		"a whole span":            {6, 10, true},
		"the begin of a span":     {6, 9, true},
		"a position before it":    {5, 10, false},
		"a position after it":     {6, 11, false},
		"the first span":          {2, 4, true},
		"two with others between": {2, 10, false},
		"nothing is missing":      {4, 4, false},
		"more is there":           {9, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record.Stored(c.end, c.last); got != c.want {
				t.Errorf("ends at %d, sealed at %d: %t", c.end, c.last, got)
			}
		})
	}
}
