package documents

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/schemas"
)

// callers create at once.
const callers = 64

// BenchmarkCreate creates documents of some 300 bytes in topics of 1, 4 and 16 lanes, by 64 callers, on a NATS that
// syncs each write.
func BenchmarkCreate(b *testing.B) {
	for _, lanes := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("lanes=%d", lanes), func(b *testing.B) {
			c, ctx := openOn(b, embeddedtest.Start(b, embeddedtest.WithoutClickHouse(), embeddedtest.WithSync()), func(t *schemas.Topic) { t.Lanes = lanes })
			body := fmt.Appendf(nil, `{"status":"active","name":"%s"}`, strings.Repeat("x", 250))
			b.ResetTimer()
			var g errgroup.Group
			for k := range callers {
				g.Go(func() error {
					for i := k; i < b.N; i += callers {
						if _, err := c.Create(ctx, Draft{ID: fmt.Sprint("d-", i), Body: body}); err != nil {
							return err
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
		})
	}
}

// BenchmarkUpdate updates documents by the version that their creation gave, and BenchmarkLoad loads them, both by 64
// callers on a NATS that syncs each write.
func BenchmarkUpdate(b *testing.B) {
	eachOnce(b, func(ctx context.Context, c *Collection, id string, body []byte) error {
		_, err := c.Update(ctx, id, IfVersion(1), body)
		return err
	})
}

// BenchmarkLoad is described at BenchmarkUpdate.
func BenchmarkLoad(b *testing.B) {
	eachOnce(b, func(ctx context.Context, c *Collection, id string, _ []byte) error {
		_, err := c.Load(ctx, id)
		return err
	})
}

// eachOnce does something with each of b.N documents, once.
func eachOnce(b *testing.B, do func(ctx context.Context, c *Collection, id string, body []byte) error) {
	c, ctx := openOn(b, embeddedtest.Start(b, embeddedtest.WithoutClickHouse(), embeddedtest.WithSync()), nil)
	body := fmt.Appendf(nil, `{"status":"active","name":"%s"}`, strings.Repeat("x", 250))
	all := func(do func(id string) error) {
		var g errgroup.Group
		for k := range callers {
			g.Go(func() error {
				for i := k; i < b.N; i += callers {
					if err := do(fmt.Sprint("d-", i)); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			b.Fatal(err)
		}
	}
	all(func(id string) error {
		_, err := c.Create(ctx, Draft{ID: id, Body: body})
		return err
	})
	b.ResetTimer()
	all(func(id string) error { return do(ctx, c, id, body) })
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "documents/s")
}
