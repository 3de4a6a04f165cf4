package doctor

import (
	"context"
	"fmt"

	"github.com/almanac-events/almanac/documents"
	archive "github.com/almanac-events/almanac/internal/query/documents"
	"github.com/almanac-events/almanac/schemas"
	"github.com/almanac-events/almanac/schemas/kinds"
)

const (
	// lateSeconds is how long a change of a document may wait for ClickHouse before it is a finding.
	lateSeconds = 60
	// fullShare is the share of DOCS above which nothing stays hot, and refusals are near.
	fullShare = 0.8
)

// documents says how many documents are hot and cold, and whether changes wait for
// ClickHouse. It reads each topic's front through.
func (c *check) documents(ctx context.Context) {
	c.eachTopic(ctx, kinds.Document, "documents of ", func(name, topic string) error {
		docs, err := documents.Open(ctx, c.nc, topic, documents.Config{Archive: archive.New(c.reg, c.db)})
		if err != nil {
			return err
		}
		s, err := docs.Status(ctx)
		if err != nil {
			return err
		}
		status, do, found := lateDocuments(s)
		c.note(name, status, do, "%s", found)
		return nil
	})
}

// eachTopic checks the topics of a kind, each under a name of its own. An error of f is what
// the check found.
func (c *check) eachTopic(ctx context.Context, kind schemas.Kind, of string, f func(name, topic string) error) {
	topics, err := c.reg.Topics(ctx)
	if err != nil {
		return // said already
	}
	for i := range topics {
		if topics[i].Kind != kind {
			continue
		}
		name := of + topics[i].Name
		if err := f(name, topics[i].Name); err != nil {
			c.result(name, err, "", "")
		}
	}
}

// lateDocuments says what a topic's documents wait for.
func lateDocuments(s *documents.Status) (status, do, found string) {
	found = fmt.Sprintf("%d hot, %d cold, %d changes not archived", s.Hot, s.Cold, s.Unarchived)
	if s.Unarchived > 0 {
		found += fmt.Sprintf(", the oldest for %.0f s", s.OldestUnarchived)
	}
	switch {
	case s.Limit > 0 && float64(s.Bytes) > fullShare*float64(s.Limit):
		return Warn, "see that ClickHouse, the sinks and the janitor run: what is archived leaves. Or give the store more room",
			fmt.Sprintf("%s; %s is %.0f %% full, and takes no new documents above 90 %%", found, schemas.StreamDocs, 100*float64(s.Bytes)/float64(s.Limit))
	case s.OldestUnarchived > lateSeconds:
		return Warn, "see that the router and the sinks run, and what they say", found
	}
	return OK, "", found
}
