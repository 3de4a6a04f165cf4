package replay

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/almanac-events/almanac/internal/registry"
	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/query/filter"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

// Config is what replays stand on.
type Config struct {
	NATS     *nats.Conn
	Registry *registry.Registry
	DB       *tables.DB
	Reader   *query.Reader
	// Clock of the pacing and of the cursor; nil is the machine's.
	Clock Clock
}

// Replayer begins replays and takes them up again. It is safe for concurrent use.
type Replayer struct {
	cfg    Config
	js     jetstream.JetStream
	ledger *registry.LedgerCache
}

// New prepares replays.
func New(ctx context.Context, cfg Config) (*Replayer, error) {
	if cfg.Clock == nil {
		cfg.Clock = machineClock{}
	}
	js := cfg.Registry.JetStream()
	if _, err := streams.Open(ctx, js, schemas.StreamShards); err != nil {
		return nil, fmt.Errorf("replay: stream %s: %w", schemas.StreamShards, err)
	}
	cfg.Registry = cfg.Registry.WithThird(cfg.DB)
	return &Replayer{cfg: cfg, js: js, ledger: registry.NewLedgerCache(cfg.Registry)}, nil
}

// Job is one replay. Run it once.
type Job struct {
	r     *Replayer
	entry registry.Job
	state state
	spec  Spec
	topic schemas.Topic
	where *filter.Expr
	// filter and params are where as a ClickHouse condition; "" is every row.
	filter string
	params map[string]string

	buffers buffers
	target  *target // nil unless the job is into a topic
	raw     bool    // see PrintMessages
	meets   []string
	done    progress
	begun   []*shard // by time: those with a mark
	saved   time.Time
}

// state is a job's entry.
type state struct {
	Spec Spec `json:"spec"`
	// At is, by position, the shard the job is in: those before it are done.
	At schemas.Shard `json:"at,omitempty"`
	// Positions are the shards that were begun and, by position, not finished.
	Positions map[schemas.Shard]position `json:"marks,omitempty"`
	// Events were replayed so far.
	Events uint64 `json:"events"`
	// Ends, of a job into a topic, are the last positions it replays, and After those
	// that jobs of the same request replayed before it; see repeated.go.
	Ends  map[schemas.Shard]uint64 `json:"ends,omitempty"`
	After map[schemas.Shard]uint64 `json:"after,omitempty"`
	// Before is the job of the same request before this one.
	Before string `json:"before,omitempty"`
}

// Jobs into topics are remembered apart from the others, which are many more.
const (
	verb     = "replay"
	verbInto = "replay-into"
)

// Begin makes a job of a request. What is routed later is not in it.
func (r *Replayer) Begin(ctx context.Context, q Request) (*Job, error) {
	topic, err := r.cfg.Registry.Topic(ctx, q.Topic)
	if err != nil {
		return nil, err
	}
	if q.Order == "" {
		q.Order = ByPosition
	}
	spec, where, err := q.spec(&topic)
	if err != nil {
		return nil, err
	}
	info, err := streams.Info(ctx, r.js, schemas.StreamShards)
	if err != nil {
		return nil, fmt.Errorf("replay: %s: %w", schemas.StreamShards, err)
	}
	spec.UpTo = info.State.LastSeq
	j := &Job{r: r, spec: spec, topic: topic, where: where, state: state{Spec: spec},
		entry: registry.Job{ID: fmt.Sprintf("%016x", rand.Uint64()), Verb: verb}}
	j.entry.For(&topic)
	if spec.Kind == IntoTopic && spec.Into != topic.Name {
		into, err := r.cfg.Registry.Topic(ctx, spec.Into)
		if err != nil {
			return nil, err
		}
		j.entry.For(&topic, &into)
		open, err := j.follow(ctx, q.Again)
		if err != nil {
			return nil, err
		}
		if open != "" {
			return r.Resume(ctx, open)
		}
	}
	return j, j.prepare(ctx)
}

// Resume takes a job up where its cursor stands.
func (r *Replayer) Resume(ctx context.Context, id string) (*Job, error) {
	j := &Job{r: r}
	var err error
	if !jobID(id) {
		return nil, refuse(ErrNoJob, "%q is not the 16 hex digits that a replay prints", id)
	}
	if j.entry, err = r.cfg.Registry.Job(ctx, verbInto, id); errors.Is(err, registry.ErrNotFound) {
		j.entry, err = r.cfg.Registry.Job(ctx, verb, id)
	}
	if err != nil {
		return nil, missingJob(id, err)
	}
	if err := j.state.read(j.entry.State); err != nil {
		return nil, fmt.Errorf("replay: job %s: %w", id, err)
	}
	j.spec = j.state.Spec
	if j.topic, err = r.cfg.Registry.Topic(ctx, j.spec.Topic); err != nil {
		return nil, err
	}
	if j.where, err = filter.Parse(j.spec.Where, &j.topic); err != nil {
		return nil, err
	}
	if j.entry.Done {
		j.done.events.Store(j.state.Events)
		return j, fmt.Errorf("%w: %d events of %q were replayed by %s", ErrDone, j.state.Events, j.spec.Topic, j.entry.UpdatedAt.Format(time.RFC3339))
	}
	return j, j.prepare(ctx)
}

// ID is the job's id, to take it up again.
func (j *Job) ID() string { return j.entry.ID }

// Spec is what the job replays.
func (j *Job) Spec() Spec { return j.spec }

// Replayed is how many events the job has replayed, this run's and those before.
func (j *Job) Replayed() uint64 { return j.done.events.Load() }

func (j *Job) table() string { return sql.QuotedTable(j.r.cfg.DB.Database, j.topic.Name) }

// prepare works out what is replayed of every row.
func (j *Job) prepare(ctx context.Context) (err error) {
	if j.spec.Kind == IntoWriter { // what goes to a stream is kept until it is acknowledged
		j.buffers = newBuffers()
	}
	if j.spec.Kind == IntoTopic && j.spec.Into != j.topic.Name {
		if j.target, err = j.r.target(ctx, j); err != nil {
			return err
		}
	}
	if !j.where.All() { // else no frame needs a statement
		j.filter, j.params = j.where.SQL()
	}
	j.done.events.Store(j.state.Events)
	return nil
}
