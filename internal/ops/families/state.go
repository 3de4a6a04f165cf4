package families

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/ops/metrics"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
)

// StateApart is how far apart reads of what Almanac has begin, unless a test has them nearer.
const StateApart = 5 * time.Second

// State are the sources of what streams, registry and tables have. Each needs one server, so that the others are answered
// while it is away. Reads of what Almanac has begin so far apart at least.
func State(r *metrics.Registry, reads *query.Reader, apart time.Duration) []metrics.Source {
	topics := r.Topics()
	both := []string{query.ServerNATS, query.ServerClickHouse}
	return []metrics.Source{
		Servers(func(ctx context.Context) ([]string, []query.Away) { return both, reads.Servers(ctx) }),
		metrics.Paced("lag", func(ctx context.Context) ([]metrics.Sample, error) {
			lag, err := reads.Lag(ctx, "")
			if err != nil {
				return nil, err
			}
			return ofLag(topics, lag), nil
		}, time.Second),
		metrics.Paced("state", func(ctx context.Context) ([]metrics.Sample, error) {
			s, err := reads.State(ctx)
			if err != nil {
				return nil, err
			}
			return ofState(topics, s, time.Now()), nil
		}, apart),
		metrics.Paced("tables", func(ctx context.Context) ([]metrics.Sample, error) {
			sizes, err := reads.Sizes(ctx)
			if err != nil {
				return nil, err
			}
			disks, err := reads.DB().Disks(ctx)
			if err != nil {
				return nil, err
			}
			out := ofTables(&metrics.Names{}, sizes)
			if len(disks) > 0 {
				out = append(out, metrics.DiskFree.Is(float64(disks[0].Free)), metrics.DiskTotal.Is(float64(disks[0].Total)))
			}
			return out, nil
		}, apart),
	}
}

// Servers is the source of which servers answer. ask returns those that are known of, and those of them that are away.
func Servers(ask func(context.Context) (known []string, away []query.Away)) metrics.Source {
	return metrics.Source{Name: "servers", Read: func(ctx context.Context) ([]metrics.Sample, error) {
		known, away := ask(ctx)
		return ofServers(known, away, time.Now()), nil
	}}
}

// ofServers returns which servers answer.
func ofServers(known []string, away []query.Away, now time.Time) (out []metrics.Sample) {
	for _, name := range known {
		up, since := 1.0, 0.0
		for i := range away {
			if away[i].Server == name {
				up, since = 0, max(now.Sub(away[i].Since).Seconds(), 0)
			}
		}
		out = append(out, metrics.ServerUp.Is(up, name), metrics.ServerAway.Is(since, name))
	}
	return out
}

// ofLag returns what waits.
func ofLag(topics *metrics.Names, r *query.LagReport) []metrics.Sample {
	var out sums
	for i := range r.Topics {
		l := &r.Topics[i]
		topic := topics.Of(l.Topic)
		out.add(metrics.RouterLag, float64(l.Unrouted), topic)
		out.add(metrics.RouterBehind, float64(l.UnroutedBytes), topic)
		out.most(metrics.RouterOldest, l.UnroutedSeconds, topic)
		if l.Unstored != nil && l.UnstoredBytes != nil && l.UnstoredSeconds != nil {
			out.add(metrics.SinkLag, float64(*l.Unstored), topic)
			out.add(metrics.SinkBehind, float64(*l.UnstoredBytes), topic)
			out.most(metrics.SinkOldest, *l.UnstoredSeconds, topic)
		}
	}
	if !r.At.IsZero() {
		out.add(metrics.LagKnown, unix(r.At))
	}
	return out.all
}

// ofState returns what streams and registry have.
func ofState(topics *metrics.Names, s *query.State, now time.Time) []metrics.Sample {
	var out sums
	for i := range s.Topics {
		t := &s.Topics[i]
		topic := topics.Of(t.Topic)
		for status, n := range t.Shards {
			out.add(metrics.Shards, float64(n), topic, string(status))
		}
		out.add(metrics.DeadLetters, float64(t.Letters), topic)
		out.most(metrics.SQLFresh, t.SQLFresh, topic)
		out.add(metrics.Overdue, float64(t.Overdue), topic)
	}
	for _, u := range s.Streams {
		out.add(metrics.StreamUsed, float64(u.Bytes), u.Stream)
		out.add(metrics.StreamLimit, float64(u.Limit), u.Stream)
	}
	for role, n := range s.Members {
		out.add(metrics.Members, float64(n), role)
	}
	for state, n := range s.Erasures {
		out.add(metrics.Erasures, float64(n), state)
	}
	oldest := 0.0
	if !s.Oldest.IsZero() {
		oldest = max(now.Sub(s.Oldest).Seconds(), 0)
	}
	out.add(metrics.ErasureOldest, oldest)
	return out.all
}

// ofTables returns what tables take.
func ofTables(names *metrics.Names, sizes []tables.Size) []metrics.Sample {
	var out sums
	for _, s := range sizes {
		name := names.Of(s.Table)
		out.add(metrics.TableRows, float64(s.Rows), name)
		out.add(metrics.TableParts, float64(s.Parts), name)
		out.add(metrics.TableDisk, float64(s.Disk), name)
	}
	return out.all
}

// Ready is the source of whether the process can do its work. One that stops says nothing of it: the last that is known of it would
// stay not ready.
func Ready(is func(context.Context) bool, draining func() bool) metrics.Source {
	return metrics.Probed("ready", func(ctx context.Context) ([]metrics.Sample, error) {
		if draining() {
			return nil, nil
		}
		ready := 0.0
		if is(ctx) {
			ready = 1
		}
		return []metrics.Sample{metrics.Ready.Is(ready)}, nil
	}, time.Second)
}
