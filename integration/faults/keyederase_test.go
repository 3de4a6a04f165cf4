package faults

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/backoff"
	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
)

// Keyed requests are sent and sent again while NATS, routers, sinks and the gateway are killed at random instants, the topic
// gets fields, and persons of earlier requests are erased, with their messages: each event is stored once, and
// no erased person is anywhere. Three kills, or ALMANAC_KEYED_KILLS (`make keyed`).
func TestKillCyclesOfErasedRequests(t *testing.T) {
	kills := 3
	if n, err := strconv.Atoi(os.Getenv("ALMANAC_KEYED_KILLS")); err == nil {
		kills = n
	}
	seed, rnd := Seed(t)
	h := Build(t, Plan{})
	g := &gatewayProcess{h: h, program: command(t), address: embeddedtest.FreeAddress(t)}
	g.start(t)
	t.Cleanup(g.kill)
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(kills)*time.Minute+10*time.Minute)
	defer cancel()
	k := &keyedCluster{Cluster: h, t: t, url: "http://" + g.address + "/v1/topics/" + Topic + "/events?refuse=all", erased: map[int]bool{}}
	for n := range kills {
		all, sending := errgroup.WithContext(ctx)
		some := make(chan struct{}, 64)
		keys := []int{n}
		for range 3 {
			keys = append(keys, max(0, n-rnd.IntN(4)))
		}
		for _, key := range keys {
			all.Go(func() error { return k.send(sending, key, some) })
		}
		for range rnd.IntN(len(keys)) { // the kill comes once so many tries ended somehow: each of them ends once at least
			select {
			case <-some:
			case <-ctx.Done():
				t.Fatal(context.Cause(ctx))
			}
		}
		switch part := rnd.IntN(5); part {
		case 0:
			g.kill()
			g.start(t)
		case 1, 2:
			h.NATS.Kill()
			h.start(h.NATS)
			h.ready(h.NATS)
		default:
			p := append(append([]*Part{}, h.Routers...), h.Sinks...)[rnd.IntN(len(h.Routers)+len(h.Sinks))]
			p.Kill()
			h.start(p)
		}
		if err := all.Wait(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if rnd.IntN(2) == 0 {
			k.field(ctx, n)
		}
		if who := n - rnd.IntN(3); who >= 0 && !k.erased[who] && rnd.IntN(2) == 0 || n == kills-1 && len(k.erased) == 0 {
			k.erase(ctx, max(0, who))
			if rnd.IntN(2) == 0 {
				h.NATS.Kill()
				h.start(h.NATS)
				h.ready(h.NATS)
			}
			if err := k.send(ctx, max(0, who), some); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	report := h.Drain(5 * time.Minute)
	if !report.OK() {
		t.Errorf("seed %d: verify: %+v", seed, report)
	}
	t.Logf("seed %d: %d kills, %d persons erased, %d fields added", seed, kills, len(k.erased), k.fields)
	await(t, startWait, func(ctx context.Context) error {
		for n := range kills {
			for user, want := range map[string]uint64{fmt.Sprintf("gone-%d-x", n): 40, fmt.Sprintf("stays-%d-x", n): 40} {
				if k.erased[n] && strings.HasPrefix(user, "gone") {
					want = 0
				}
				got, err := h.SQL.Number(ctx, "SELECT count() FROM %s WHERE user_id = '%s'", Topic, user)
				if err == nil && got != want {
					err = fmt.Errorf("seed %d: %d events of %s, want %d", seed, got, user, want)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// keyedCluster is a cluster that takes requests under keys. Request n is 40 events each of two users.
type keyedCluster struct {
	*Cluster
	t      *testing.T
	url    string
	fields int
	erased map[int]bool
}

// send sends a request until it is answered. some hears of each try that ended.
func (k *keyedCluster) send(ctx context.Context, n int, some chan<- struct{}) error {
	var body strings.Builder
	for i := range 80 {
		fmt.Fprintf(&body, "{\"ts\":\"2026-%02d-03T10:00:%02dZ\",\"user_id\":\"%s-%d-x\",\"f%d\":\"%d\",\"message\":\"%d\"}\n", 9+i%2, i%60, []string{"gone", "stays"}[i/40], n, i%9, i, n)
	}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, k.url, strings.NewReader(body.String()))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Set("Idempotency-Key", fmt.Sprint("request ", n))
		resp, err := http.DefaultClient.Do(req)
		select {
		case some <- struct{}{}:
		default:
		}
		if err == nil {
			_ = resp.Body.Close()
			switch resp.StatusCode {
			case http.StatusOK:
				return nil
			case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			default:
				return fmt.Errorf("request %d: %s", n, resp.Status)
			}
		}
		if backoff.Sleep(ctx, 50*time.Millisecond) != nil {
			return context.Cause(ctx)
		}
	}
}

// field adds a field to the topic.
func (k *keyedCluster) field(ctx context.Context, n int) {
	k.t.Helper()
	await(k.t, startWait, func(context.Context) error {
		reg, err := registry.Open(ctx, k.NC)
		if err != nil {
			return err
		}
		topic, err := reg.Topic(ctx, Topic)
		if err != nil || k.fields >= 9 {
			return err
		}
		name := fmt.Sprint("f", k.fields)
		if slices.ContainsFunc(topic.Fields, func(f schemas.Field) bool { return f.Name == name }) { // its answer was lost
			k.fields++
			return nil
		}
		topic.Fields = append(topic.Fields, schemas.Field{Name: name, Type: "string"})
		_, _, err = reg.Apply(ctx, topic, false)
		if err == nil {
			k.fields++
		}
		return err
	})
}

// erase erases a person of a request, with the messages.
func (k *keyedCluster) erase(ctx context.Context, n int) {
	k.t.Helper()
	var id string
	await(k.t, startWait, func(context.Context) error {
		reg, err := registry.Open(ctx, k.NC)
		if err != nil {
			return err
		}
		db, err := tables.Open(k.dsn)
		if err != nil {
			return err
		}
		defer func() { _ = db.Close() }()
		reader, err := query.New(k.NC, reg, db)
		if err != nil {
			return err
		}
		x, err := erasure.New(ctx, erasure.Config{Registry: reg, Reader: reader, DB: db})
		if err != nil {
			return err
		}
		if id == "" {
			e, err := x.Start(ctx, erasure.Request{Topic: Topic, Users: []string{fmt.Sprintf("gone-%d-x", n)}})
			if err != nil {
				return err
			}
			id = e.ID
		}
		e, err := x.Run(ctx, Topic, id)
		if err == nil && e.Rows != 40 {
			return fmt.Errorf("the erasure took %d rows, want 40", e.Rows)
		}
		_, purged := x.Purge(ctx, Topic, id)
		return errors.Join(err, purged)
	})
	k.erased[n] = true
}
