package sinks

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/embedded/embeddedtest"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A view that ClickHouse refused once is made later by the same sink, and
// what is stored does not wait for it.
func TestRefusedViewIsMadeLater(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Add(10, nil)
	if err := r.DB.Ensure(t.Context(), &r.Topic); err != nil {
		t.Fatal(err)
	}
	name := sql.QuotedTable(r.Servers.Database, schemas.RecentView("app"))
	if err := r.DB.Conn().Exec(t.Context(), "CREATE TABLE "+name+" (x Int8) ENGINE = Memory"); err != nil {
		t.Fatal(err)
	}
	var refused atomic.Int64
	r.run(func(c *Config) {
		c.Hooks.Fault = func(_ schemas.ShardRef, err error) {
			if errors.Is(err, tables.ErrNameTaken) {
				refused.Add(1)
			}
		}
	})
	r.Eventually(1)
	if refused.Load() == 0 {
		t.Fatal("the view was not refused: the test does not bite")
	}
	if err := r.DB.Drop(t.Context(), schemas.RecentView("app")); err != nil {
		t.Fatal(err)
	}
	embeddedtest.Eventually(t, maxQueueWait, func() error {
		var rows uint64
		q := "SELECT count() FROM system.tables WHERE engine = 'View' AND database = $1 AND name = $2"
		err := r.DB.Conn().QueryRow(t.Context(), q, r.Servers.Database, schemas.RecentView("app")).Scan(&rows)
		if err == nil && rows != 1 {
			err = fmt.Errorf("%d views, want 1", rows)
		}
		return err
	})
}

// The attempts are farther and farther apart, up to maxViewPause.
func TestAttemptsAtViewsAreApart(t *testing.T) {
	t.Parallel()
	now, a := t0, attempt{}
	for _, want := range []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, maxViewPause, maxViewPause} {
		if a = a.after(now, 15*time.Second); a.due.Sub(now) < want/2 || a.due.Sub(now) > want {
			t.Errorf("the next attempt is %s later, want %s to %s", a.due.Sub(now), want/2, want)
		}
		now = a.due
	}
}
