package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/almanac-events/almanac/internal/maintenance/erasure"
	"github.com/almanac-events/almanac/internal/maintenance/rebuild"
	"github.com/almanac-events/almanac/internal/maintenance/repair"
	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/rollups/derived"
	"github.com/almanac-events/almanac/replay"
	"github.com/almanac-events/almanac/router"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// table is a topic's table, or one that is derived from it, in statements.
func (s *staged) table(topic, derived string) string {
	if derived != "" {
		topic = schemas.DerivedTable(topic, derived)
	}
	return sql.QuotedTable(s.db.Database, topic)
}

// exec runs a statement.
func (s *staged) exec(sql string) {
	s.t.Helper()
	if err := s.db.Conn().Exec(s.ctx, sql); err != nil {
		s.t.Fatal(err)
	}
}

// stored waits until what a topic accepted is in ClickHouse.
func (s *staged) stored(topic string) {
	s.t.Helper()
	if n, err := s.read.WaitStored(s.ctx, []string{topic}, recoveryLimit, nil); err != nil || n > 0 {
		s.t.Fatalf("%d events of %s are not stored: %v", n, topic, err)
	}
}

// allDerived reports what of a topic is not examined, listed or summed yet.
func (s *staged) allDerived(ctx context.Context, topic string) error {
	t := s.topic
	t.Name = topic
	d, err := derived.Of(s.db).State(ctx, &t)
	if err != nil {
		return err
	}
	entries, err := s.reg.Shards(ctx, topic, 0)
	if err != nil {
		return err
	}
	gone := registry.DroppedOf(entries)
	for ref, sh := range d.Shards {
		switch why := sh.Waits(); {
		case gone[ref]:
		case t.HasSums() && why != "":
			return fmt.Errorf("%s: %s", ref, why)
		case sh.Examined < sh.Stored.Head:
			return fmt.Errorf("%s: examined up to %d of %d", ref, sh.Examined, sh.Stored.Head)
		case t.HasSeries() && sh.Series < sh.Stored.Head:
			return fmt.Errorf("%s: series up to %d of %d are listed", ref, sh.Series, sh.Stored.Head)
		}
	}
	return nil
}

// derive waits until all is derived, and asks for every answer meanwhile.
func (s *staged) derive() {
	s.t.Helper()
	s.during(func(ctx context.Context) error {
		for _, topic := range s.topics {
			if err := errors.Join(s.answers(ctx, topic), s.allDerived(ctx, topic)); err != nil {
				return err
			}
		}
		return nil
	})
	for _, topic := range s.topics {
		s.counted("derived", topic)
	}
}

// repair loses the partition with most rows, and brings it back.
func (s *staged) repair() {
	s.t.Helper()
	var month uint32
	var shard uint64
	if err := s.db.Conn().QueryRow(s.ctx, "SELECT month, shard FROM "+s.table(s.topic.Name, "")+" GROUP BY month, shard ORDER BY count() DESC LIMIT 1").Scan(&month, &shard); err != nil {
		s.t.Fatal(err)
	}
	s.exec(fmt.Sprintf("ALTER TABLE %s DROP PARTITION ID '%s'", s.table(s.topic.Name, ""), schemas.PartitionID(schemas.Month(month), schemas.Shard(shard))))
	s.during(func(ctx context.Context) error {
		r, err := repair.New(ctx, repair.Config{NC: s.NC, Registry: s.reg, DB: s.db, Check: router.FramesOf(nil)})
		if err != nil {
			return err
		}
		p, err := r.Plan(ctx, s.topic.Name)
		if err == nil && p.Todo() > 0 {
			err = r.Apply(ctx, p, func(*repair.Action, error) {})
		}
		if err != nil {
			return err
		}
		if rep, err := s.verifier().Run(ctx, s.topic.Name); err != nil || !rep.OK() || rep.Pending > 0 {
			return fmt.Errorf("verify: %+v, %w", rep, err)
		}
		return nil
	})
	s.exact("repaired, not derived")
	s.derive()
}

func (s *staged) rebuild(topic string) {
	s.t.Helper()
	s.during(func(ctx context.Context) error {
		_, err := rebuild.Run(ctx, rebuild.Config{NATS: s.NC, Registry: s.reg, DB: s.db}, topic, true)
		return err
	})
	s.exact("rebuilt, not derived")
	s.derive()
}

// replay replays the topic into the other one, which has all events from then on.
func (s *staged) replay() {
	s.t.Helper()
	id, done := "", false
	s.during(func(ctx context.Context) error {
		if done {
			return nil
		}
		r, err := replay.New(ctx, replay.Config{NATS: s.NC, Registry: s.reg, DB: s.db, Reader: s.read})
		if err != nil {
			return err
		}
		var j *replay.Job
		if id == "" {
			j, err = r.Begin(ctx, replay.Request{Topic: s.topic.Name, Into: copyTopic})
		} else {
			j, err = r.Resume(ctx, id)
		}
		if done = errors.Is(err, replay.ErrDone); done {
			return nil
		}
		if err != nil {
			return err
		}
		id = j.ID()
		res, err := j.Run(ctx, nil, replay.Pace{})
		if done = res.Done; err == nil && !done {
			err = errors.New("the replay is not done")
		}
		return err
	})
	s.stored(copyTopic)
	s.topics = append(s.topics, copyTopic)
	s.exact("replayed, not derived")
	s.derive()
}

// erase erases a user of so many rows from both topics, and looks for what is left of his: rows, marks, and what
// counts in other tables that are derived, by a condition. gone is called once no answer may have him.
func (s *staged) erase(user string, rows int, others map[string]string, gone func()) {
	s.t.Helper()
	x, err := erasure.New(s.ctx, erasure.Config{Registry: s.reg, Reader: s.read, DB: s.db})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, topic := range s.topics {
		his := "user_id = " + sql.QuoteText(user)
		var ids []string
		if err := s.db.Conn().QueryRow(s.ctx, "SELECT groupArray(toString(id)) FROM "+s.table(topic, "")+" WHERE "+his).Scan(&ids); err != nil || len(ids) != rows {
			s.t.Fatalf("%v, %v", ids, err)
		}
		e, err := x.Start(s.ctx, erasure.Request{Topic: topic, Users: []string{user}})
		if err != nil {
			s.t.Fatal(err)
		}
		s.during(func(ctx context.Context) error {
			_, err := x.Run(ctx, topic, e.ID)
			return err
		})
		p, err := x.Show(s.ctx, topic, e.ID)
		if err != nil || !p.Certified || p.Erasure.Rows != uint64(rows) {
			s.t.Errorf("%+v, %v", p, err)
		}
		in := "('" + strings.Join(ids, "','") + "')"
		left := map[string]string{"": his + " OR id IN " + in, schemas.DerivedRepeats: "id IN " + in + " OR first IN " + in}
		for derived, cond := range others {
			left[derived] = cond
		}
		for derived, cond := range left {
			if n, err := s.SQL.Number(s.ctx, "SELECT count() FROM %s WHERE %s", s.table(topic, derived), cond); err != nil || n != 0 {
				s.t.Errorf("%s: %d, %v", s.table(topic, derived), n, err)
			}
		}
	}
	gone()
	s.exact("erased, not derived")
	s.derive()
}
