package bench

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/almanac-events/almanac/internal/tables"
	"github.com/almanac-events/almanac/query"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/sql"
)

const (
	pageShards = 200
	pageRows   = 10_000_000
)

// page compares a page of 500 by query with the best SQL that we could write by
// hand for the same events, over 10 M rows in 200 shards, which the pipeline
// itself has made. The two take turns.
func page(ctx context.Context, s *Suite) ([]Figure, error) {
	w, err := s.work(ctx, Config{Events: s.size(pageRows), rotateRows: uint64(s.size(pageRows) / pageShards)})
	if err != nil {
		return nil, err
	}
	defer w.end()
	if _, err := w.loaded(); err != nil {
		return nil, err
	}
	cfg := &w.cfg
	if err := waitIdle(ctx, cfg); err != nil {
		return nil, err
	}
	shards, err := cfg.Registry.Shards(ctx, w.topics[0].Name, 0)
	if err != nil {
		return nil, err
	}
	r, stop, err := following(cfg)
	if err != nil {
		return nil, err
	}
	defer stop()
	var out []Figure
	for _, c := range pageCases(cfg, &w.topics[0]) {
		f, err := s.comparePage(w.ctx, cfg, r, c)
		if err != nil {
			return nil, w.failed(err)
		}
		f.How = fmt.Sprintf("%s rows in %d shards; %s", count(cfg.Events), len(shards), f.How)
		out = append(out, f)
	}
	return out, nil
}

// maxByHand is how much longer a page may take than the best statement of a hand that knows the data: query also asks the
// registry and reads what is not stored yet.
const maxByHand = 1.3

// pageCase is a page and the statements that get the same rows.
type pageCase struct {
	name, what string
	req        query.Request
	sql        []string
}

func pageCases(cfg *Config, t *schemas.Topic) []pageCase {
	table := sql.QuotedTable(cfg.DB.Database, t.Name)
	const tail = " ORDER BY ts DESC, toUInt128(id) DESC LIMIT 500"
	// A hand that knows the data bounds the time, so that few parts are opened.
	bounded := "SELECT * FROM " + table + " WHERE %sts > (SELECT max(ts) FROM " + table + ") - INTERVAL %d MILLISECOND" + tail
	lazy := "SELECT * FROM " + table + " WHERE (ts, id) IN (SELECT ts, id FROM " + table + tail + ")" + tail
	return []pageCase{
		{"page", "a page of 500 by query, against the best SQL by hand", query.Request{Topic: t.Name, Limit: 500},
			[]string{"SELECT * FROM " + table + tail, lazy, fmt.Sprintf(bounded, "", 100), fmt.Sprintf(bounded, "", 1000)}},
		{"page_user", "a page of 500 of one user by query, against the best SQL by hand", query.Request{Topic: t.Name, Limit: 500, Where: "user_id = 'u-7'"},
			[]string{"SELECT * FROM " + table + " WHERE user_id = 'u-7'" + tail,
				fmt.Sprintf(bounded, "user_id = 'u-7' AND ", 5000), fmt.Sprintf(bounded, "user_id = 'u-7' AND ", 20000)}},
	}
}

func (s *Suite) comparePage(ctx context.Context, cfg *Config, r *query.Reader, c pageCase) (Figure, error) {
	var ours samples
	hand := make([]samples, len(c.sql))
	rounds := s.rounds(30)
	for i := range rounds {
		s.Progress("", c.name, i, rounds)
		began := time.Now()
		p, err := r.Query(ctx, c.req)
		if err != nil {
			return Figure{}, err
		}
		if len(p.Events) == 0 {
			return Figure{}, fmt.Errorf("the page is empty")
		}
		ours = append(ours, time.Since(began))
		for j, q := range c.sql {
			if hand[j] == nil && i > 0 {
				continue // it does not answer the question: too few rows
			}
			began := time.Now()
			rows, err := selectLines(ctx, cfg.DB, q)
			if err != nil {
				return Figure{}, err
			}
			if rows >= len(p.Events) {
				hand[j] = append(hand[j], time.Since(began))
			}
		}
	}
	best := -1
	for j := range hand {
		if len(hand[j]) > 0 && (best < 0 || hand[j].quantile(0.5) < hand[best].quantile(0.5)) {
			best = j
		}
	}
	if best < 0 {
		return Figure{}, fmt.Errorf("no statement by hand got the page")
	}
	a, b := millis(ours.quantile(0.5)), millis(hand[best].quantile(0.5))
	return atMost(c.name, c.what, a/b, unitRatio, maxByHand, "%d rounds in turn, medians: %.1f ms against %.1f ms of the fastest of %d statements: %s",
		rounds, a, b, len(c.sql), c.sql[best]).raw("ms", a, "by_hand_ms", b, "p99_ms", millis(ours.quantile(0.99))), nil
}

// selectLines reads a statement's rows as the page does, as one JSON object a
// line, and counts them.
func selectLines(ctx context.Context, db *tables.DB, q string) (int, error) {
	body, err := db.Select(ctx, &tables.Select{SQL: q, Settings: map[string]string{"default_format": "JSONEachRow"}})
	if err != nil {
		return 0, err
	}
	defer func() { _ = body.Close() }()
	lines, buf := 0, make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		for _, b := range buf[:n] {
			if b == '\n' {
				lines++
			}
		}
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// following starts a reader as a process that serves queries has it.
func following(cfg *Config) (r *query.Reader, stop func(), err error) {
	second, err := cfg.connect()
	if err != nil {
		return nil, nil, err
	}
	if r, err = query.NewFollowing(cfg.NATS, second, cfg.Registry, cfg.DB); err != nil {
		second.Close()
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	return r, func() { cancel(); wg.Wait(); r.Close(); second.Close() }, nil
}
