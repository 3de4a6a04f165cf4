package backup

import (
	"errors"
	"testing"
)

// A copy of tables that would fill the disk of a running Almanac is refused before it begins.
func TestSpace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		holds, known, free int64
		want               error
	}{
		"much is free":             {holds: 100, free: 1000},
		"all that is free":         {holds: 1000, free: 1000, want: ErrNoSpace},
		"more than that":           {holds: 5000, free: 1000, want: ErrNoSpace},
		"little of it is new":      {holds: 5000, known: 4900, free: 1000},
		"less than before":         {holds: 100, known: 4900, free: 0},
		"an empty table, no space": {},
	} {
		t.Run(name, func(t *testing.T) {
			if err := space("/x", groupTopics, c.holds, c.known, c.free); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if free, err := freeIn(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("%d bytes are free, %v", free, err)
	}
}

// A restore that has no room for the files of a group is refused before it begins. Of one topic alone only groups count that have tables of it.
func TestFits(t *testing.T) {
	t.Parallel()
	m := example()
	m.Groups = []Group{
		{Name: groupDerived, Tables: []Table{{Name: "usage.sums"}}, Files: []File{{"a", Object{digest(nil), 700}}, {"b", Object{digest(nil), 100}}}},
		{Name: groupTopics, Tables: []Table{{Name: "app"}, {Name: "usage"}}, Files: []File{{"a", Object{digest(nil), 500}}}},
	}
	for name, c := range map[string]struct {
		only Only
		free int64
		want error
	}{
		"for the largest":         {free: 800},
		"for the smaller":         {free: 799, want: ErrNoSpace},
		"for one topic":           {only: Only{"app"}, free: 500},
		"not for one topic":       {only: Only{"app"}, free: 499, want: ErrNoSpace},
		"not for what is derived": {only: Only{"usage"}, free: 799, want: ErrNoSpace},
	} {
		t.Run(name, func(t *testing.T) {
			if err := fits("/x", m, c.only, c.free); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
}
