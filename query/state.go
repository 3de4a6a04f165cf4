package query

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/registry/ledger"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/schemas"
)

// TopicState is what the registry and SHARDS have of a topic.
type TopicState struct {
	Topic string `json:"topic"`
	// Shards are how many there are of each status.
	Shards map[registry.Status]int `json:"shards"`
	// SQLFresh is within how many seconds SQL should have an event.
	SQLFresh float64 `json:"sql_fresh_seconds"`
	// Letters are messages kept as dead letters.
	Letters uint64 `json:"dead_letters"`
	// Overdue are shards that retention should have dropped or cleared.
	Overdue int `json:"retention_overdue"`
}

// State is how the parts are, as far as NATS knows.
type State struct {
	Topics  []TopicState   `json:"topics"`
	Streams []StreamUse    `json:"streams"`
	Members map[string]int `json:"members"`
	// Erasures are how many there are in each state.
	Erasures map[string]int `json:"erasures"`
	// Oldest is when the oldest erasure that has not ended was entered; zero: all have.
	Oldest time.Time `json:"oldest_erasure,omitzero"`
}

// stateStreams are those of Almanac, the registry's bucket among them.
var stateStreams = []string{schemas.StreamEvents, schemas.StreamShards, schemas.StreamDocs, schemas.StreamTimers, schemas.KVStream}

// State reads how streams, shards, members, dead letters and erasures are. It needs NATS alone.
func (r *Reader) State(ctx context.Context) (*State, error) {
	asked, cancel := r.withServer(ctx, ServerNATS)
	defer cancel()
	s, err := r.state(asked, time.Now())
	if err != nil && context.Cause(asked) != nil {
		return nil, context.Cause(asked)
	}
	return s, err
}

func (r *Reader) state(ctx context.Context, now time.Time) (*State, error) {
	out := &State{Topics: []TopicState{}, Streams: []StreamUse{}, Members: map[string]int{}, Erasures: map[string]int{}}
	for _, name := range stateStreams {
		info, err := streams.Info(ctx, r.js, name)
		if err != nil {
			return nil, err
		}
		out.Streams = append(out.Streams, useOf(name, info))
	}
	letters, err := streams.Subjects(ctx, r.js, schemas.StreamShards, schemas.SubjectsDead)
	if err != nil {
		return nil, err
	}
	topics, err := r.reg.Topics(ctx)
	if err != nil {
		return nil, err
	}
	for i := range topics {
		t := &topics[i]
		one := TopicState{Topic: t.Name, Shards: map[registry.Status]int{}, SQLFresh: t.FreshWithin().Seconds(), Letters: letters[schemas.DeadSubject(t.Name)]}
		shards, err := r.reg.Shards(ctx, t.Name, 0)
		if err != nil {
			return nil, err
		}
		for _, s := range shards {
			one.Shards[s.Status]++
			if next, _ := s.Overdue(t, now); next != registry.Keep {
				one.Overdue++
			}
		}
		out.Topics = append(out.Topics, one)
	}
	if n := letters[schemas.DeadSubject(schemas.NoTopic)]; n > 0 {
		out.Topics = append(out.Topics, TopicState{Topic: schemas.NoTopic, Shards: map[registry.Status]int{}, Letters: n})
	}
	for _, role := range []string{schemas.RoleRouter, schemas.RoleSink, schemas.RoleTimers} {
		if out.Members[role], err = r.reg.LiveMembers(ctx, role); err != nil {
			return nil, err
		}
	}
	all, err := r.reg.Ledgers(ctx)
	if err != nil {
		return nil, err
	}
	for _, some := range all {
		for i := range some {
			e := &some[i]
			out.Erasures[string(e.State)]++
			if e.State != ledger.Erased && (out.Oldest.IsZero() || e.CreatedAt.Before(out.Oldest)) {
				out.Oldest = e.CreatedAt
			}
		}
	}
	return out, nil
}

// Sizes reads what tables take. It needs ClickHouse alone.
func (r *Reader) Sizes(ctx context.Context) ([]tables.Size, error) {
	asked, cancel := r.withServer(ctx, ServerClickHouse)
	defer cancel()
	sizes, err := r.db.Sizes(asked)
	if err != nil && context.Cause(asked) != nil {
		return nil, context.Cause(asked)
	}
	return sizes, err
}

// useOf is how full a stream is.
func useOf(name string, info *jetstream.StreamInfo) StreamUse {
	return StreamUse{name, info.State.Msgs, info.State.Bytes, uint64(max(info.Config.MaxBytes, 0))}
}

// Status is what an operator looks at first: which servers are away, how far events are behind, and how the parts are.
type Status struct {
	Away []Away     `json:"away"`
	Lag  *LagReport `json:"lag,omitempty"`
	// State is what it was when it was last read, which StateAt says.
	State   *State    `json:"state,omitempty"`
	StateAt time.Time `json:"state_at,omitzero"`
	// Servers are their versions as they last said them; empty for one that never answered.
	Servers Versions `json:"servers"`
	// Disks are those of ClickHouse, the fullest first, as they were when they were last read.
	Disks []DiskUse `json:"disks"`
}

// Versions are those of the servers.
type Versions struct {
	NATS       string `json:"nats,omitempty"`
	ClickHouse string `json:"clickhouse,omitempty"`
}

// statusWait is how long Status waits for what it reads: it answers within two seconds while a server is away, also while what reads of the one
// asks the other first. What comes later is known the next time.
const statusWait = 1700 * time.Millisecond

// Status reads all of it.
func (r *Reader) Status(ctx context.Context) (*Status, error) {
	within, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	var out Status
	lag, state, nats, clickhouse := make(chan *LagReport, 1), make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		report, _ := r.Lag(ctx, "")
		lag <- report
	}()
	go func() {
		defer close(state)
		if s, err := r.State(ctx); err == nil {
			r.known.mu.Lock()
			r.known.state, r.known.stateAt = s, time.Now().UTC().Truncate(time.Millisecond)
			r.known.mu.Unlock()
		}
	}()
	go func() { // see answers
		defer close(nats)
		if version := r.js.Conn().ConnectedServerVersion(); version != "" {
			r.known.mu.Lock()
			r.known.servers.NATS = version
			r.known.mu.Unlock()
		}
	}()
	go func() {
		defer close(clickhouse)
		asked, cancel := r.withServer(ctx, ServerClickHouse)
		defer cancel()
		if version, _ := r.db.Ping(asked); version != "" {
			r.known.mu.Lock()
			r.known.servers.ClickHouse = version
			r.known.mu.Unlock()
			r.lookAtDisks(asked)
		}
	}()
	for _, read := range []chan struct{}{nats, clickhouse, state} {
		select {
		case <-read:
		case <-within.Done():
		}
	}
	select {
	case out.Lag = <-lag:
	case <-within.Done():
	}
	r.known.mu.Lock()
	if last := r.known.last[""]; out.Lag == nil && last != nil {
		known := *last
		known.Away = r.servers.list()
		out.Lag = &known
	}
	out.Servers, out.Disks = r.known.servers, r.known.disks
	out.State, out.StateAt = r.known.state, r.known.stateAt
	r.known.mu.Unlock()
	out.Away = r.servers.list()
	return &out, ctx.Err()
}
