package registry

import (
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
)

// Every part may tell what its user lacks, without a right to read, and takes it back.
func TestTellLacking(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithUsers())
	ctx := timeout(t)
	reg, err := Setup(ctx, srv.Dial(access.UserSetup), testLimits)
	if err != nil {
		t.Fatal(err)
	}
	said := func() (all []string) {
		list, err := ListLacking(ctx, reg.js)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range list {
			all = append(all, fmt.Sprint(l.Part, " as ", l.User, ": ", l.Lacks))
		}
		slices.Sort(all)
		return all
	}
	parts := []string{access.UserGateway, access.UserRouter, access.UserSink, access.UserTimers}
	var want []string
	for _, part := range parts {
		if err := TellLacking(ctx, srv.Dial(part), "of"+part, Lacking{Part: part, User: "mine", Lacks: []string{"a", "b"}}); err != nil {
			t.Errorf("%s: %v", part, err)
		}
		want = append(want, part+" as mine: [a b]")
	}
	if got := said(); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := reg.ForgetMembers(ctx); err != nil {
		t.Fatal(err)
	}
	if got := said(); len(got) > 0 {
		t.Errorf("after all leases were forgotten: %v", got)
	}
	nc, many := srv.Dial(access.UserSink), make([]string, maxLacks+3)
	if err := TellLacking(ctx, nc, "x", Lacking{Part: access.UserSink, User: "mine", Lacks: many}); err != nil {
		t.Fatal(err)
	}
	if list, err := ListLacking(ctx, reg.js); err != nil || len(list) != 1 || len(list[0].Lacks) != maxLacks+1 || list[0].Lacks[maxLacks] != "3 more" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := TellLacking(ctx, nc, "x", Lacking{Part: access.UserSink, User: "mine"}); err != nil || len(said()) > 0 {
		t.Errorf("after it was taken back: %v, %v", said(), err)
	}
}
