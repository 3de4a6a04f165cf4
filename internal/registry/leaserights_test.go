package registry

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/access"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
)

// A member joins, leaves, and is forgotten by a user that may purge nothing of the registry. Its lease ends by itself.
func TestLeasesNeedNoPurge(t *testing.T) {
	t.Parallel()
	srv := embeddedtest.Start(t, embeddedtest.WithoutClickHouse(), embeddedtest.WithUsers())
	ctx := timeout(t)
	if _, err := Setup(ctx, srv.Dial(access.UserSetup), testLimits); err != nil {
		t.Fatal(err)
	}
	r, err := Open(ctx, srv.Dial(access.UserRouter))
	if err != nil {
		t.Fatal(err)
	}
	lease := func(m *Members) (*streams.Message, error) {
		return streams.DecideLast(ctx, r.js, schemas.KVStream, schemas.KVSubject(schemas.LeaseKey(m.role, m.self)))
	}
	a, b := r.Join(ctx, schemas.RoleRouter), r.Join(ctx, schemas.RoleRouter)
	if m, err := lease(a); err != nil || m.Header.Get(jetstream.MsgTTLHeader) != forgetAfter.String() {
		t.Fatalf("a lease: %v, %v, want one of %s", m, err, forgetAfter)
	}
	leave, left := context.WithCancel(ctx)
	left()
	_ = a.Run(leave)
	if all, err := b.read(ctx); err != nil || len(all) != 1 {
		t.Fatalf("after one of two left: %v, %v", all, err)
	}
	if err := r.ForgetMembers(ctx); err != nil {
		t.Fatal(err)
	}
	if all, err := b.read(ctx); err != nil || len(all) != 0 {
		t.Fatalf("after all were forgotten: %v, %v", all, err)
	}
	embeddedtest.Eventually(t, maxWait, func() error { // nor does what says so stay
		for _, m := range []*Members{a, b} {
			if m, err := lease(m); !errors.Is(err, jetstream.ErrMsgNotFound) {
				return fmt.Errorf("still there: %v, %w", m, err)
			}
		}
		return nil
	})
	if err := streams.Probe(ctx, r.js); err != nil {
		t.Error(err)
	}
}

// What a full registry forgets is purged, by who may: it takes nothing more.
func TestForgetInAFullRegistry(t *testing.T) {
	t.Parallel()
	r, ctx := open(t), timeout(t)
	if err := r.SaveProofs(ctx, "app", map[schemas.ShardRef]Proof{{Topic: "app", Month: november, ID: 1}: {}}, ReadUpTo{}); err != nil {
		t.Fatal(err)
	}
	if err := streams.Bound(ctx, r.js, schemas.KVStream, 1); err != nil {
		t.Fatal(err)
	}
	if err := r.DropProofs(ctx, []schemas.ShardRef{{Topic: "app", Month: november, ID: 1}}); err != nil {
		t.Fatal(err)
	}
	if _, left, err := r.Proofs(ctx, "app"); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
