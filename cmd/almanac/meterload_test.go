package main

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/embedded"
	"github.com/almanac-events/almanac/meter"
	"github.com/almanac-events/almanac/producer"
	"github.com/almanac-events/almanac/query/usage"
)

// writersEnv is how many diffs each of twenty writers sends in TestMeterWriters.
const writersEnv = "ALMANAC_USAGE_DIFFS"

// Twenty writers on one space, every diff twice, its copies by another writer and in another
// order: the integral of what was sent, in big integers. The sinks' process is killed between.
func TestMeterWriters(t *testing.T) {
	t.Parallel()
	const writers = 20
	each, err := strconv.Atoi(os.Getenv(writersEnv))
	if err != nil {
		each = 100
	}
	b := newBox(t)
	up := b.up("--profile", "test")
	b.ok("", "topics", "apply", "usage", "--kind", "meter")
	a, err := embedded.ReadAddresses(b.data())
	if err != nil {
		t.Fatal(err)
	}
	from, to := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	at := func(n int) time.Time {
		return from.Add(time.Duration(n*7919%2_000_000)*time.Second).AddDate(0, -(n % 3), 0)
	}
	want, start := new(big.Int), 0
	for n := range writers * each {
		if at(n).Before(from) {
			start++
		}
		want.Add(want, big.NewInt(to.UnixMilli()-max(at(n).UnixMilli(), from.UnixMilli())))
	}
	send := func(turn int) error {
		var g errgroup.Group
		for w := range writers {
			g.Go(func() error {
				p, err := producer.Connect(t.Context(), a.NATS, producer.Config{Topic: "usage", Policy: producer.Block})
				if err != nil {
					return err
				}
				for _, i := range rand.Perm(each) {
					n := i*writers + (w+turn)%writers
					d := meter.Diff{Meter: "bytes", Provider: "p", Space: "s1", Cause: fmt.Sprint("c-", n), Delta: 1, Customer: "cust", Time: at(n)}
					ev, err := d.Event()
					if err != nil {
						return err
					}
					if err := p.Submit(t.Context(), ev, nil); err != nil {
						return err
					}
				}
				return p.Close(t.Context())
			})
		}
		return g.Wait()
	}
	report := func(when string) {
		t.Helper()
		for _, by := range []string{"--space=s1", "--customer=cust"} {
			began := time.Now()
			got := decoded[usage.Bill](b, "usage", "usage", "--from", "2026-02-01", "--to", "2026-03-01", "-o", "json", by)
			t.Logf("%s: %s in %s", when, by, time.Since(began).Round(time.Millisecond))
			if got.Usage != want.String() || got.SizeStart != fmt.Sprint(start) || got.SizeEnd != fmt.Sprint(writers*each) || got.Causes != writers*uint64(each) {
				t.Errorf("%s, %s: %+v, want %s", when, by, got, want)
			}
		}
	}
	if err := send(0); err != nil {
		t.Fatal(err)
	}
	report("once")
	if err := up.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-up.done
	b.up("--profile", "test")
	if a, err = embedded.ReadAddresses(b.data()); err != nil {
		t.Fatal(err)
	}
	report("after a kill")
	if err := send(1); err != nil {
		t.Fatal(err)
	}
	report("twice")
	b.derived("usage", uint64(writers*each))
	report("derived")
}
