package faults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/almanac-events/almanac/documents"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/internal/tables"
)

// docWriteTimeout bounds a write of documents; it must be below the cluster's Keep, in which
// the cleaner leaves records alone.
const docWriteTimeout = 10 * time.Second

// docLine is a line of a document writer's journal: what it is about to store, or with a
// version or a refusal what it was told.
type docLine struct {
	ID      string `json:"id"`
	Version uint64 `json:"v,omitempty"`
	Refused bool   `json:"r,omitempty"` // nothing was written
	Body    string `json:"b"`
}

// playDocuments changes documents until it is told to stop. Each body is written to the journal before it is stored, and
// again with its version once that was acknowledged, or as refused. No two bodies are alike.
func playDocuments(ctx context.Context, spec Spec, stop <-chan struct{}) error {
	nc, reg, err := join(ctx, spec)
	if err != nil {
		return err
	}
	db, err := tables.Open(spec.ClickHouse)
	if err != nil {
		return err
	}
	cfg := documents.Config{By: spec.Name, Archive: archive.New(reg, db)}
	cfg.Write.Timeout = docWriteTimeout
	var c *documents.Collection
	err = patiently(ctx, func(ctx context.Context) (err error) {
		c, err = documents.Open(ctx, nc, spec.Writer.Topic, cfg)
		return err
	})
	if err != nil {
		return err
	}
	journal, err := os.OpenFile(spec.Writer.Journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	write := func(l docLine) error { // one write, so that a killed writer leaves whole lines and at most one cut one
		text, err := json.Marshal(l)
		if err == nil {
			_, err = journal.Write(append(text, '\n'))
		}
		return err
	}
	life := time.Now().UnixNano()
	say("ready")
	for i := 0; ; i++ {
		select {
		case <-stop:
			return journal.Close()
		default:
		}
		l := docLine{ID: fmt.Sprint("d-", rand.IntN(spec.Writer.Events)), Body: fmt.Sprintf(`{"w":%d,"life":%d,"i":%d}`, spec.Writer.Number, life, i)}
		if err := write(l); err != nil {
			return err
		}
		d, err := change(ctx, c, &l, i%4 == 0)
		switch {
		case err == nil:
			l.Version = d.Version
		case errors.Is(err, documents.ErrVersion), errors.Is(err, documents.ErrExists), errors.Is(err, documents.ErrBusy):
			l.Refused = true
		default:
			note("%s: %v", l.ID, err)
			continue
		}
		if err := write(l); err != nil {
			return err
		}
		if !l.Refused {
			say("acked")
		}
	}
}

// change stores a document, or updates the version that it loads first.
func change(ctx context.Context, c *documents.Collection, l *docLine, load bool) (*documents.Document, error) {
	if !load {
		return c.Put(ctx, documents.Draft{ID: l.ID, Path: "p", Body: []byte(l.Body)})
	}
	d, err := c.Load(ctx, l.ID)
	if errors.Is(err, documents.ErrNotFound) {
		return c.Create(ctx, documents.Draft{ID: l.ID, Path: "p", Body: []byte(l.Body)})
	}
	if err != nil {
		return nil, err
	}
	return c.Update(ctx, l.ID, documents.IfVersion(d.Version), []byte(l.Body))
}
