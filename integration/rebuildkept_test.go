package integration

import (
	"errors"
	"testing"
	"time"

	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/schemas/sql"
)

// A rebuild does not swap over what it cannot explain: a table that was emptied meanwhile, whose rows only the fresh one has, and
// fields that retention clears or has cleared since the tables were compared.
func TestRebuildKeeps(t *testing.T) {
	t.Parallel()
	const n, oneLess = 600, 1 // oneLess: but the rows of the shard
	user := []string{"user_id"}
	for name, c := range map[string]struct {
		point string
		spoil func(*env, registry.Shard) error
		want  error
		left  uint64 // rows of the topic's table afterwards
	}{
		"a shard is emptied by hand": {"rebuild.after-freeze", func(e *env, s registry.Shard) error {
			return e.db.DropShard(e.t.Context(), s.Ref())
		}, rebuild.ErrDiffers, oneLess},
		"the table is emptied by hand": {"rebuild.after-freeze", func(e *env, s registry.Shard) error {
			return e.hand.Conn().Exec(e.t.Context(), "TRUNCATE TABLE "+e.table(s.Topic))
		}, rebuild.ErrDiffers, 0},
		"fields are being cleared": {"rebuild.after-freeze", func(e *env, s registry.Shard) error {
			_, err := e.reg.BeginClearing(e.t.Context(), s.Ref(), time.Now())
			return err
		}, rebuild.ErrBusy, n},
		"fields begin to be cleared": {"rebuild.before-swap", func(e *env, s registry.Shard) error {
			_, err := e.reg.BeginClearing(e.t.Context(), s.Ref(), time.Now())
			return err
		}, rebuild.ErrBusy, n},
		"fields were cleared": {"rebuild.before-swap", func(e *env, s registry.Shard) error {
			_, err := e.reg.BeginClearing(e.t.Context(), s.Ref(), time.Now())
			return errors.Join(err, e.reg.MarkAnonymised(e.t.Context(), s.Ref(), user, time.Now()))
		}, rebuild.ErrBusy, n},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			topic := replayTopic(1)
			topic.Rotate.Rows = 100
			e := start(t, topic)
			e.router()
			stop := e.sink()
			e.fill("app", n, feb(1, 2))
			e.stored("app", n, 30*time.Second)
			s := e.closed("app", 30*time.Second)[0]
			if s.Status != registry.Closed || s.Rows == 0 || s.Rows == n {
				t.Fatalf("%+v", s)
			}
			stop() // what is emptied stays so
			left := c.left
			if left == oneLess {
				left = n - s.Rows
			}
			nc := e.connect()
			cfg := rebuild.Config{NATS: nc, Registry: e.registry(nc), DB: e.db, Crash: func(at string) error {
				if at == c.point {
					return c.spoil(e, s)
				}
				return nil
			}}
			if _, err := rebuild.Run(t.Context(), cfg, "app", true); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if rows := e.count("SELECT count() FROM %s", e.table("app")); rows != left {
				t.Errorf("the table has %d rows, want %d", rows, left)
			}
			if rows := e.count("SELECT count() FROM %s", sql.QuotedTable(e.srv.Database, "app.rebuild")); rows != n {
				t.Errorf("the fresh table has %d rows, want %d", rows, n)
			}
			state, err := e.db.TableState(t.Context(), "app")
			if err != nil || state.Frozen {
				t.Errorf("the table is left frozen: %+v (%v)", state, err)
			}
			if c.left != n {
				return
			}
			cfg.Crash = nil
			if err := e.reg.EndClearing(t.Context(), s.Ref()); err != nil {
				t.Fatal(err)
			}
			if res, err := rebuild.Run(t.Context(), cfg, "app", true); err != nil || res.Rows != n {
				t.Errorf("once they are cleared: %+v (%v)", res, err)
			}
		})
	}
}
