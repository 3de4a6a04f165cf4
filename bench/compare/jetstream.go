package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/almanac-events/almanac/schemas"
)

// line is an event as an application writes it.
type line struct {
	Ts      time.Time         `json:"ts"`
	Level   string            `json:"level"`
	Service string            `json:"service"`
	Type    string            `json:"type"`
	UserID  string            `json:"user_id"`
	Message string            `json:"message"`
	Attrs   map[string]string `json:"attributes"`
}

func newLine(e *schemas.Event) line {
	l := line{Ts: time.Now(), Level: e.Level, Service: e.Service, Type: e.Type, UserID: e.UserID, Message: e.Message, Attrs: map[string]string{}}
	for _, a := range e.Attrs {
		l.Attrs[a.Key] = a.Text()
	}
	return l
}

// jetStreamRows is the consumer people write: one JSON message an event,
// published asynchronously; batches of rows; acknowledged after the insert.
func jetStreamRows() *contestant {
	return &contestant{
		Name:       "JetStream, JSON messages → clickhouse-go row batches, written by hand",
		Durability: "NATS's default: acknowledged before it is on disk, written every 2 minutes; at least once, twice after a crash between insert and ack",
		run: func(ctx context.Context, c *contest) (time.Duration, error) {
			srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: c.dir + "/nats", NoLog: true, NoSigs: true})
			if err != nil {
				return 0, err
			}
			srv.Start()
			defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
			if !srv.ReadyForConnections(10 * time.Second) {
				return 0, errors.New("the NATS server did not start")
			}
			js, stop, err := connectJS(srv.ClientURL())
			if err != nil {
				return 0, err
			}
			defer stop()
			if err := prepareRows(ctx, c, js); err != nil {
				return 0, err
			}
			began := time.Now()
			g, gctx := errgroup.WithContext(ctx)
			for n := range c.senders {
				g.Go(func() error { return publishLines(gctx, srv.ClientURL(), c, uint64(n+1)) })
			}
			consume, cancel := context.WithCancel(gctx)
			defer cancel()
			for range 2 {
				g.Go(func() error { return consumeLines(consume, c, js) })
			}
			err = c.waitRows(gctx, "compare.lines", uint64(c.events/c.senders*c.senders))
			took := time.Since(began)
			cancel()
			return took, errors.Join(g.Wait(), err)
		},
	}
}

func connectJS(url string) (jetstream.JetStream, func(), error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(4000))
	return js, nc.Close, err
}

func prepareRows(ctx context.Context, c *contest, js jetstream.JetStream) error {
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "LINES", Subjects: []string{"lines.>"}}); err != nil {
		return err
	}
	_ = js.DeleteConsumer(ctx, "LINES", "rows")
	s, err := js.Stream(ctx, "LINES")
	if err != nil {
		return err
	}
	if err := s.Purge(ctx); err != nil {
		return err
	}
	for _, ddl := range []string{
		"CREATE DATABASE IF NOT EXISTS compare", "DROP TABLE IF EXISTS compare.lines SYNC",
		`CREATE TABLE compare.lines (ts DateTime64(9, 'UTC'), level LowCardinality(String), service LowCardinality(String), type LowCardinality(String),
user_id String, message String, attributes Map(LowCardinality(String), String)) ENGINE = MergeTree PARTITION BY toYYYYMM(ts) ORDER BY ts`,
	} {
		if err := c.db.Exec(ctx, ddl); err != nil {
			return err
		}
	}
	return nil
}

func publishLines(ctx context.Context, url string, c *contest, seed uint64) error {
	js, stop, err := connectJS(url)
	if err != nil {
		return err
	}
	defer stop()
	for e := range c.share(seed) {
		text, err := json.Marshal(newLine(&e))
		if err != nil {
			return err
		}
		for { // a full window is waited for
			if _, err = js.PublishAsync("lines.app", text, jetstream.WithStallWait(time.Minute)); err == nil {
				break
			}
			return err
		}
	}
	select {
	case <-js.PublishAsyncComplete():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// batchRows is what ClickHouse recommends an insert to have at least ten of a
// thousand of; more did not make the loop faster.
const batchRows = 20_000

func consumeLines(ctx context.Context, c *contest, js jetstream.JetStream) error {
	cons, err := js.CreateOrUpdateConsumer(ctx, "LINES", jetstream.ConsumerConfig{
		Durable: "rows", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 4 * batchRows, AckWait: time.Minute})
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		msgs, err := cons.Fetch(batchRows, jetstream.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			return err
		}
		var taken []jetstream.Msg
		for m := range msgs.Messages() {
			taken = append(taken, m)
		}
		if len(taken) == 0 {
			continue
		}
		if err := insertLines(context.WithoutCancel(ctx), c, taken); err != nil {
			return err
		}
	}
	return nil
}

func insertLines(ctx context.Context, c *contest, taken []jetstream.Msg) error {
	b, err := c.db.PrepareBatch(ctx, "INSERT INTO compare.lines")
	if err != nil {
		return err
	}
	for _, m := range taken {
		var l line
		if err := json.Unmarshal(m.Data(), &l); err != nil {
			return fmt.Errorf("a message that is not an event: %w", err)
		}
		if err := b.Append(l.Ts, l.Level, l.Service, l.Type, l.UserID, l.Message, l.Attrs); err != nil {
			return err
		}
	}
	if err := b.Send(); err != nil {
		return err
	}
	for _, m := range taken {
		if err := m.Ack(); err != nil {
			return err
		}
	}
	return nil
}
