package documents

import (
	"context"
	"time"

	"github.com/almanac-events/almanac/internal/streams"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/document"
)

// Status is how a topic's documents stand.
type Status struct {
	Topic string `json:"topic"`
	// Hot have their body in DOCS, Cold a stub alone. Removed still have their tombstone there.
	Hot     uint64 `json:"hot"`
	Cold    uint64 `json:"cold"`
	Removed uint64 `json:"removed"`
	// Unarchived counts records that are not stored in ClickHouse yet, and the age of the
	// oldest in seconds.
	Unarchived       uint64  `json:"unarchived"`
	OldestUnarchived float64 `json:"oldest_unarchived_seconds"`
	// Archived is up to which sequence of DOCS each lane is stored.
	Archived map[int]uint64 `json:"archived_up_to"`
	// Bytes and Limit are those of DOCS, of all topics.
	Bytes uint64 `json:"bytes"`
	Limit int64  `json:"limit"`
}

// Status counts a topic's documents, from the headers of DOCS: some 6 s a million.
func (c *Collection) Status(ctx context.Context) (*Status, error) {
	js := c.reg.JetStream()
	info, err := streams.Info(ctx, js, schemas.StreamDocs)
	if err != nil {
		return nil, err
	}
	s := &Status{Topic: c.topic.Name, Bytes: info.State.Bytes, Limit: info.Config.MaxBytes}
	if c.cfg.Archive == nil {
		return nil, ErrArchive
	}
	if s.Archived, err = c.cfg.Archive.Archived(ctx, &c.topic); err != nil {
		return nil, err
	}
	type state struct {
		lane    string
		removed bool
		cold    bool
	}
	last := map[string]state{}
	now, err := c.now(ctx)
	if err != nil {
		return nil, err
	}
	oldest := now
	_, err = streams.Headers(ctx, js, schemas.StreamDocs, schemas.DocTopicFilter(c.topic.InFronts()), 1, func(msg *streams.Message) error {
		r, err := document.Parse(msg.Subject, msg.Sequence, msg.Header, nil, msg.Size)
		if err != nil {
			return nil // the router says what is wrong with it
		}
		last[r.ID] = state{r.Lane, r.Removed(), r.Stub != nil}
		lane, _ := schemas.ParseLane(r.Lane)
		if schemas.IsEvent(msg.Header, msg.Size) && msg.Sequence > s.Archived[lane] {
			s.Unarchived++
			oldest = min(oldest, msg.Time.UnixNano())
		}
		return nil
	})
	for _, st := range last {
		switch {
		case st.removed:
			s.Removed++
		case st.cold:
			s.Cold++
		default:
			s.Hot++
		}
	}
	if s.Unarchived > 0 {
		s.OldestUnarchived = time.Duration(now - oldest).Round(time.Millisecond).Seconds()
	}
	return s, err
}
