package ledger

import (
	"maps"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/schemas"
)

func TestCovers(t *testing.T) {
	t.Parallel()
	e := Erasure{Fence: 100, FenceTime: 5000, From: 10, To: 20}
	for name, c := range map[string]struct {
		source   schemas.Source
		min, max int64
		want     bool
	}{
		"at the fence":                   {schemas.Source{Seq: 100, Stored: 5000}, 10, 20, true},
		"above the fence":                {schemas.Source{Seq: 101, Stored: 6000}, 10, 20, false},
		"below it, after a cut":          {schemas.Source{Seq: 7, Stored: 6000}, 10, 20, false},
		"its time is not known":          {schemas.Source{Seq: 7}, 10, 20, true},
		"times that end where it begins": {schemas.Source{Seq: 7, Stored: 1}, 1, 10, true},
		"times that begin where it ends": {schemas.Source{Seq: 7, Stored: 1}, 20, 30, true},
		"times before":                   {schemas.Source{Seq: 7, Stored: 1}, 1, 9, false},
		"times after":                    {schemas.Source{Seq: 7, Stored: 1}, 21, 30, false},
		"times around":                   {schemas.Source{Seq: 7, Stored: 1}, 1, 30, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := e.Covers(c.source, c.min, c.max); got != c.want {
				t.Errorf("covers: %t", got)
			}
		})
	}
}

func TestMatch(t *testing.T) {
	t.Parallel()
	e := Erasure{Cond: "`user_id` = {p1:String} AND `level` > {p2:Int8} AND `user_id` != ''", Params: map[string]string{"p1": "{p2:String}", "p2": "3"}, From: 1, To: 2}
	cond, params := e.Match("x")
	if want := "(ts >= fromUnixTimestamp64Nano(1, 'UTC') AND ts <= fromUnixTimestamp64Nano(2, 'UTC') AND (`user_id` = {xp1:String} AND `level` > {xp2:Int8} AND `user_id` != ''))"; cond != want {
		t.Errorf("%s\nwant %s", cond, want)
	}
	if want := map[string]string{"xp1": "{p2:String}", "xp2": "3"}; !maps.Equal(params, want) {
		t.Errorf("parameters %v, want %v", params, want)
	}
	if got := e.Columns(); !slices.Equal(got, []string{"user_id", "level"}) {
		t.Errorf("columns %v", got)
	}
}

func TestIncludes(t *testing.T) {
	t.Parallel()
	one := Erasure{Topic: "app", Users: []string{"u-1"}, Where: "level = 'x'", From: 10, To: 20, Fence: 7, FenceTime: 70}
	with := func(change func(*Erasure)) Erasure { e := one; change(&e); return e }
	for name, c := range map[string]struct {
		e    Erasure
		want bool
	}{
		"the same":                  {one, true},
		"of more users":             {with(func(e *Erasure) { e.Users = []string{"u-0", "u-1"} }), true},
		"of everybody":              {with(func(e *Erasure) { e.Users = nil }), true},
		"of others":                 {with(func(e *Erasure) { e.Users = []string{"u-2"} }), false},
		"without a filter":          {with(func(e *Erasure) { e.Where = "" }), true},
		"with another filter":       {with(func(e *Erasure) { e.Where = "level = 'y'" }), false},
		"of more time":              {with(func(e *Erasure) { e.From, e.To = 0, 30 }), true},
		"of less time":              {with(func(e *Erasure) { e.From = 11 }), false},
		"of a later fence":          {with(func(e *Erasure) { e.Fence, e.FenceTime = 8, 80 }), true},
		"of an earlier fence":       {with(func(e *Erasure) { e.Fence, e.FenceTime = 6, 60 }), false},
		"of a fence before a cut":   {with(func(e *Erasure) { e.Fence, e.FenceTime = 8, 60 }), false},
		"of another front":          {with(func(e *Erasure) { e.Front = schemas.StreamDocs }), false},
		"of another topic":          {with(func(e *Erasure) { e.Topic = "other" }), false},
		"redacted":                  {with(func(e *Erasure) { e.Redacted = true }), false},
		"of more users and no time": {with(func(e *Erasure) { e.Users, e.To = nil, 19 }), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.e.Includes(&one); got != c.want {
				t.Errorf("includes: %t", got)
			}
		})
	}
	if all := with(func(e *Erasure) { e.Users = nil }); one.Includes(&all) {
		t.Error("an erasure of a user includes one of everybody")
	}
}
